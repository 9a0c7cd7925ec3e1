//! What is wrong with a Service is told by an Event, and so is that it is mended.

use serde_json::{Value, json};

use super::lab::{Lab, lab};
use super::setup::{pod, service};

/// Reasons and messages of Events about the Service.
fn told(lab: &Lab) -> Vec<(String, String, String)> {
    let fields = "involvedObject.kind%3DService,involvedObject.name%3Dweb";
    let list = lab.api("GET", &format!("/api/v1/namespaces/default/events?fieldSelector={fields}"), &Value::Null);
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let own = items.iter().filter(|event| event["source"]["component"] == "fairlead-explain");
    own.map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
}

#[test]
fn a_service_that_stays_broken_gets_an_event_and_another_when_it_is_mended() {
    let Some(lab) = lab("a_service_that_stays_broken_gets_an_event_and_another_when_it_is_mended", &[]) else { return };
    // The Pod first: without it the Service would be broken for another reason.
    lab.create("default", &pod(json!({"metadata": {"labels": {"app": "wbe"}}})));
    lab.create("default", &service(json!({})));
    lab.wait("an Event tells", || {
        told(&lab).iter().any(|(kind, reason, _)| kind == "Warning" && reason == "LabelValueDiffers")
    });
    assert_eq!(lab.explain("default", "svc/web").first(), Some("LabelValueDiffers"));
    let all = told(&lab);
    let message = &all.iter().find(|(_, reason, _)| reason == "LabelValueDiffers").unwrap().2;
    assert!(message.contains("wbe") && message.contains("try: kubectl label"), "{all:?}");

    let path = "/api/v1/namespaces/default/pods/web-1";
    let mut web = lab.api("GET", path, &Value::Null);
    web["metadata"]["labels"]["app"] = "web".into();
    lab.api("PUT", path, &web);
    lab.wait("another tells that it is mended", || {
        told(&lab).iter().any(|(kind, reason, _)| kind == "Normal" && reason == "Mended")
    });
    // What it passes through on the way is told, too, if the machine is slow.
    let all = told(&lab);
    let mut normal = all.iter().filter(|(kind, ..)| kind == "Normal");
    assert!(normal.all(|(_, reason, message)| reason == "Mended" && message.starts_with("no longer so: ")), "{all:?}");
}
