//! Admission plugins by name: which are known, which are asked for.

use anyhow::bail;
use fairlead_control::{Choice, Controller};
use fairlead_server::ExternalIps;

use super::Flags;
use super::flags::Text;
use super::value::list;

/// Plugins that are used unless somebody says otherwise.
const DEFAULT: &[&str] = &["NamespaceLifecycle", "DefaultTolerationSeconds", "RuntimeClass"];
/// Plugins that can be switched.
const OPTIONAL: &[&str] = &["DenyServiceExternalIPs", "ServiceAccount"];
/// Names kube-apiserver knows for kinds we do not serve: nothing to do, so asking for them or against them is fine.
const WITHOUT_WORK: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "EventRateLimit",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeRestriction",
    "PersistentVolumeClaimResize",
    "PodSecurity",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Returns who may write external IPs. The plugin is neither on nor off by default: then only
/// administrators may.
pub(super) fn external_ips(flags: &Flags) -> ExternalIps {
    let names = |plugins: &[String]| plugins.iter().any(|plugin| plugin == "DenyServiceExternalIPs");
    if names(&list(&flags.enable_admission_plugins)) {
        ExternalIps::Denied
    } else if names(&list(&flags.disable_admission_plugins)) {
        ExternalIps::Anyone
    } else {
        ExternalIps::Privileged
    }
}

/// Returns true if Pods get their accounts (plugin ServiceAccount). Without a word it depends on
/// the controller that makes the account `default` of every namespace: without that, every Pod
/// would be refused.
pub(super) fn service_accounts(flags: &Flags, controllers: &Choice) -> bool {
    let names = |plugins: &Option<Vec<Text>>| list(plugins).iter().any(|plugin| plugin == "ServiceAccount");
    if names(&flags.enable_admission_plugins) {
        return true;
    }
    controllers.has(Controller::ServiceAccount) && !names(&flags.disable_admission_plugins)
}

/// Checks the names of plugins, and returns the default ones that are not to be used.
pub(super) fn plugins(flags: &Flags) -> anyhow::Result<Vec<String>> {
    let enable = list(&flags.enable_admission_plugins);
    let disable = list(&flags.disable_admission_plugins);
    let known = |name: &str| [DEFAULT, OPTIONAL, WITHOUT_WORK].iter().any(|names| names.contains(&name));
    for (flag, names) in [("enable-admission-plugins", &enable), ("disable-admission-plugins", &disable)] {
        if let Some(name) = names.iter().find(|name| !known(name)) {
            bail!("{flag} plugin {name:?} is unknown");
        }
    }
    let both: Vec<&str> = enable.iter().filter(|name| disable.contains(name)).map(String::as_str).collect();
    if !both.is_empty() {
        bail!("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", both.join(" "));
    }
    Ok(disable.into_iter().filter(|name| DEFAULT.contains(&name.as_str())).collect())
}
