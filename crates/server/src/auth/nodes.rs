//! What a Node may do: read what it needs to serve Services and run its Pods, and write about itself and its Pods alone.
//! Kubernetes' node authorizer and its NodeRestriction, as far as our Nodes go.

use fairlead_api::load_balancer;
use fairlead_api::value::Value;
use fairlead_api::{Kind, Look, kinds};

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
        ("coordination.k8s.io", "leases", "", "create") => when(namespace == LEASES),
        ("coordination.k8s.io", "leases", "", "get" | "update" | "patch") => {
            when(namespace == LEASES && is_own_lease(name, node))
        }
        // Who of the Nodes answers for the address of a load balancer is seen by their heartbeats.
        ("coordination.k8s.io", "leases", "", "list" | "watch") => when(namespace == LEASES),
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

/// Returns the audiences that the volumes of a Pod ask tokens for. None at all means the API server, and asks for no audience.
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
    if *kind == kinds::LEASE && (!is_own_lease(name, node) || object.at("metadata").text("namespace") != LEASES) {
        return refuse("is not allowed to write a Lease that is not its own");
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
