//! The conditions of a Pod that its Node reports, in the kubelet's words.

use fairlead_api::Look;
use serde_json::{Value, json};

use super::{Facts, initialized, is_ready, seconds};
use crate::unit::{Role, Unit};

/// What a condition says: whether, and why not.
struct Said {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Said {
    fn yes() -> Said {
        Said { holds: true, reason: "", message: String::new() }
    }

    fn no(reason: &'static str, message: impl Into<String>) -> Said {
        Said { holds: false, reason, message: message.into() }
    }
}

/// All of them.
pub(super) fn of(facts: &Facts<'_>, phase: &str) -> Vec<Value> {
    let containers = containers_ready(facts, phase);
    let ready = ready(facts, &containers);
    let said = [
        ("PodReadyToStartContainers", if facts.network { Said::yes() } else { Said::no("", "") }),
        ("Initialized", initialized_condition(facts, phase)),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", Said::yes()),
    ];
    // Tells a Job's Pod that failed by itself from one that was made to (KEP-3329).
    let evicted = facts.failed.filter(|(reason, _)| *reason == crate::worker::EVICTED);
    let disruption =
        evicted.map(|(_, message)| Said { holds: true, reason: "TerminationByKubelet", message: message.to_owned() });
    let disruption = disruption.map(|said| ("DisruptionTarget", said));
    said.into_iter().chain(disruption).map(|(kind, said)| condition(facts, kind, said)).collect()
}

fn condition(facts: &Facts<'_>, kind: &str, said: Said) -> Value {
    let status = if said.holds { "True" } else { "False" };
    let known = facts.before.list("conditions").iter().find(|known| known.text("type") == kind);
    let same =
        known.filter(|known| known.text("status") == status).and_then(|known| known.text_opt("lastTransitionTime"));
    let since = same.map_or_else(|| seconds(facts.now), str::to_owned);
    let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since,
        "reason": text(said.reason),
        "message": text(&said.message),
    });
    if let Some(generation) = facts.pod.at("metadata").int_opt("generation") {
        condition.set("observedGeneration", generation);
    }
    condition
}

fn initialized_condition(facts: &Facts<'_>, phase: &str) -> Said {
    match phase {
        "Succeeded" => Said { reason: "PodCompleted", ..Said::yes() },
        _ if initialized(facts.units) => Said::yes(),
        _ => {
            let open = |unit: &&Unit| match unit.role {
                Role::Init => unit.ended().is_none_or(|ended| ended.code != 0),
                Role::Sidecar => !unit.started,
                Role::Main => false,
            };
            Said::no(
                "ContainersNotInitialized",
                format!("containers with incomplete status: {}", names(facts.units, open)),
            )
        }
    }
}

fn containers_ready(facts: &Facts<'_>, phase: &str) -> Said {
    match phase {
        "Succeeded" => return Said::no("PodCompleted", ""),
        "Failed" => return Said::no("PodFailed", ""),
        _ => {}
    }
    let unready = |unit: &&Unit| unit.role != Role::Init && !is_ready(unit);
    if facts.units.iter().any(|unit| unready(&unit)) {
        return Said::no(
            "ContainersNotReady",
            format!("containers with unready status: {}", names(facts.units, unready)),
        );
    }
    Said::yes()
}

fn ready(facts: &Facts<'_>, containers: &Said) -> Said {
    if !containers.holds {
        return Said::no(containers.reason, containers.message.as_str());
    }
    let conditions = facts.pod.at("status").list("conditions");
    let mut open = Vec::new();
    for gate in facts.pod.at("spec").list("readinessGates") {
        let kind = gate.text("conditionType");
        match conditions.iter().find(|condition| condition.text("type") == kind) {
            None => open.push(format!("corresponding condition of pod readiness gate \"{kind}\" does not exist.")),
            Some(condition) if condition.text("status") != "True" => open.push(format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\", but {}",
                condition.text("status")
            )),
            Some(_) => {}
        }
    }
    if open.is_empty() { Said::yes() } else { Said::no("ReadinessGatesNotReady", open.join(", ")) }
}

/// `[a b]`.
fn names(units: &[Unit], chosen: impl Fn(&&Unit) -> bool) -> String {
    let names: Vec<&str> = units.iter().filter(chosen).map(|unit| unit.name.as_str()).collect();
    format!("[{}]", names.join(" "))
}
