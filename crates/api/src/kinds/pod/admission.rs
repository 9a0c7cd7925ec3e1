//! What admission adds to a Pod: tolerations of nodes that fail, and the priority. There are no
//! priority classes and no runtime classes here, so a Pod cannot name one.

use crate::value::{Value, json};

use crate::golang;
use crate::look::Look;
use crate::status::{Failure, Subject};

/// Fills and checks a new Pod.
pub(super) fn admit(pod: &mut Value) -> Result<(), Failure> {
    add_tolerations(pod);
    let spec = pod.at("spec");
    let refused = |why: String| {
        let subject = Subject { group: "", kind: "pods", name: pod.at("metadata").text("name") };
        Err(Failure::forbidden(subject, &why))
    };
    let class = spec.text("priorityClassName");
    if !class.is_empty() {
        return refused(format!("no PriorityClass with name {class} was found"));
    }
    if let Some(priority) = spec.int_opt("priority").filter(|priority| *priority != 0) {
        return refused(format!(
            "the integer value of priority ({priority}) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name"
        ));
    }
    if let Some(policy) = spec.text_opt("preemptionPolicy").filter(|policy| *policy != PREEMPTION) {
        return refused(format!(
            "the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; priority admission controller computed {PREEMPTION} from the given PriorityClass name"
        ));
    }
    // kube-apiserver's RuntimeClass plugin (plugin/pkg/admission/runtimeclass/admission.go). An
    // overhead is only ever copied from a class.
    if let Some(class) = spec.text_opt("runtimeClassName") {
        return refused(format!("pod rejected: RuntimeClass {} not found", golang::quote(class)));
    }
    if !spec.at("overhead").is_null() {
        return refused(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".to_owned(),
        );
    }
    let spec = pod.map_mut("spec");
    spec.insert("priority", 0.into());
    spec.insert("preemptionPolicy", PREEMPTION.into());
    Ok(())
}

/// Keeps what [`admit`] filled when an update leaves it out.
pub(super) fn admit_update(pod: &mut Value, old: &Value) {
    add_tolerations(pod);
    for name in ["priority", "preemptionPolicy"] {
        if let (true, Some(value)) = (pod.at("spec").at(name).is_null(), old.at("spec").get(name)) {
            pod.map_mut("spec").insert(name.to_owned(), value.clone());
        }
    }
}

const PREEMPTION: &str = "PreemptLowerPriority";

/// Seconds a Pod stays on a node that is not ready or cannot be reached.
const STAY: i64 = 300;

fn add_tolerations(pod: &mut Value) {
    let mut tolerations = pod.at("spec").list("tolerations").to_vec();
    let given = tolerations.len();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |t: &Value| {
            matches!(t.text("key"), k if k.is_empty() || k == key) && matches!(t.text("effect"), "" | "NoExecute")
        };
        if !tolerations[..given].iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": STAY,
            }));
        }
    }
    if tolerations.len() > given {
        pod.map_mut("spec").insert("tolerations", tolerations.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_names_a_class_is_refused_as_there_are_none() {
        let table = [
            (json!({"runtimeClassName": "gvisor"}), "pod rejected: RuntimeClass \"gvisor\" not found"),
            (json!({"runtimeClassName": ""}), "pod rejected: RuntimeClass \"\" not found"),
            (
                json!({"overhead": {"cpu": "1"}}),
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            ),
            (json!({"priorityClassName": "high"}), "no PriorityClass with name high was found"),
        ];
        for (spec, why) in table {
            let failure = admit(&mut json!({"metadata": {"name": "p"}, "spec": spec})).expect_err(why);
            assert_eq!((failure.code, failure.message), (403, format!("pods \"p\" is forbidden: {why}")), "{spec}");
        }
    }
}
