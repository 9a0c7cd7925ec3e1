//! What a Pod has when its author did not say, and fields that say the same thing twice.

use crate::value::{Map, Value, json};

use super::volumes;
use crate::look::Look;
use crate::quantity::Quantity;

/// Fills in.
pub(super) fn fill(pod: &mut Value) {
    drop_old_annotations(pod);
    fill_spec(pod);
    sync_ips(pod);
}

/// Sets a field that is absent.
pub(super) fn absent(value: &mut Value, name: &'static str, default: impl Into<Value>) {
    if value.at(name).is_null() {
        value.set(name, default);
    }
}

/// The elements of a list, to be changed.
pub(super) fn items<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Annotations that held init containers before there was a field.
const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

fn drop_old_annotations(pod: &mut Value) {
    let Some(annotations) = pod.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    for name in OLD_ANNOTATIONS {
        annotations.shift_remove(name);
    }
    if annotations.is_empty() {
        pod.map_mut("metadata").shift_remove("annotations");
    }
}

fn fill_spec(pod: &mut Value) {
    pod.map_mut("spec");
    let spec = pod.get_mut("spec").expect("made above");
    fill_any_spec(spec);
    absent(spec, "enableServiceLinks", true);
    let on_host = spec.flag("hostNetwork");
    for list in ["initContainers", "containers"] {
        for container in items(spec, list) {
            if on_host {
                items(container, "ports").for_each(take_host_port);
            }
            request_limits(container);
        }
    }
}

/// Fills in the spec of a Pod or of a template. Some fields are filled in Pods only, so that
/// templates written before those fields existed stay equal to what is stored
/// (kubernetes/kubernetes issue 69445).
pub(super) fn fill_any_spec(spec: &mut Value) {
    absent(spec, "dnsPolicy", "ClusterFirst");
    absent(spec, "restartPolicy", "Always");
    absent(spec, "securityContext", json!({}));
    absent(spec, "terminationGracePeriodSeconds", 30);
    absent(spec, "schedulerName", "default-scheduler");
    if spec.int("terminationGracePeriodSeconds") < 0 {
        spec.set("terminationGracePeriodSeconds", 1);
    }
    same_service_account(spec);
    items(spec, "volumes").for_each(volumes::fill);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, list).for_each(fill_container);
    }
    round_amounts(spec, "overhead");
}

/// On the host's network a port is the host's port.
fn take_host_port(port: &mut Value) {
    if port.int("hostPort") == 0 {
        let number = port.int("containerPort");
        port.set("hostPort", number);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`.
fn same_service_account(spec: &mut Value) {
    let name = match spec.text("serviceAccountName") {
        "" => spec.text("serviceAccount"),
        name => name,
    }
    .to_owned();
    if !name.is_empty() {
        spec.set("serviceAccountName", name.clone());
        spec.set("serviceAccount", name);
    }
}

fn fill_container(container: &mut Value) {
    absent(container, "terminationMessagePath", "/dev/termination-log");
    absent(container, "terminationMessagePolicy", "File");
    let pull = pull_policy(container.text("image"));
    absent(container, "imagePullPolicy", pull);
    for port in items(container, "ports") {
        absent(port, "protocol", "TCP");
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            absent(field, "apiVersion", "v1");
        }
        if let Some(file) = variable.pointer_mut("/valueFrom/fileKeyRef") {
            absent(file, "optional", false);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        container.get_mut(probe).into_iter().for_each(fill_probe);
    }
    for hook in ["postStart", "preStop"] {
        container.pointer_mut(&format!("/lifecycle/{hook}/httpGet")).into_iter().for_each(fill_http_get);
    }
    if let Some(resources) = container.get_mut("resources") {
        round_amounts(resources, "limits");
        round_amounts(resources, "requests");
    }
}

fn fill_probe(probe: &mut Value) {
    absent(probe, "timeoutSeconds", 1);
    absent(probe, "periodSeconds", 10);
    absent(probe, "successThreshold", 1);
    absent(probe, "failureThreshold", 3);
    probe.get_mut("httpGet").into_iter().for_each(fill_http_get);
    if let Some(grpc) = probe.get_mut("grpc") {
        absent(grpc, "service", "");
    }
}

fn fill_http_get(action: &mut Value) {
    absent(action, "path", "/");
    absent(action, "scheme", "HTTP");
}

/// An image without tag and digest is `:latest`, which is pulled every time; so is none that cannot be read as an image.
pub(super) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let (path, last) = name.rsplit_once('/').map_or(("", name), |(path, last)| (path, last));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let host = |part: &str| part.contains(['.', ':']) || part == "localhost" || part != part.to_lowercase();
    let parts = path.split('/').skip_while(|part| part.is_empty()).enumerate();
    let readable = parts.chain([(1, last)]).all(|(at, part)| (at == 0 && host(part)) || is_image_part(part));
    let latest = tag.map_or(digest.is_none(), |tag| tag == "latest");
    if readable && latest { "Always" } else { "IfNotPresent" }
}

/// One part of an image's path: lower case letters and digits, with `.`, `_` and `-` between them.
fn is_image_part(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || "._-".contains(c))
}

/// Who limits a resource and does not request it, requests as much.
fn request_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(limits) = resources.map("limits").cloned() else { return };
    let mut requests = resources.map("requests").cloned().unwrap_or_default();
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
    requests.sort_keys();
    resources.set("requests", requests);
}

/// Resource lists hold nothing finer than a thousandth.
fn round_amounts(value: &mut Value, name: &str) {
    let amounts: Option<&mut Map> = value.get_mut(name).and_then(Value::as_object_mut);
    for amount in amounts.into_iter().flat_map(Map::values_mut) {
        if let Some(Ok(exact)) = amount.as_str().map(Quantity::parse) {
            *amount = exact.to_milli().to_string().into();
        }
    }
}

/// `podIP` is the first of `podIPs`; where they differ `podIP` wins.
fn sync_ips(pod: &mut Value) {
    let status = pod.at("status");
    let (ip, first) = (status.text("podIP"), status.list("podIPs").first().map(|ip| ip.text("ip")));
    if !ip.is_empty() && first != Some(ip) {
        let ips = json!([{ "ip": ip }]);
        pod.map_mut("status").insert("podIPs", ips);
    } else if let (true, Some(first)) = (ip.is_empty(), first.filter(|first| !first.is_empty())) {
        let first = first.to_owned();
        pod.map_mut("status").insert("podIP", first.into());
    }
}
