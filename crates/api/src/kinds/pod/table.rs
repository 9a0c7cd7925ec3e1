//! Pods as `kubectl get` shows them.

use crate::value::Value;

use super::lifecycle::stays;
use crate::age::age;
use crate::kinds::Column;
use crate::look::Look;

/// The columns.
pub(super) const COLUMNS: &[Column] = &[
    Column { name: "Name", kind: "string", format: "name", description: "Name of the object.", priority: 0 },
    column("Ready", "The aggregate readiness state of this pod for accepting traffic.", 0),
    column("Status", "The aggregate status of the containers in this pod.", 0),
    column("Restarts", "How often containers of this pod were started again, and when that happened last.", 0),
    column("Age", "The time since the object was made.", 0),
    column("IP", "The primary address of the pod.", 1),
    column("Node", "The node the pod runs on.", 1),
    column("Nominated Node", "The node the pod may run on once others have left it.", 1),
    column("Readiness Gates", "How many of the conditions that make the pod ready are true.", 1),
];

const fn column(name: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, kind: "string", format: "", description, priority }
}

/// The cells of one Pod.
pub(super) fn row(pod: &Value, now: i64) -> Vec<Value> {
    let (metadata, spec, status) = (pod.at("metadata"), pod.at("spec"), pod.at("status"));
    let state = State::of(pod);
    let restarts = match state.last_restart {
        Some(last) if state.restarts != 0 => format!("{} ({} ago)", state.restarts, age(last, now)),
        _ => state.restarts.to_string(),
    };
    let first = status.list("podIPs").first().map_or("", |ip| ip.text("ip"));
    let or_none = |text: &str| Value::from(if text.is_empty() { "<none>" } else { text });
    vec![
        metadata.text("name").into(),
        format!("{}/{}", state.ready, state.total).into(),
        state.reason.into(),
        restarts.into(),
        age(metadata.text("creationTimestamp"), now).into(),
        or_none(first),
        or_none(spec.text("nodeName")),
        or_none(status.text("nominatedNodeName")),
        readiness_gates(spec, status).into(),
    ]
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = spec.list("readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(status, gate.text("conditionType"))).count();
    format!("{open}/{}", gates.len())
}

fn is_true(status: &Value, condition: &str) -> bool {
    let found = status.list("conditions").iter().find(|c| c.text("type") == condition);
    found.is_some_and(|c| c.text("status") == "True")
}

/// What the containers of a Pod add up to.
struct State<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    /// When a container last ended before it was started again.
    last_restart: Option<&'a str>,
}

impl<'a> State<'a> {
    fn of(pod: &'a Value) -> State<'a> {
        let (spec, status) = (pod.at("spec"), pod.at("status"));
        let staying = spec.list("initContainers").iter().filter(|c| stays(c)).count();
        let mut state = State {
            ready: 0,
            total: spec.list("containers").len() + staying,
            reason: status.text_opt("reason").unwrap_or(status.text("phase")).to_owned(),
            restarts: 0,
            last_restart: None,
        };
        let gated = |c: &Value| c.text("type") == "PodScheduled" && c.text("reason") == "SchedulingGated";
        if status.list("conditions").iter().any(gated) {
            "SchedulingGated".clone_into(&mut state.reason);
        }
        let initializing = state.count_init(spec, status);
        if !initializing || is_true(status, "Initialized") {
            state.forget_finished_init(spec, status);
            state.count_containers(status);
        }
        state.mark_deleted(pod);
        state
    }

    /// Counts init containers; true when one of them is still at work or has failed.
    fn count_init(&mut self, spec: &Value, status: &'a Value) -> bool {
        for (at, container) in status.list("initContainerStatuses").iter().enumerate() {
            self.count_restarts(container);
            let (ended, waiting) = (container.at("state").at("terminated"), container.at("state").at("waiting"));
            if !ended.is_null() && ended.int("exitCode") == 0 {
                continue;
            }
            if is_staying(spec, container) && container.flag("started") {
                self.ready += usize::from(container.flag("ready"));
                continue;
            }
            self.reason = if !ended.is_null() {
                format!("Init:{}", end_reason(ended))
            } else if !matches!(waiting.text("reason"), "" | "PodInitializing") {
                format!("Init:{}", waiting.text("reason"))
            } else {
                format!("Init:{at}/{}", spec.list("initContainers").len())
            };
            return true;
        }
        false
    }

    /// Once a Pod is up only restarts of what still runs count.
    fn forget_finished_init(&mut self, spec: &Value, status: &'a Value) {
        (self.restarts, self.last_restart) = (0, None);
        for container in status.list("initContainerStatuses").iter().filter(|c| is_staying(spec, c)) {
            self.count_restarts(container);
        }
    }

    fn count_containers(&mut self, status: &'a Value) {
        let (mut running, mut failure) = (false, None);
        for container in status.list("containerStatuses").iter().rev() {
            self.count_restarts(container);
            let state = container.at("state");
            let (waiting, ended) = (state.at("waiting").text("reason"), state.at("terminated"));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if !ended.is_null() {
                self.reason = end_reason(ended);
                failure = (ended.int("exitCode") != 0).then(|| self.reason.clone()).or(failure);
            } else if container.flag("ready") && !state.at("running").is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && is_true(status, "Ready") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn mark_deleted(&mut self, pod: &Value) {
        if pod.at("metadata").at("deletionTimestamp").is_null() {
            return;
        }
        if pod.at("status").text("reason") == "NodeLost" {
            "Unknown".clone_into(&mut self.reason);
        } else if !matches!(pod.at("status").text("phase"), "Failed" | "Succeeded") {
            "Terminating".clone_into(&mut self.reason);
        }
    }

    fn count_restarts(&mut self, container: &'a Value) {
        self.restarts = self.restarts.saturating_add(container.int("restartCount"));
        // Times in the API are all written alike, so text compares as time does.
        let ended = container.at("lastState").at("terminated").text_opt("finishedAt");
        self.last_restart = self.last_restart.max(ended);
    }
}

fn is_staying(spec: &Value, status: &Value) -> bool {
    spec.list("initContainers").iter().any(|c| c.text("name") == status.text("name") && stays(c))
}

fn end_reason(ended: &Value) -> String {
    match (ended.text("reason"), ended.int("signal")) {
        ("", 0) => format!("ExitCode:{}", ended.int("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
