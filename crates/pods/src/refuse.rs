//! What cannot run here, and why? Other people's images, and whatever asks for more than an unprivileged process has without the
//! grant for it. Pure.

use fairlead_api::Look;
use fairlead_api::kinds::pod::privileges::{self, GRANTED, HOST_IMAGE};
use fairlead_kernel::process::{Identity, capability};
use serde_json::Value;

use crate::shim::launch::Who;
use crate::users::UserRange;

#[cfg(test)]
mod tests;

/// Why a container is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// In a word.
    pub(crate) reason: &'static str,
    /// In a sentence.
    pub(crate) message: String,
}

/// Why a Pod is not started, if it is not.
pub(crate) fn refused(pod: &Value, users: UserRange) -> Option<Refused> {
    let spec = pod.at("spec");
    let all = || spec.list("initContainers").iter().chain(spec.list("containers"));
    if let Some(container) = all().find(|container| container.text("image") != HOST_IMAGE) {
        let message = format!(
            "container {:?} has image {:?}, and there are no images here: a container with image \"{HOST_IMAGE}\" runs its command on \
             the file system of the host",
            container.text("name"),
            container.text("image"),
        );
        return Some(Refused { reason: "ImageNotSupported", message });
    }
    if let Some(container) = all().find(|container| command(container).is_empty()) {
        let message =
            format!("container {:?} has no command: image \"{HOST_IMAGE}\" brings none", container.text("name"));
        return Some(Refused { reason: "CreateContainerError", message });
    }
    if let Some(container) = all().find(|container| seccomp(pod, container) == "Localhost") {
        let message = format!(
            "container {:?} has a seccompProfile of type Localhost, and Nodes have no profiles: RuntimeDefault and Unconfined are \
             supported",
            container.text("name")
        );
        return Some(Refused { reason: "CreateContainerError", message });
    }
    let asked = privileges::asked(pod);
    if !asked.is_empty() && privileges::annotation(pod) != Some(GRANTED) {
        let (group, resource) = privileges::RESOURCE;
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        let message = format!(
            "the Pod asks for more than an unprivileged process has ({}); whoever creates it must be allowed the verb \"use\" on the \
             resource {resource}.{group}",
            asked.join(", ")
        );
        return Some(Refused { reason: "HostPrivilegesNotGranted", message });
    }
    // The server knows the usual range only.
    let taken = chosen(pod).find(|id| users.contains(*id)).filter(|_| privileges::annotation(pod) != Some(GRANTED))?;
    let message = format!(
        "the Pod asks for user or group {taken}, which this Node may give to another Pod (--pod-users): choose one out of that range, \
         or none"
    );
    Some(Refused { reason: "HostPrivilegesNotGranted", message })
}

/// Returns the type of the seccomp profile that a container names, or else its Pod.
fn seccomp<'a>(pod: &'a Value, container: &'a Value) -> &'a str {
    let of_container = container.at("securityContext").at("seccompProfile").text_opt("type");
    of_container.unwrap_or_else(|| pod.at("spec").at("securityContext").at("seccompProfile").text("type"))
}

/// True if a container is refused the system calls that container runtimes refuse by default. One
/// without a profile is not, as with a kubelet (pkg/kubelet/kuberuntime/helpers.go,
/// getSeccompProfile), nor is a privileged one.
pub(crate) fn has_default_seccomp(pod: &Value, container: &Value) -> bool {
    seccomp(pod, container) == "RuntimeDefault" && !container.at("securityContext").flag("privileged")
}

/// Returns the users and groups that a Pod names.
fn chosen(pod: &Value) -> impl Iterator<Item = i64> {
    let spec = pod.at("spec");
    let containers = spec.list("initContainers").iter().chain(spec.list("containers"));
    let contexts = containers.map(|container| container.at("securityContext")).chain([spec.at("securityContext")]);
    let numbers = contexts.flat_map(|context| {
        ["runAsUser", "runAsGroup", "fsGroup"].into_iter().filter_map(|name| context.int_opt(name))
    });
    let groups = spec.at("securityContext").list("supplementalGroups").iter().filter_map(Value::as_i64);
    numbers.chain(groups)
}

/// What a container runs: its command and its arguments.
pub(crate) fn command(container: &Value) -> Vec<&str> {
    let mut words = container.texts("command");
    words.extend(container.texts("args"));
    words
}

/// A number of the container's security context, or else of the Pod's.
fn number(pod: &Value, container: &Value, field: &str) -> Option<i64> {
    let of_pod = || pod.at("spec").at("securityContext").int_opt(field);
    container.at("securityContext").int_opt(field).or_else(of_pod)
}

/// Returns the identity a container runs with: what it says, else what the Pod says, else the user
/// and group of the Pod's own.
pub(crate) fn who(pod: &Value, container: &Value, own: (u32, u32)) -> Result<Who, Refused> {
    let wrong = |message: String| Refused { reason: "CreateContainerConfigError", message };
    let id = |field: &str, usual: u32| match number(pod, container, field) {
        Some(number) => {
            u32::try_from(number).map_err(|_| wrong(format!("{field}: {number} is no number of a user or group")))
        }
        None => Ok(usual),
    };
    let user = id("runAsUser", own.0)?;
    let group = id("runAsGroup", own.1)?;
    let context = container.at("securityContext");
    let whole = pod.at("spec").at("securityContext");
    if context.flag_opt("runAsNonRoot").unwrap_or(whole.flag("runAsNonRoot")) && user == 0 {
        return Err(wrong("container's runAsUser breaks non-root policy".to_owned()));
    }
    let groups = whole.list("supplementalGroups").iter().filter_map(Value::as_i64).chain(whole.int_opt("fsGroup"));
    let privileged = context.flag("privileged");
    Ok(Who {
        user,
        group,
        groups: groups.filter_map(|group| u32::try_from(group).ok()).collect(),
        capabilities: if privileged { Identity::ALL } else { capabilities(context).map_err(wrong)? },
        escalation: privileged || context.flag("allowPrivilegeEscalation"),
    })
}

fn capabilities(security: &Value) -> Result<u64, String> {
    let (mut kept, lists) = (0, security.at("capabilities"));
    for name in lists.texts("add") {
        match capability(name) {
            Some(number) => kept |= 1 << number,
            None if name.eq_ignore_ascii_case("ALL") => kept = (1 << 41) - 1,
            None => return Err(format!("unknown capability {name:?}")),
        }
    }
    for number in lists.texts("drop").into_iter().filter_map(capability) {
        kept &= !(1 << number);
    }
    Ok(kept)
}
