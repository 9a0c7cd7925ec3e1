//! Rules of Node.

use crate::value::{Value, json};

use super::{Column, Rules};
use crate::age::age;
use crate::look::Look;
use crate::schema::node::NODE;
use crate::status::Failure;
use crate::{Settings, ip};

mod validate;

/// The rules.
pub static RULES: Rules = Rules {
    metadata: crate::meta::Checks::CHANGE_ONLY,
    default: |node, _| default(node),
    admit: |node, _| admit(node),
    prepare_create,
    prepare_update,
    prepare_status,
    validate: |node, _, _| validate::whole(node),
    validate_update: |node, old, _| validate::update(node, old),
    validate_status: |node, old, _| validate::update(node, old),
    warnings: |node, _, _| warnings(node),
    selectable: &[("spec.unschedulable", |node| node.at("spec").flag("unschedulable").to_string())],
    columns: COLUMNS,
    row,
    ..Rules::PLAIN
};

fn default(node: &mut Value) {
    let status = node.at("status");
    if let (None, Some(capacity)) = (status.get("allocatable"), status.get("capacity").cloned()) {
        node.map_mut("status").insert("allocatable", capacity);
    }
    sync_ranges(node);
}

/// `podCIDR` is the first of `podCIDRs`; where they differ `podCIDR` wins.
fn sync_ranges(node: &mut Value) {
    let spec = node.at("spec");
    let (range, first) = (spec.text("podCIDR"), spec.texts("podCIDRs").first().copied());
    if !range.is_empty() && first != Some(range) {
        let ranges = json!([range]);
        node.map_mut("spec").insert("podCIDRs", ranges);
    } else if let (true, Some(first)) = (range.is_empty(), first.filter(|first| !first.is_empty())) {
        let first = first.to_owned();
        node.map_mut("spec").insert("podCIDR", first.into());
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// A new node is not ready, so that no Pod goes there before somebody says it is.
fn admit(node: &mut Value) -> Result<(), Failure> {
    let mut taints = node.at("spec").list("taints").to_vec();
    if !taints.iter().any(|taint| taint.text("key") == NOT_READY && taint.text("effect") == "NoSchedule") {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        node.map_mut("spec").insert("taints", taints.into());
    }
    Ok(())
}

/// Status may be sent with a create: a node describes itself.
fn prepare_create(node: &mut Value, _: &Settings) {
    node.map_mut("spec").shift_remove("configSource");
    if node.at("status").get("config").is_some() {
        node.map_mut("status").shift_remove("config");
    }
    NODE.arrange(node);
}

fn prepare_update(node: &mut Value, old: &Value, _: &Settings) {
    node.set("status", old.at("status").clone());
    if old.at("spec").get("configSource").is_none() {
        node.map_mut("spec").shift_remove("configSource");
    }
    NODE.arrange(node);
}

fn prepare_status(node: &mut Value, old: &Value, _: &Settings) {
    node.set("spec", old.at("spec").clone());
    if old.at("status").get("config").is_none() && node.at("status").get("config").is_some() {
        node.map_mut("status").shift_remove("config");
    }
    NODE.arrange(node);
}

fn warnings(node: &Value) -> Vec<String> {
    let spec = node.at("spec");
    let mut warnings = Vec::new();
    if spec.get("configSource").is_some() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text("externalID").is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (at, range) in spec.texts("podCIDRs").iter().enumerate() {
        warnings.extend(ip::cidr::warnings(&crate::Path::new("spec").child("podCIDRs").index(at), range));
    }
    warnings
}

const COLUMNS: &[Column] = &[
    Column { name: "Name", kind: "string", format: "name", description: "Name of the object.", priority: 0 },
    column("Status", "The status of the node.", 0),
    column("Roles", "The roles of the node.", 0),
    column("Age", "The time since the object was made.", 0),
    column("Version", "The version of what runs pods on the node.", 0),
    column("Internal-IP", "The first internal address of the node.", 1),
    column("External-IP", "The first external address of the node.", 1),
    column("OS-Image", "The operating system of the node.", 1),
    column("Kernel-Version", "The kernel of the node.", 1),
    column("Container-Runtime", "What runs containers on the node.", 1),
];

const fn column(name: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, kind: "string", format: "", description, priority }
}

fn row(node: &Value, now: i64) -> Vec<Value> {
    let (metadata, status) = (node.at("metadata"), node.at("status"));
    let system = status.at("nodeInfo");
    let known = |name: &str| match system.text(name) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let address = |kind: &str| {
        let found = status.list("addresses").iter().find(|address| address.text("type") == kind);
        found.map_or("<none>", |address| address.text("address"))
    };
    let mut kernel = known("kernelVersion");
    if !system.text("architecture").is_empty() {
        kernel = format!("{kernel} ({})", system.text("architecture"));
    }
    vec![
        metadata.text("name").into(),
        condition(node).into(),
        roles(metadata).into(),
        age(metadata.text("creationTimestamp"), now).into(),
        system.text("kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        known("osImage").into(),
        kernel.into(),
        known("containerRuntimeVersion").into(),
    ]
}

fn condition(node: &Value) -> String {
    let ready = node.at("status").list("conditions").iter().rfind(|condition| condition.text("type") == "Ready");
    let state = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node.at("spec").flag("unschedulable") { format!("{state},SchedulingDisabled") } else { state.to_owned() }
}

fn roles(metadata: &Value) -> String {
    let labels = metadata.map("labels").into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

#[cfg(test)]
mod tests;
