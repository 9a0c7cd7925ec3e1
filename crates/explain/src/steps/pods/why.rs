//! Why one Pod is not ready: the first thing on its way from being created to being ready that did not happen.

use fairlead_api::source::Key;
use fairlead_api::view::{Condition, View};

use crate::pod::ContainerState;
use crate::steps::{Case, list, listening, remedy};
use crate::{Cause, ContainerStatus, Pod, Stopped};

/// Why a Pod is not ready.
pub(super) struct Why {
    pub(super) cause: Cause,
    pub(super) message: String,
    pub(super) remedy: Vec<String>,
    /// Whether waiting may be all it takes.
    passing: bool,
}

impl Why {
    /// Whether the Pod has had its time.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.cause, Cause::PodFailed | Cause::PodSucceeded | Cause::PodTerminating)
    }

    /// Whether it is how every Pod begins.
    pub(super) fn is_passing(&self) -> bool {
        self.passing
    }
}

/// Why a Pod is not ready; `None` if it is.
pub(super) fn why(case: &Case<'_>, pod: &Pod) -> Option<Why> {
    let looks = [ended, leaving, unscheduled, node, init, containers, gates, address, unready];
    looks.iter().find_map(|look| look(case, pod))
}

fn key(pod: &Pod) -> Key {
    let meta = &pod.view.metadata;
    Key::new(meta.namespace.as_str(), meta.name.as_str())
}

fn because(cause: Cause, message: impl Into<String>, pod: &Pod, first: Option<String>) -> Option<Why> {
    let remedy = first.into_iter().chain([remedy::describe("pod", &key(pod))]).collect();
    let passing = matches!(cause, Cause::PodStarting | Cause::InitContainerRunning);
    Some(Why { cause, message: message.into(), remedy, passing })
}

/// `: words`, or nothing.
fn colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

fn ended(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    let said = [&pod.reason, &pod.message].into_iter().filter(|text| !text.is_empty());
    let said = said.map(String::as_str).collect::<Vec<_>>().join(", ");
    let delete = format!("kubectl delete pod {}", remedy::named(&key(pod)));
    match pod.view.status.phase.as_str() {
        "Failed" => because(Cause::PodFailed, format!("it is in phase Failed{}", colon(&said)), pod, Some(delete)),
        "Succeeded" => because(
            Cause::PodSucceeded,
            "it is in phase Succeeded: its containers have ended, and a Service needs ones that stay",
            pod,
            Some(delete),
        ),
        _ => None,
    }
}

fn leaving(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    let since = pod.view.metadata.deletion_timestamp.as_ref()?;
    because(Cause::PodTerminating, format!("it is being deleted since {since}"), pod, None)
}

fn unscheduled(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    if !pod.view.spec.node_name.is_empty() {
        return None;
    }
    let condition = Condition::find(&pod.view.status.conditions, "PodScheduled");
    let nodes = Some("kubectl get nodes --show-labels".to_owned());
    match condition.filter(|condition| condition.status == "False") {
        Some(condition) => {
            let message = format!("no Node can take it{}", colon(&condition.message));
            because(Cause::PodUnschedulable, message, pod, nodes)
        }
        None => {
            let message = "it has no Node, and nothing says that somebody looks for one: does a scheduler run?";
            because(Cause::PodNotScheduled, message, pod, nodes)
        }
    }
}

fn node(case: &Case<'_>, pod: &Pod) -> Option<Why> {
    // Without any Node it is only not known which there are.
    case.objects.nodes().next()?;
    let name = &pod.view.spec.node_name;
    let nodes = "kubectl get nodes".to_owned();
    let Some(node) = case.objects.node(name) else {
        return because(Cause::NodeMissing, format!("its Node {name} does not exist"), pod, Some(nodes));
    };
    let condition = Condition::find(&node.status.conditions, "Ready").filter(|condition| condition.status != "True")?;
    if pod.view.is_ready() {
        return None;
    }
    let said = colon(&condition.message);
    let describe = format!("kubectl describe node {}", remedy::quote(name));
    because(Cause::NodeNotReady, format!("its Node {name} is not ready{said}"), pod, Some(describe))
}

