//! The few things the page changes, and only for a session that may.

use serde_json::{Value, json};

use super::browser::browser;
use super::machine::{SERVICES, machine};

#[test]
fn only_a_link_made_for_it_can_drain_an_endpoint_and_delete_a_service() {
    let test = "only_a_link_made_for_it_can_drain_an_endpoint_and_delete_a_service";
    let Some(machine) = machine(test, &[]) else { return };
    machine.pod("web-1", "web");
    machine.service("web", "web");
    let browser = browser(&machine);

    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/web']");
    browser.go("#/services/default/web");
    browser.says("table.numbers", "pod/web-1");
    assert_eq!(browser.text("document.querySelectorAll('.danger').length"), "0");
    assert!(!browser.read("main").contains("Drain"));

    browser.open("about:blank");
    browser.open(&machine.link("--write"));
    browser.sees("tr[data-key='default/web']");
    browser.go("#/services/default/web");
    browser.says("table.numbers button", "Drain");
    browser.click("table.numbers button");
    let weight = || {
        let pod = machine.api("GET", "/api/v1/namespaces/default/pods/web-1", &Value::Null);
        pod["metadata"]["annotations"]["fairlead.dev/weight"].clone()
    };
    machine.wait("the Pod is drained", || weight() == json!("0"));
    browser.says("table.numbers button", "Undrain");
    browser.picture("drained-light");
    browser.click("table.numbers button");
    machine.wait("the Pod is no longer drained", || weight().is_null());

    // Deleting asks first.
    let there = || {
        let services = machine.api("GET", SERVICES, &Value::Null);
        services["items"].as_array().unwrap().iter().any(|one| one["metadata"]["name"] == "web")
    };
    browser.click(".facts .danger");
    browser.says("dialog", "default/web");
    browser.click("dialog .row button:first-child");
    assert!(there());
    browser.click(".facts .danger");
    browser.click("dialog .danger");
    machine.wait("the Service is gone", || !there());
    browser.until(
        "the list no longer has it",
        "document.querySelector('.gauges') && !document.querySelector(\"tr[data-key='default/web']\")",
    );
}
