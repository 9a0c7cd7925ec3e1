//! A Node in kubectl's layout, with its Pods.

use fairlead_api::{Look, kinds};
use fairlead_cluster::browse::{Form, Query};
use fairlead_cluster::{Cluster, Resource};
use serde_json::Value;

use super::{Page, moment, or_none, pairs, since};

/// What a label of a role begins with.
const ROLE: &str = "node-role.kubernetes.io/";

/// The Pods of a Node; none if they cannot be read.
pub(super) async fn pods(cluster: &Cluster, node: &Value) -> Vec<Value> {
    let name = node.at("metadata").text("name");
    let fields = format!("spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed");
    let resource = Resource::of(&kinds::POD);
    let query = Query { fields, ..Query::default() };
    let pages = cluster.look(&resource, &query, Form::Whole).await.unwrap_or_default();
    pages.into_iter().flat_map(|page| super::super::kinds::items(page.body, &resource)).collect()
}

/// A Node.
pub(super) fn describe(page: &mut Page, node: &Value, pods: &[Value]) {
    let (metadata, spec, status) = (node.at("metadata"), node.at("spec"), node.at("status"));
    page.field("Name", metadata.text("name"));
    let labels = pairs(metadata.at("labels"));
    let roles: Vec<&str> = labels.iter().filter_map(|(label, _)| label.strip_prefix(ROLE)).collect();
    page.field("Roles", or_none(&roles.join(",")));
    page.labels("Labels", metadata.at("labels"));
    page.annotations(metadata.at("annotations"));
    page.field("CreationTimestamp", moment(metadata.text("creationTimestamp")));
    let taints: Vec<String> = spec.list("taints").iter().map(taint).collect();
    page.field("Taints", or_none(&taints.join("\n\t")));
    page.field("Unschedulable", spec.flag("unschedulable"));
    conditions(page, status.list("conditions"));
    page.line(0, "Addresses:");
    for address in status.list("addresses") {
        page.line(1, format!("{}:\t{}", address.text("type"), address.text("address")));
    }
    for (title, name) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        let mut amounts = pairs(status.at(name));
        amounts.sort();
        if !amounts.is_empty() {
            page.line(0, format!("{title}:"));
            amounts.iter().for_each(|(name, amount)| page.line(1, format!("{name}:\t{amount}")));
        }
    }
    system(page, status.at("nodeInfo"));
    page.field_if("PodCIDR", spec.text("podCIDR"));
    page.field_if("PodCIDRs", &spec.texts("podCIDRs").join(","));
    page.field_if("ProviderID", spec.text("providerID"));
    describe_pods(page, pods);
}

fn taint(taint: &Value) -> String {
    let value = match taint.text("value") {
        "" => String::new(),
        value => format!("={value}"),
    };
    format!("{}{value}:{}", taint.text("key"), taint.text("effect"))
}

fn conditions(page: &mut Page, conditions: &[Value]) {
    if conditions.is_empty() {
        return;
    }
    page.line(0, "Conditions:");
    page.line(1, "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
    page.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
    for one in conditions {
        let (beat, turned) = (moment(one.text("lastHeartbeatTime")), moment(one.text("lastTransitionTime")));
        let (kind, status) = (one.text("type"), one.text("status"));
        page.line(
            1,
            format!("{kind} \t{status} \t{beat} \t{turned} \t{} \t{}", one.text("reason"), one.text("message")),
        );
    }
}

fn system(page: &mut Page, info: &Value) {
    const FIELDS: [(&str, &str); 9] = [
        ("Machine ID", "machineID"),
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ];
    page.line(0, "System Info:");
    FIELDS.iter().for_each(|(title, name)| page.line(1, format!("{title}:\t{}", info.text(name))));
}

fn describe_pods(page: &mut Page, pods: &[Value]) {
    page.field("Non-terminated Pods", format!("({} in total)", pods.len()));
    if pods.is_empty() {
        return;
    }
    page.line(1, "Namespace\tName\tIP\tAge");
    page.line(1, "---------\t----\t--\t---");
    for pod in pods {
        let metadata = pod.at("metadata");
        let (namespace, name) = (metadata.text("namespace"), metadata.text("name"));
        let ip = or_none(pod.at("status").text("podIP"));
        page.line(1, format!("{namespace}\t{name}\t{ip}\t{}", since(metadata.text("creationTimestamp"))));
    }
}