/// Init containers matter until the others have started.
fn init(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    let begun = pod.containers.iter().any(|status| status.state.running.is_some() || status.state.terminated.is_some());
    if begun || pod.view.is_ready() {
        return None;
    }
    let is_sidecar = |name: &str| {
        let inits = &pod.view.spec.init_containers;
        inits.iter().any(|init| init.name == name && init.restart_policy.as_deref() == Some("Always"))
    };
    let open = |status: &&ContainerStatus| match &status.state {
        ContainerState { terminated: Some(stopped), .. } => stopped.exit_code != 0,
        // A sidecar that has started is done with its part.
        ContainerState { running: Some(_), .. } => !is_sidecar(&status.name) || status.started != Some(true),
        _ => true,
    };
    let status = pod.init_containers.iter().find(open)?;
    let name = &status.name;
    let logs = remedy::logs(&key(pod), name, status.restart_count > 0);
    let ended = stopped(status).filter(|stopped| stopped.exit_code != 0);
    if let Some(waiting) = &status.state.waiting
        && let Some((cause, message)) = refused(name, &waiting.reason, &waiting.message)
    {
        return because(cause, message, pod, None);
    }
    if let Some(ended) = ended {
        let message = format!("its init container {name} fails: {}", how(ended));
        return because(Cause::InitContainerFailing, message, pod, Some(logs));
    }
    if status.state.running.is_some() {
        let message = format!("its init container {name} has not ended yet");
        return because(Cause::InitContainerRunning, message, pod, Some(logs));
    }
    None
}

fn containers(case: &Case<'_>, pod: &Pod) -> Option<Why> {
    let open = pod.containers.iter().filter(|status| !status.ready);
    let found: Vec<_> = open.filter_map(|status| container(case, pod, status)).collect();
    if found.is_empty() && pod.containers.is_empty() && !pod.view.is_ready() && pod.view.status.phase != "Running" {
        let message = format!("its Node {} has not started it yet", pod.view.spec.node_name);
        return because(Cause::PodStarting, message, pod, None);
    }
    // One that only waits for its turn says less than one that fails.
    found.into_iter().min_by_key(Why::is_passing)
}

fn container(case: &Case<'_>, pod: &Pod, status: &ContainerStatus) -> Option<Why> {
    let name = &status.name;
    if let Some(waiting) = &status.state.waiting {
        if let Some((cause, message)) = refused(name, &waiting.reason, &waiting.message) {
            return because(cause, message, pod, None);
        }
        if waiting.reason == "CrashLoopBackOff" {
            return crashing(pod, status);
        }
        let message = format!("its container {name} is about to start ({})", waiting.reason);
        return because(Cause::PodStarting, message, pod, None);
    }
    if status.state.terminated.is_some() {
        return crashing(pod, status);
    }
    status.state.running?;
    probes(case, pod, status)
}

/// What a kubelet says of a container it cannot start.
fn refused(name: &str, reason: &str, message: &str) -> Option<(Cause, String)> {
    let said = colon(message);
    let (cause, what) = match reason {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "RegistryUnavailable"
        | "ImageInspectError" => (Cause::ImagePullFailed, "cannot have its image"),
        "CreateContainerConfigError" | "ImageNotSupported" | "HostPrivilegesNotGranted" => {
            (Cause::ContainerConfigWrong, "cannot be made as it is described")
        }
        "CreateContainerError" | "RunContainerError" | "StartError" | "PostStartHookError" => {
            (Cause::ContainerStartFailed, "cannot be started")
        }
        _ => return None,
    };
    Some((cause, format!("its container {name} {what} ({reason}){said}")))
}

fn stopped(status: &ContainerStatus) -> Option<&Stopped> {
    status.state.terminated.as_ref().or(status.last_state.terminated.as_ref())
}

