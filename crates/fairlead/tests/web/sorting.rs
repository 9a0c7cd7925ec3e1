//! The list of Services by any column, with the mouse and with keys.

use serde_json::{Value, json};

use super::browser::{Browser, browser};
use super::machine::{SERVICES, machine};

const ENTER: &str = "\u{e007}";

/// A column is sorted by pressing its head: how, and which Services come in which order.
#[track_caller]
fn check(browser: &Browser<'_>, column: &str, sorted: Option<&str>, order: &[&str]) {
    let state = browser.js(&format!("return document.querySelector('th.{column}').getAttribute('aria-sort')"));
    assert_eq!(state, json!(sorted), "{column}");
    let marked = browser.text("document.querySelectorAll('th[aria-sort]').length");
    assert_eq!(marked, if sorted.is_some() { "1" } else { "0" }, "{column}");
    let keys = "return [...document.querySelectorAll('tr[data-key]')].map((row) => row.dataset.key.split('/')) \
                .filter(([space, name]) => space === 'default' && name !== 'kubernetes').map(([, name]) => name)";
    assert_eq!(browser.js(keys), json!(order), "{column} {sorted:?}");
}

fn service(name: &str, kind: &str, address: &str, port: u16) -> Value {
    let ports = json!([{"port": port}]);
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": kind, "clusterIP": address, "ports": ports},
    })
}

#[test]
fn rows_are_sorted_by_the_column_whose_head_is_pressed() {
    let Some(machine) = machine("rows_are_sorted_by_the_column_whose_head_is_pressed", &[]) else { return };
    for one in [
        service("a", "ClusterIP", "10.96.0.20", 443),
        service("b", "NodePort", "10.96.0.9", 80),
        service("c", "ClusterIP", "10.96.0.100", 8080),
    ] {
        machine.api("POST", SERVICES, &one);
    }
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/c']");
    check(&browser, "ports", None, &["a", "b", "c"]);

    browser.click("th.ports button");
    check(&browser, "ports", Some("ascending"), &["b", "a", "c"]);
    browser.click("th.ports button");
    check(&browser, "ports", Some("descending"), &["c", "a", "b"]);
    browser.picture("sorted-light");
    // Another column forgets the first; addresses are numbers.
    browser.click("th.addresses button");
    check(&browser, "addresses", Some("ascending"), &["b", "a", "c"]);

    // Keys do the same.
    browser.js("document.querySelector('th.name button').focus()");
    browser.press(ENTER);
    check(&browser, "name", Some("ascending"), &["a", "b", "c"]);
    browser.press(ENTER);
    check(&browser, "name", Some("descending"), &["c", "b", "a"]);
    browser.press(ENTER);
    check(&browser, "name", None, &["a", "b", "c"]);

    // What the address says holds when the page is opened again, and for what comes later.
    browser.click("th.type button");
    browser.click("th.type button");
    check(&browser, "type", Some("descending"), &["b", "a", "c"]);
    browser.js("window.old = true; location.reload()");
    browser.until("it is the new page", "!window.old && document.querySelector('th[aria-sort=descending]')");
    browser.sees("tr[data-key='default/c']");
    machine.api("POST", SERVICES, &service("aa", "NodePort", "10.96.0.30", 1));
    browser.sees("tr[data-key='default/aa']");
    check(&browser, "type", Some("descending"), &["aa", "b", "a", "c"]);
    assert_eq!(browser.console(), Vec::<String>::new());
}
