//! The conditions of a Namespace that is on its way out, in the words of Kubernetes.

use fairlead_api::Look;
use serde_json::{Map, Value, json};

use super::content::Findings;

/// A condition: its type, then reason and message when all is well.
type Fine = (&'static str, &'static str, &'static str);

const DISCOVERY: Fine =
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered");
const PARSING: Fine =
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed");
const CONTENT: Fine = (
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
);
const REMAINING: Fine = ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed");
const FINALIZERS: Fine =
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished");

/// Brings the conditions of a status up to date; says whether that changed anything.
pub(super) fn set(status: &mut Map<String, Value>, findings: &Findings, now: &str) -> bool {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return false };
    let mut changed = false;
    for ((kind, reason, message), trouble) in troubles(findings) {
        let (status, reason, message) = match trouble {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        changed |= set_one(conditions, kind, &[("status", status), ("reason", reason), ("message", &message)], now);
    }
    changed
}

/// What is wrong about each condition, as reason and message.
fn troubles(findings: &Findings) -> [(Fine, Option<(&'static str, String)>); 5] {
    let failed = (!findings.failed.is_empty()).then(|| {
        let mut failed: Vec<&str> = findings.failed.iter().map(String::as_str).collect();
        failed.sort_unstable();
        let text = format!("Failed to delete all resource types, {} remaining: {}", failed.len(), failed.join(", "));
        ("ContentDeletionFailed", text)
    });
    let remaining = listed(
        findings
            .remaining
            .iter()
            .map(|(resource, count)| format!("{}.{} has {count} resource instances", resource.name, resource.group)),
    );
    let finalizers = listed(
        findings.finalizers.iter().map(|(finalizer, count)| format!("{finalizer} in {count} resource instances")),
    );
    [
        (DISCOVERY, findings.undiscovered.clone().map(|message| ("DiscoveryFailed", message))),
        (PARSING, None),
        (CONTENT, failed),
        (REMAINING, remaining.map(|list| ("SomeResourcesRemain", format!("Some resources are remaining: {list}")))),
        (
            FINALIZERS,
            finalizers.map(|list| {
                ("SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {list}"))
            }),
        ),
    ]
}

/// In a fixed order, so that the same state is the same text.
fn listed(items: impl Iterator<Item = String>) -> Option<String> {
    let mut items: Vec<String> = items.collect();
    items.sort_unstable();
    (!items.is_empty()).then(|| items.join(", "))
}

fn set_one(conditions: &mut Vec<Value>, kind: &str, wanted: &[(&'static str, &str); 3], now: &str) -> bool {
    let Some(known) = conditions.iter_mut().find(|condition| condition.text("type") == kind) else {
        let mut condition = json!({"type": kind, "lastTransitionTime": now});
        wanted.iter().for_each(|(field, text)| condition.set(*field, *text));
        conditions.push(condition);
        return true;
    };
    if wanted.iter().all(|(field, text)| known.text(field) == *text) {
        return false;
    }
    if known.text("status") != wanted[0].1 {
        known.set("lastTransitionTime", now);
    }
    wanted.iter().for_each(|(field, text)| known.set(*field, *text));
    true
}
