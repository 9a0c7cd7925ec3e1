//! A Pod in kubectl's layout: where it is, what its containers do, and why they do not.

use fairlead_api::Look;
use serde_json::Value;

use super::{Page, moment, or_none};
use container::containers;

mod container;
mod volumes;

/// A Pod.
pub(super) fn describe(page: &mut Page, pod: &Value) {
    let (metadata, spec, status) = (pod.at("metadata"), pod.at("spec"), pod.at("status"));
    place(page, metadata, spec, status);
    page.labels("Labels", metadata.at("labels"));
    page.annotations(metadata.at("annotations"));
    state(page, metadata, status);
    let seccomp = spec.at("securityContext").at("seccompProfile");
    page.field_if("SeccompProfile", seccomp.text("type"));
    if seccomp.text("type") == "Localhost" {
        page.field("LocalhostProfile", seccomp.text("localhostProfile"));
    }
    page.field("IP", status.text("podIP"));
    match status.list("podIPs") {
        [] => page.field("IPs", "<none>"),
        list => {
            page.line(0, "IPs:");
            list.iter().for_each(|one| page.line(1, format!("IP:\t{}", one.text("ip"))));
        }
    }
    let controller = metadata.list("ownerReferences").iter().find(|owner| owner.flag("controller"));
    if let Some(owner) = controller {
        page.field("Controlled By", format!("{}/{}", owner.text("kind"), owner.text("name")));
    }
    page.field_if("NominatedNodeName", status.text("nominatedNodeName"));
    if !spec.list("initContainers").is_empty() {
        containers(page, "Init Containers", spec.list("initContainers"), status.list("initContainerStatuses"), pod);
    }
    containers(page, "Containers", spec.list("containers"), status.list("containerStatuses"), pod);
    conditions(page, spec, status);
    volumes::describe(page, spec.list("volumes"));
    page.field("QoS Class", status.text("qosClass"));
    page.labels("Node-Selectors", spec.at("nodeSelector"));
    tolerations(page, spec.list("tolerations"));
}

fn place(page: &mut Page, metadata: &Value, spec: &Value, status: &Value) {
    page.field("Name", metadata.text("name"));
    page.field("Namespace", metadata.text("namespace"));
    if let Some(priority) = spec.int_opt("priority") {
        page.field("Priority", priority);
    }
    page.field_if("Priority Class Name", spec.text("priorityClassName"));
    page.field_if("Runtime Class Name", spec.text("runtimeClassName"));
    page.field_if("Service Account", spec.text("serviceAccountName"));
    match spec.text("nodeName") {
        "" => page.field("Node", "<none>"),
        node => page.field("Node", format!("{node}/{}", status.text("hostIP"))),
    }
    if let Some(start) = status.text_opt("startTime") {
        page.field("Start Time", moment(start));
    }
}

fn state(page: &mut Page, metadata: &Value, status: &Value) {
    let phase = status.text("phase");
    match metadata.text_opt("deletionTimestamp") {
        Some(since) if !["Failed", "Succeeded"].contains(&phase) => {
            page.field("Status", format!("Terminating (lasts {})", super::since(since)));
            page.field("Termination Grace Period", format!("{}s", metadata.int("deletionGracePeriodSeconds")));
        }
        _ => page.field("Status", phase),
    }
    page.field_if("Reason", status.text("reason"));
    page.field_if("Message", status.text("message"));
}

fn conditions(page: &mut Page, spec: &Value, status: &Value) {
    let all = status.list("conditions");
    if !spec.list("readinessGates").is_empty() {
        page.line(0, "Readiness Gates:\n  Type\tStatus");
        for gate in spec.list("readinessGates") {
            let wanted = gate.text("conditionType");
            let found = all.iter().find(|condition| condition.text("type") == wanted);
            page.line(1, format!("{wanted} \t{} ", found.map_or("<none>", |condition| condition.text("status"))));
        }
    }
    if !all.is_empty() {
        page.line(0, "Conditions:\n  Type\tStatus");
        all.iter().for_each(|one| page.line(1, format!("{} \t{} ", one.text("type"), one.text("status"))));
    }
}

fn tolerations(page: &mut Page, tolerations: &[Value]) {
    let mut sorted: Vec<&Value> = tolerations.iter().collect();
    sorted.sort_by_key(|one| one.text("key").to_owned());
    let lines: Vec<String> = sorted.into_iter().map(toleration).collect();
    page.field("Tolerations", or_none(&lines.join("\n\t")));
}

fn toleration(one: &Value) -> String {
    let mut text = one.text("key").to_owned();
    for (mark, name) in [("=", "value"), (":", "effect")] {
        if !one.text(name).is_empty() {
            text = format!("{text}{mark}{}", one.text(name));
        }
    }
    if one.text("operator") == "Exists" && one.text("value").is_empty() {
        text = if text.is_empty() { "op=Exists".to_owned() } else { format!("{text} op=Exists") };
    }
    match one.int_opt("tolerationSeconds") {
        Some(seconds) => format!("{text} for {seconds}s"),
        None => text,
    }
}
