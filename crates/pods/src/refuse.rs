//! What cannot run here, and why? Images that this Node does not have, and whatever asks for more
//! than an unprivileged process has without the grant for it. Pure.

use fairlead_api::Look;
use fairlead_api::kinds::pod::privileges::{self, GRANTED, HOST_IMAGE};
use fairlead_kernel::process::{Identity, capability};
use serde_json::Value;

use crate::images::{Image, ImageUser};
use crate::shim::launch::Who;
use crate::users::UserRange;

#[cfg(test)]
mod tests;

/// The reason of a container whose image is not on this Node. It starts once the image is.
pub(crate) const NO_IMAGE: &str = "ImageNotSupported";
/// Capabilities of a container of an image that runs as root, but for CAP_MKNOD: what a Pod finds
/// on this Node is not guarded by rules for devices (containerd, oci/spec.go, defaultUnixCaps).
const USUAL: [&str; 11] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
];

/// Why a container is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// In a word.
    pub(crate) reason: &'static str,
    /// In a sentence.
    pub(crate) message: String,
}

/// Why a Pod is not started, if it is not. `find` says which images there are.
pub(crate) fn refused(pod: &Value, users: UserRange, find: impl Fn(&str) -> Option<Image>) -> Option<Refused> {
    let spec = pod.at("spec");
    let all = || spec.list("initContainers").iter().chain(spec.list("containers"));
    for container in all() {
        let name = container.text("name");
        let image = container.text("image");
        let Some(found) = find(image) else {
            let message = format!(
                "container {name:?} has image {image:?}, which is not on this Node, and nothing is pulled from registries: load it \
                 with \"fairlead image load\", or map its name in the config file (images); image \"{HOST_IMAGE}\" runs its command \
                 on the file system of the host"
            );
            return Some(Refused { reason: NO_IMAGE, message });
        };
        let line = found.command_line(container);
        if line.image.is_empty() && line.container.is_empty() {
            let message = format!("container {name:?} has no command: image {image:?} brings none");
            return Some(Refused { reason: "CreateContainerError", message });
        }
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

/// A number of the container's security context, or else of the Pod's.
fn number(pod: &Value, container: &Value, field: &str) -> Option<i64> {
    let of_pod = || pod.at("spec").at("securityContext").int_opt(field);
    container.at("securityContext").int_opt(field).or_else(of_pod)
}

/// The users that a container has where its Pod names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsualUsers {
    /// User and group of the Pod's own.
    pub(crate) own: (u32, u32),
    /// The user of the image, which has files of its own.
    pub(crate) image: Option<ImageUser>,
    /// The image may run as root: the administrator of the machine, or who made the Pod, has
    /// granted that.
    pub(crate) root_allowed: bool,
}

/// Returns the identity a container runs with: what it says, else what the Pod says, else the user
/// of the image, else the user and group of the Pod's own. An image that wants to be root is that
/// only where it may. `group_of` says which group of the image a user has that the Pod names.
pub(crate) fn who(
    pod: &Value,
    container: &Value,
    usual: &UsualUsers,
    group_of: impl Fn(u32) -> Option<u32>,
) -> Result<Who, Refused> {
    let wrong = |message: String| Refused { reason: "CreateContainerConfigError", message };
    let id = |field: &str, usual: u32| match number(pod, container, field) {
        Some(number) => {
            u32::try_from(number).map_err(|_| wrong(format!("{field}: {number} is no number of a user or group")))
        }
        None => Ok(usual),
    };
    let named = number(pod, container, "runAsUser").is_some();
    let image = usual.image.as_ref().filter(|image| !named && (image.user != 0 || usual.root_allowed));
    let user = id("runAsUser", image.map_or(usual.own.0, |image| image.user))?;
    let usual_group = match image {
        Some(image) => image.group,
        None => group_of(user).filter(|_| named).unwrap_or(usual.own.1),
    };
    let group = id("runAsGroup", usual_group)?;
    let context = container.at("securityContext");
    let whole = pod.at("spec").at("securityContext");
    if context.flag_opt("runAsNonRoot").unwrap_or(whole.flag("runAsNonRoot")) && user == 0 {
        // Kubernetes, pkg/kubelet/kuberuntime/security_context.go, verifyRunAsNonRoot.
        let why = match image {
            Some(_) => "container has runAsNonRoot and image will run as root",
            None => "container's runAsUser breaks non-root policy",
        };
        return Err(wrong(why.to_owned()));
    }
    let groups = whole.list("supplementalGroups").iter().filter_map(Value::as_i64).chain(whole.int_opt("fsGroup"));
    let groups = groups.filter_map(|group| u32::try_from(group).ok());
    let privileged = context.flag("privileged");
    let start = if usual.image.is_some() && user == 0 { usual_capabilities() } else { 0 };
    Ok(Who {
        user,
        group,
        groups: groups.chain(image.into_iter().flat_map(|image| image.groups.iter().copied())).collect(),
        capabilities: if privileged { Identity::ALL } else { capabilities(context, start).map_err(wrong)? },
        escalation: privileged || context.flag("allowPrivilegeEscalation"),
    })
}

fn usual_capabilities() -> u64 {
    USUAL.iter().filter_map(|name| capability(name)).fold(0, |all, number| all | 1 << number)
}

/// Returns the capabilities of a container that begins with some.
fn capabilities(security: &Value, start: u64) -> Result<u64, String> {
    let mut kept = start;
    let lists = security.at("capabilities");
    if lists.texts("drop").iter().any(|name| name.eq_ignore_ascii_case("ALL")) {
        kept = 0;
    }
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
