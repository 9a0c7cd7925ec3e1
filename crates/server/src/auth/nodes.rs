//! What a Node may do: read what it needs to serve Services and run its Pods, and write about itself and its Pods alone.
//! Kubernetes' node authorizer and its NodeRestriction, as far as our Nodes go.

use fairlead_api::load_balancer;
use fairlead_api::value::Value;
use fairlead_api::{Kind, Look, kinds, programmed};

use super::User;
use super::rbac::{Attributes, Target};

#[cfg(test)]
mod tests;

/// The group of all Nodes.
pub const GROUP: &str = "system:nodes";
/// What the user name of a Node begins with; its own name follows.
pub const PREFIX: &str = "system:node:";
/// Where the Leases of Nodes are.
const LEASES: &str = "kube-node-lease";
/// What the name of the Lease of an announcer begins with.
const ANNOUNCER: &str = "fairlead-announcer-";
/// The authority of the API, which is no secret.
const ROOT_CA: &str = "kube-root-ca.crt";
/// Labels by which an administrator keeps Pods apart; a Node does not give them to itself.
const KEPT_LABELS: [&str; 2] = ["node-restriction.kubernetes.io/", "node-role.kubernetes.io/"];

/// The name of the Node that a user is; `None`: no Node.
pub fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(PREFIX).filter(|name| !name.is_empty())?;
    user.groups.iter().any(|group| group == GROUP).then_some(name)
}

/// Whether a Node may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// It may.
    Yes,
    /// It may, if the Pod is bound to it.
    OwnPod,
    /// It may, if a Pod that is bound to it names the object, or if it is a certificate of a load balancer.
    NamedByPod,
    /// Its being a Node gives it no right to.
    No,
}

/// What being a Node gives. What is in the body of a request is [`restrict`]'s question.
pub fn right(node: &str, attributes: &Attributes<'_>) -> Right {
    let Target::Resource { group, resource, subresource, namespace, name } = attributes.target else {
        return Right::No;
    };
    let when = |holds: bool| if holds { Right::Yes } else { Right::No };
    match (group, resource, subresource, attributes.verb) {
        ("", "services" | "namespaces" | "nodes" | "pods", "", "get" | "list" | "watch") => Right::Yes,
        ("discovery.k8s.io", "endpointslices", "", "get" | "list" | "watch") => Right::Yes,
        ("networking.k8s.io", "servicecidrs", "", "get" | "list" | "watch") => Right::Yes,
        ("", "nodes", "", "create") => Right::Yes,
        ("", "nodes", "" | "status", "update" | "patch") => when(name == node),
        ("coordination.k8s.io", "leases", "", "create") => when([LEASES, programmed::NAMESPACE].contains(&namespace)),
        ("coordination.k8s.io", "leases", "", "get" | "update" | "patch") => when(match namespace {
            LEASES => is_own_lease(name, node),
            // A Pod that ends on one Node waits for the proxies of all Nodes, so it writes into
            // their Leases; `restrict` holds it to the annotation by which it asks.
            programmed::NAMESPACE => reporter(name).is_some(),
            _ => false,
        }),
        // Who of the Nodes answers for the address of a load balancer is seen by their heartbeats;
        // the proxies of all Nodes report in their Leases.
        ("coordination.k8s.io", "leases", "", "list" | "watch") => {
            when([LEASES, programmed::NAMESPACE].contains(&namespace))
        }
        ("" | "events.k8s.io", "events", "", "create" | "update" | "patch") => Right::Yes,
        ("", "pods", "", "delete") | ("", "pods", "status", "update" | "patch") => Right::OwnPod,
        ("", "configmaps", "", "get") if name == ROOT_CA => Right::Yes,
        ("", "configmaps" | "secrets" | "serviceaccounts", "", "get") => Right::NamedByPod,
        ("", "serviceaccounts", "token", "create") => Right::NamedByPod,
        _ => Right::No,
    }
}

/// The Leases of a Node: its own, and that of its announcer of load balancers.
fn is_own_lease(name: &str, node: &str) -> bool {
    name == node || name.strip_prefix(ANNOUNCER) == Some(node)
}

/// Returns the Node whose proxy reports in a Lease of this name.
fn reporter(lease: &str) -> Option<&str> {
    programmed::COMPONENTS.iter().find_map(|component| programmed::node_of_lease(component, lease))
}

/// Whether a Pod names an object: as a volume, for its environment, or as who it is.
pub fn names(pod: &Value, resource: &str, name: &str) -> bool {
    let spec = pod.at("spec");
    match resource {
        "secrets" => {
            mentions(spec, &["secretName"], &["secret", "secretRef", "secretKeyRef", "imagePullSecrets"], name)
        }
        "configmaps" => mentions(spec, &[], &["configMap", "configMapRef", "configMapKeyRef"], name),
        "serviceaccounts" => match spec.text("serviceAccountName") {
            "" => name == "default",
            own => own == name,
        },
        _ => false,
    }
}

