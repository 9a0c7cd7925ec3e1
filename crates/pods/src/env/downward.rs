//! The downward API: what a container may learn of its own Pod, Node and limits through variables.

use fairlead_api::{Look, golang, names, quantity::Quantity};
use serde_json::Value;

use super::{Given, Mistake};

/// The value of a field of the Pod.
pub(super) fn field(given: &Given<'_>, reference: &Value) -> Result<String, Mistake> {
    let version = reference.text_opt("apiVersion").filter(|version| !version.is_empty()).unwrap_or("v1");
    if version != "v1" {
        return Err(Mistake::Field(format!("unsupported pod version: {version}")));
    }
    let path = reference.text("fieldPath");
    if let Some((path, key)) = subscript(path) {
        return entry(given.pod, path, key);
    }
    let (meta, spec) = (given.pod.at("metadata"), given.pod.at("spec"));
    let first = |ips: &[String]| ips.first().cloned().unwrap_or_default();
    Ok(match path {
        "metadata.name" | "metadata.namespace" | "metadata.uid" => {
            meta.text(path.trim_start_matches("metadata.")).to_owned()
        }
        "metadata.labels" | "metadata.annotations" => lines(meta.at(path.trim_start_matches("metadata."))),
        "spec.nodeName" | "spec.host" => spec.text("nodeName").to_owned(),
        "spec.serviceAccountName" => spec.text("serviceAccountName").to_owned(),
        "status.hostIP" => first(given.host_ips),
        "status.hostIPs" => given.host_ips.join(","),
        "status.podIP" => first(given.pod_ips),
        "status.podIPs" => given.pod_ips.join(","),
        "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => {
            return Err(Mistake::Field(format!("unsupported fieldPath: {path}")));
        }
        _ => return Err(Mistake::Field(format!("field label not supported: {path}"))),
    })
}

/// `metadata.labels['app']` taken apart.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(path, _)| !path.is_empty())
}

/// One label or annotation; absent is empty.
fn entry(pod: &Value, path: &str, key: &str) -> Result<String, Mistake> {
    let (field, checked) = match path {
        "metadata.annotations" => ("annotations", key.to_lowercase()),
        "metadata.labels" => ("labels", key.to_owned()),
        _ => return Err(Mistake::Field(format!("field label does not support subscript: {path}['{key}']"))),
    };
    let wrong = names::label_key(&checked);
    if !wrong.is_empty() {
        let why = wrong.join(";");
        return Err(Mistake::Field(format!("invalid key subscript in {path}['{key}']: {why}")));
    }
    Ok(pod.at("metadata").at(field).text(key).to_owned())
}

/// All labels or annotations, one a line: `app="web"`.
fn lines(map: &Value) -> String {
    let pairs = map.as_object().into_iter().flatten();
    let mut lines: Vec<(&String, String)> =
        pairs.map(|(key, value)| (key, golang::quote(value.as_str().unwrap_or_default()))).collect();
    lines.sort();
    let lines: Vec<String> = lines.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    lines.join("\n")
}

/// An amount of a resource in units of the divisor, rounded up.
pub(super) fn resource(given: &Given<'_>, reference: &Value) -> Result<String, Mistake> {
    let wanted = reference.text("resource");
    let unsupported = || Mistake::Field(format!("unsupported container resource : {wanted}"));
    let (bound, name) = wanted.split_once('.').ok_or_else(unsupported)?;
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !matches!(bound, "limits" | "requests") || !known {
        return Err(unsupported());
    }
    let container = container(given, reference.text("containerName"))?;
    let amount = amount(container.at("resources").at(bound).at(name));
    let amount = match amount {
        0 if bound == "limits" => available(given, name),
        amount => amount,
    };
    let divisor = self::amount(reference.at("divisor"));
    let divisor = if divisor == 0 { 1000 } else { divisor };
    // Processors are counted in thousandths; of everything else there are only whole ones.
    let unit = if name == "cpu" { 1 } else { 1000 };
    let (amount, divisor) = (up(amount, unit), up(divisor, unit));
    Ok(up(amount, divisor).to_string())
}

fn container<'a>(given: &Given<'a>, name: &str) -> Result<&'a Value, Mistake> {
    if name.is_empty() {
        return Ok(given.container);
    }
    let spec = given.pod.at("spec");
    let mut all = spec.list("containers").iter().chain(spec.list("initContainers"));
    all.find(|container| container.text("name") == name)
        .ok_or_else(|| Mistake::Field(format!("container {name} not found")))
}

/// What a container without a limit may use: the Pod's limit if it has one, else all of the Node.
fn available(given: &Given<'_>, name: &str) -> i128 {
    let allocatable = amount(given.allocatable.at(name));
    let of_pod = amount(given.pod.at("spec").at("resources").at("limits").at(name));
    match (name, allocatable, of_pod) {
        ("cpu" | "memory", 1.., 1..) => of_pod,
        ("cpu" | "memory" | "ephemeral-storage", ..) => allocatable,
        // Huge pages are never more than was asked for.
        _ => 0,
    }
}

/// In thousandths; 0 when absent or unreadable.
fn amount(value: &Value) -> i128 {
    let text = value.as_str().map(str::to_owned).or_else(|| value.as_number().map(ToString::to_string));
    text.and_then(|text| Quantity::parse(&text).ok()).map_or(0, |quantity| quantity.milli())
}

/// Divided and rounded up, as positive amounts are.
fn up(amount: i128, divisor: i128) -> i128 {
    let divisor = divisor.max(1);
    amount.div_euclid(divisor) + i128::from(amount.rem_euclid(divisor) != 0)
}
