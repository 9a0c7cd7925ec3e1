//! A Pod's own name and its `/etc/hosts`, as the kubelet makes them.

use fairlead_api::{Look, names};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The longest host name, and the longest the kernel takes.
const HOSTNAME: usize = 63;
const NODENAME: usize = 64;

/// How a Pod is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Name {
    /// `web-0`.
    pub hostname: String,
    /// `nginx.default.svc.cluster.local`; empty without a subdomain.
    pub domain: String,
    /// What the kernel is told: the host name, or all of it where `setHostnameAsFQDN` is true.
    pub kernel: String,
}

/// Why a Pod cannot have the name it asks for, in the kubelet's words. It does not start then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// A part is no name.
    #[error("pod {field} {value:?} is not a valid DNS {want}: {why}")]
    Invalid {
        /// `Hostname`.
        field: &'static str,
        /// What it says.
        value: String,
        /// `label` or `subdomain`.
        want: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Nothing of a too long name is left.
    #[error("hostname for pod {pod:?} was invalid: {hostname:?}")]
    Empty {
        /// The Pod.
        pod: String,
        /// Its host name.
        hostname: String,
    },
    /// The kernel has no room for the whole name.
    #[error(
        "failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long \
         ({NODENAME} characters is the max, {} characters requested)", fqdn.len()
    )]
    TooLong {
        /// The whole name.
        fqdn: String,
    },
}

/// How a Pod is called in a cluster of that domain.
pub fn name(pod: &Value, cluster_domain: &str) -> Result<Name, Mistake> {
    let (meta, spec) = (pod.at("metadata"), pod.at("spec"));
    let pod = meta.text("name");
    if let Some(hostname) = spec.text_opt("hostnameOverride") {
        valid("HostnameOverride", hostname, "subdomain", names::subdomain)?;
        let hostname = shortened(pod, hostname)?;
        return Ok(Name { kernel: hostname.clone(), hostname, domain: String::new() });
    }
    let (hostname, subdomain) = (spec.text("hostname"), spec.text("subdomain"));
    valid("Hostname", hostname, "label", names::label)?;
    let hostname = shortened(pod, if hostname.is_empty() { pod } else { hostname })?;
    valid("Subdomain", subdomain, "label", names::label)?;
    let namespace = meta.text("namespace");
    let domain = match subdomain {
        "" => String::new(),
        subdomain => format!("{subdomain}.{namespace}.svc.{cluster_domain}"),
    };
    let kernel = kernel(&hostname, &domain, spec.flag("setHostnameAsFQDN"))?;
    Ok(Name { hostname, domain, kernel })
}

/// An empty name is absent, not wrong, but for the override, which must say something if it is there.
fn valid(
    field: &'static str,
    value: &str,
    want: &'static str,
    rule: fn(&str) -> names::Reasons,
) -> Result<(), Mistake> {
    let why = rule(value).join(";");
    if why.is_empty() || (value.is_empty() && field != "HostnameOverride") {
        return Ok(());
    }
    Err(Mistake::Invalid { field, value: value.to_owned(), want, why })
}

/// A host name that is too long is cut.
fn shortened(pod: &str, hostname: &str) -> Result<String, Mistake> {
    if hostname.len() <= HOSTNAME {
        return Ok(hostname.to_owned());
    }
    let cut = hostname.char_indices().map(|(at, _)| at).take_while(|at| *at <= HOSTNAME).last().unwrap_or_default();
    let cut = hostname[..cut].trim_end_matches(['-', '.']);
    if cut.is_empty() {
        return Err(Mistake::Empty { pod: pod.to_owned(), hostname: hostname.to_owned() });
    }
    Ok(cut.to_owned())
}

fn kernel(hostname: &str, domain: &str, whole: bool) -> Result<String, Mistake> {
    if domain.is_empty() || !whole {
        return Ok(hostname.to_owned());
    }
    let whole = format!("{hostname}.{domain}");
    if whole.len() > NODENAME { Err(Mistake::TooLong { fqdn: whole }) } else { Ok(whole) }
}

/// Whose network a Pod is in, for its hosts file.
#[derive(Debug, Clone, Copy)]
pub enum Network<'a> {
    /// Its own, with these addresses.
    Own(&'a [String]),
    /// The Node's, whose hosts file has this text.
    Node(&'a str),
}

/// The text of a Pod's hosts file.
pub fn render(pod: &Value, name: &Name, network: Network<'_>) -> String {
    let mut text = match network {
        Network::Own(ips) => managed(name, ips),
        Network::Node(hosts) => format!("# Kubernetes-managed hosts file (host network).\n{hosts}"),
    };
    let aliases = pod.at("spec").list("hostAliases");
    if !aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for alias in aliases {
        text.push_str(&format!("{}\t{}\n", alias.text("ip"), alias.texts("hostnames").join("\t")));
    }
    text
}

fn managed(name: &Name, ips: &[String]) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n\
         127.0.0.1\tlocalhost\n\
         ::1\tlocalhost ip6-localhost ip6-loopback\n\
         fe00::0\tip6-localnet\n\
         fe00::0\tip6-mcastprefix\n\
         fe00::1\tip6-allnodes\n\
         fe00::2\tip6-allrouters\n",
    );
    let Name { hostname, domain, .. } = name;
    for ip in ips {
        match domain.as_str() {
            "" => text.push_str(&format!("{ip}\t{hostname}\n")),
            domain => text.push_str(&format!("{ip}\t{hostname}.{domain}\t{hostname}\n")),
        }
    }
    text
}