fn how(stopped: &Stopped) -> String {
    let Stopped { exit_code, reason, message } = stopped;
    let last = message.trim().lines().last().unwrap_or_default();
    let reason = if reason.is_empty() || reason == "Error" { String::new() } else { format!(" ({reason})") };
    format!("it ended with exit code {exit_code}{reason}{}", colon(last))
}

fn crashing(pod: &Pod, status: &ContainerStatus) -> Option<Why> {
    let ContainerStatus { name, restart_count, .. } = status;
    let ended = stopped(status);
    let how = ended.map(how).unwrap_or_default();
    let logs = Some(remedy::logs(&key(pod), name, status.state.terminated.is_none() && *restart_count > 0));
    if ended.is_some_and(|ended| ended.reason == "OOMKilled") {
        let message = format!("its container {name} uses more memory than its limit and is killed for it");
        return because(Cause::OutOfMemory, message, pod, logs);
    }
    if ended.is_some_and(|ended| ended.reason == "StartError") {
        return because(
            Cause::ContainerStartFailed,
            format!("its container {name} cannot be started: {how}"),
            pod,
            logs,
        );
    }
    let succeeded = ended.is_some_and(|ended| ended.exit_code == 0);
    let stays = match pod.restart_policy.as_str() {
        "Never" => true,
        "OnFailure" => succeeded,
        _ => false,
    };
    if stays {
        let message = format!("its container {name} is not started again: {how}");
        return because(Cause::ContainerEnded, message, pod, logs);
    }
    let message = format!("its container {name} ends again and again (restarts: {restart_count}){}", colon(&how));
    because(Cause::CrashLoop, message, pod, logs)
}

fn probes(case: &Case<'_>, pod: &Pod, status: &ContainerStatus) -> Option<Why> {
    let name = &status.name;
    let warning = case.objects.warning(Pod::KIND.kind, &key(pod), |event| event.reason == "Unhealthy");
    let said = warning.map(|event| colon(&event.message)).unwrap_or_default();
    let said = format!("{said}{}", listens(case, pod));
    let logs = Some(remedy::logs(&key(pod), name, false));
    if pod.startup_probed.contains(name) && status.started == Some(false) {
        let message = format!("the startup probe of its container {name} has not passed{said}");
        return young(warning.is_none(), because(Cause::StartupProbeFailing, message, pod, logs));
    }
    if pod.probed.contains(name) {
        let message = format!("the readiness probe of its container {name} does not pass{said}");
        return young(warning.is_none(), because(Cause::ReadinessProbeFailing, message, pod, logs));
    }
    None
}

/// What listens in the Pod, for a probe may look elsewhere.
fn listens(case: &Case<'_>, pod: &Pod) -> String {
    match case.sockets(pod) {
        None => String::new(),
        Some([]) => " (nothing listens in it)".to_owned(),
        Some(sockets) => format!(" (it listens on {})", list(sockets.iter().map(listening::text))),
    }
}

/// A probe that nobody complains of may only not have had its turn.
fn young(quiet: bool, why: Option<Why>) -> Option<Why> {
    why.map(|why| Why { passing: quiet, ..why })
}

fn gates(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    let conditions = &pod.view.status.conditions;
    let closed: Vec<&String> =
        pod.readiness_gates.iter().filter(|gate| !Condition::is_true(conditions, gate)).collect();
    if closed.is_empty() || pod.view.is_ready() {
        return None;
    }
    let message = format!("its readiness gate is closed: nobody has set the condition {} to True", list(closed.iter()));
    because(Cause::ReadinessGateClosed, message, pod, Some(remedy::get("pod", &key(pod))))
}

fn address(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    let has = pod.view.addresses().next().is_some();
    if has { None } else { because(Cause::PodWithoutAddress, "it has no IP address", pod, None) }
}

fn unready(_: &Case<'_>, pod: &Pod) -> Option<Why> {
    if pod.view.is_ready() {
        return None;
    }
    let said = pod.view.ready_condition().map(|condition| match condition.message.as_str() {
        "" => colon(&condition.reason),
        message => colon(message),
    });
    because(Cause::PodNotReady, format!("it does not say that it is{}", said.unwrap_or_default()), pod, None)
}
