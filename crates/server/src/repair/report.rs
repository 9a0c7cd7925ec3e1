//! Tells of findings: in the log, and in an Event about the object. What only people can mend is told once, by whichever server
//! sees it first: its Event has a name of its own, and is written again only when it is gone.

use fairlead_api::Failure;
use fairlead_api::repair::{About, Finding, Mend};
use fairlead_api::{Value, json};
use jiff::Timestamp;
use ring::digest::{SHA256, digest};

use super::kinds;
use crate::{Inner, bootstrap, object};

/// Tells of a finding; says whether it wrote an Event.
pub(super) async fn tell(server: &Inner, finding: &Finding, now: Timestamp) -> bool {
    let message = finding.problem.to_string();
    let Some(event) = event(server, finding, &message, now) else {
        tracing::warn!("{message}");
        return false;
    };
    let metadata = &event["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    let key = object::key(&kinds::EVENTS_EVENT, text("namespace"), text("name"));
    if !matches!(server.store.get(&key).await, Ok(None)) {
        return false;
    }
    let About { namespace, name, .. } = &finding.about;
    tracing::warn!(namespace, name, "{message}");
    let written: Result<(), Failure> = bootstrap::ensure(server, &kinds::EVENTS_EVENT, event).await;
    // A namespace on its way out takes no Events.
    written.inspect_err(|failure| tracing::debug!(why = failure.message, "an Event was not written")).is_ok()
}

fn event(server: &Inner, finding: &Finding, message: &str, now: Timestamp) -> Option<Value> {
    let About { kind, namespace, name, uid, revision } = &finding.about;
    let (reason, action) = finding.problem.reason()?;
    let kind = (*kind)?;
    let controller = finding.problem.controller();
    let mut regarding = json!({"kind": kind.kind});
    for (field, value) in [("namespace", namespace), ("name", name), ("uid", uid)] {
        if !value.is_empty() {
            regarding[field] = value.as_str().into();
        }
    }
    regarding["apiVersion"] = kind.api_version().into();
    regarding["resourceVersion"] = revision.to_string().into();
    Some(json!({
        "metadata": {
            "name": event_name(finding, reason, message, now),
            // Events about objects without a namespace are in the default one.
            "namespace": if namespace.is_empty() { "default" } else { namespace },
        },
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "reportingController": controller,
        "reportingInstance": format!("{controller}-{}", server.options.advertise.ip()),
        "action": action,
        "reason": reason,
        "regarding": regarding,
        "note": message,
        "type": "Warning",
    }))
}

/// A repair is an event each time; what cannot be mended is one for as long as it lasts.
fn event_name(finding: &Finding, reason: &str, message: &str, now: Timestamp) -> String {
    let About { name, uid, .. } = &finding.about;
    let when = if finding.mend == Mend::Nothing { 0 } else { now.as_nanosecond() };
    let hash = digest(&SHA256, format!("{uid}\n{reason}\n{message}\n{when}").as_bytes());
    let number = u64::from_be_bytes(hash.as_ref()[..8].try_into().expect("it has 32 bytes"));
    format!("{name}.{number:016x}")
}