/// Returns the audiences that the volumes of a Pod ask tokens for. None at all means the API
/// server, and asks for no audience.
pub fn token_audiences(pod: &Value) -> Vec<&str> {
    let volumes = pod.at("spec").list("volumes").iter();
    let sources = volumes.flat_map(|volume| volume.at("projected").list("sources"));
    sources.map(|source| source.at("serviceAccountToken").text("audience")).filter(|text| !text.is_empty()).collect()
}

/// Whether a load balancer of a Service shows the certificate of a Secret beside it.
pub fn shows(service: &Value, secret: &str) -> bool {
    let metadata = service.at("metadata");
    let annotations = metadata.at("annotations");
    let namespace = metadata.text("namespace");
    let named = load_balancer::certificates(|name| annotations.get(name)?.as_str());
    named
        .iter()
        .map(|name| name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name))
        .any(|name| name == secret)
}

/// Looks for fields that are the name, and for objects or lists of objects that have it. Stored objects are not nested deeply.
fn mentions(value: &Value, fields: &[&str], references: &[&str], name: &str) -> bool {
    let named = |value: &Value| value.text("name") == name;
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let key = key.as_str();
            (fields.contains(&key) && value.as_str() == Some(name))
                || (references.contains(&key)
                    && (named(value) || value.as_array().is_some_and(|list| list.iter().any(named))))
                || mentions(value, fields, references, name)
        }),
        Value::Array(list) => list.iter().any(|value| mentions(value, fields, references, name)),
        _ => false,
    }
}

/// Why a Node may not write this, whatever roles say.
pub fn restrict(user: &User, kind: &Kind, object: &Value, old: Option<&Value>) -> Result<(), String> {
    let Some(node) = node_of(user) else { return Ok(()) };
    let name = object.at("metadata").text("name");
    let refuse = |why: &str| Err(format!("node {node:?} {why}"));
    if *kind == kinds::NODE {
        if name != node {
            return refuse("is not allowed to write another Node");
        }
        if !same_part(object, old, "spec") {
            return refuse("is not allowed to say its own spec: ranges and taints are given to it");
        }
        if !same_kept_labels(object, old) {
            return refuse("is not allowed to change labels that keep Pods apart");
        }
    }
    if *kind == kinds::LEASE {
        let own = match object.at("metadata").text("namespace") {
            LEASES => is_own_lease(name, node),
            programmed::NAMESPACE => {
                reporter(name) == Some(node)
                    || (reporter(name).is_some() && old.is_some_and(|old| only_asks(object, old)))
            }
            _ => false,
        };
        if !own {
            return refuse("is not allowed to write a Lease that is not its own");
        }
    }
    if *kind == kinds::POD {
        let labels = |pod: &Value| pod.at("metadata").at("labels").clone();
        let same = old.is_some_and(|old| labels(object) == labels(old) && old.at("spec").text("nodeName") == node);
        if !same {
            return refuse("is not allowed to write more than the status of its Pods");
        }
    }
    Ok(())
}

/// Returns true if a write changes nothing of a Lease but the revision that is waited for, and
/// raises that.
fn only_asks(object: &Value, old: &Value) -> bool {
    let awaited = |lease: &Value| {
        let text = lease.at("metadata").at("annotations").text(programmed::AWAITS).to_owned();
        if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() }
    };
    let others = |lease: &Value, part: &str| -> Vec<(String, Value)> {
        // The server sets these itself, or changes them with each write.
        let kept = |key: &str| ![programmed::AWAITS, "annotations", "managedFields", "resourceVersion"].contains(&key);
        let fields = lease.at("metadata");
        let fields = if part.is_empty() { fields } else { fields.at(part) };
        let fields = fields.as_object().into_iter().flat_map(|map| map.iter());
        let mut fields: Vec<_> =
            fields.filter(|(key, _)| kept(key)).map(|(key, value)| (key.to_string(), value.clone())).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields
    };
    awaited(object).is_some_and(|new| new >= awaited(old).unwrap_or(0))
        && object.at("spec") == old.at("spec")
        && others(object, "") == others(old, "")
        && others(object, "annotations") == others(old, "annotations")
}

/// Whether a part is as it was; of a new object, whether it says nothing.
fn same_part(object: &Value, old: Option<&Value>, part: &str) -> bool {
    let new = object.at(part);
    match old {
        Some(old) => new == old.at(part),
        None => new.as_object().is_none_or(|map| map.is_empty()),
    }
}

fn same_kept_labels(object: &Value, old: Option<&Value>) -> bool {
    let kept = |object: &Value| -> Vec<(String, Value)> {
        let labels = object.at("metadata").map("labels").into_iter().flatten();
        let mut found: Vec<(String, Value)> = labels
            .filter(|(key, _)| KEPT_LABELS.iter().any(|kept| key.starts_with(kept)))
            .map(|(key, value)| (key.as_str().to_owned(), value.clone()))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    };
    kept(object) == old.map(kept).unwrap_or_default()
}
