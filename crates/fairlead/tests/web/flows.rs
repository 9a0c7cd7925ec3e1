//! What people come for: which Service is broken and why, where connections go, what happens to a packet, what the DNS says.

use std::sync::mpsc::{self, TryRecvError};
use std::thread;

use serde_json::json;

use super::browser::browser;
use super::machine::{Machine, machine};

#[test]
fn a_link_leads_to_the_cause_of_a_broken_service_and_the_page_sees_it_mended() {
    let test = "a_link_leads_to_the_cause_of_a_broken_service_and_the_page_sees_it_mended";
    let Some(machine) = machine(test, &[]) else { return };
    machine.pod("web-1", "web");
    machine.service("web", "web");
    machine.service("lost", "wbe");
    let browser = browser(&machine);

    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/web']");
    println!("{}", browser.painted());
    assert!(!browser.text("location.href").contains("token"), "the token is still in the address");
    browser.says("tr[data-key='default/web'] .endpoints", "1/1");
    browser.says(".gauge.is-broken b", "1");
    browser.picture("list-light");

    // Only what is looked for is left.
    browser.fill("input[type=search]", "lost");
    browser.until("one row is left", "document.querySelectorAll('tr[data-key]').length === 1");
    browser.says("tr[data-key='default/lost'] .why", "web-1");
    browser.click("tr[data-key='default/lost'] a");

    browser.says(".in-why .verdict.is-broken", "the selector asks for app=wbe, but Pod web-1 has app=web");
    browser.says(".cause .command", "app=wbe");
    browser.says(".step.is-bad", "web-1");
    browser.sees(".cause .command .copy");
    browser.sees(".map .card.none");
    browser.picture("broken-light");

    // Somebody mends it, and nobody reloads the page.
    browser.js("window.same = true");
    let path = "/api/v1/namespaces/default/services/lost";
    let mut service = machine.api("GET", path, &serde_json::Value::Null);
    service["spec"]["selector"] = json!({"app": "web"});
    machine.api("PUT", path, &service);
    browser.until("the cause is gone", "document.querySelector('.verdict.is-ok') && !document.querySelector('.cause')");
    browser.says(".map .card.back", "pod/web-1");
    browser.says(".timeline", "spec.selector");
    assert_eq!(browser.text("window.same"), "true");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn new_services_appear_and_numbers_on_the_map_move_as_connections_come() {
    let test = "new_services_appear_and_numbers_on_the_map_move_as_connections_come";
    let Some(machine) = machine(test, &[]) else { return };
    machine.pod("web-1", "web");
    machine.pod("web-2", "web");
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.says(".gauges", "Service");
    browser.js("window.same = true");
    let address = machine.service("web", "web");
    browser.says("tr[data-key='default/web'] .addresses", &address);
    browser.says("tr[data-key='default/web'] .endpoints", "2/2");
    machine.wait("the Service answers", || machine.answers(&address));

    browser.click("tr[data-key='default/web'] .type");
    browser.says(".map .card.front", &address);
    browser.until("both endpoints are there", "document.querySelectorAll('.map .card.back.is-ok').length === 2");
    while_asked(&machine, &address, || {
        let moving =
            "[...document.querySelectorAll('.map .card.back .flow')].some((one) => parseFloat(one.innerText) > 0)";
        browser.until("numbers move", moving);
        browser.sees(".wire.moving");
        browser.until("the gauge counts", "parseFloat(document.querySelector('.dial b').innerText) >= 0");
        browser.until("a line is drawn", "document.querySelector('.dial .spark .line').getAttribute('d').length > 10");
        browser.picture("traffic-light");
        browser.scheme("dark");
        browser.picture("traffic-dark");
    });
    // What nobody can know is not shown.
    assert!(!browser.read("main").to_lowercase().contains("errors"), "{}", browser.read("main"));
    assert_eq!(browser.text("window.same"), "true");
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Asks a Service again and again for as long as something is done.
fn while_asked(machine: &Machine, address: &str, done: impl FnOnce()) {
    let (stop, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.try_recv() == Err(TryRecvError::Empty) {
                machine.answers(address);
            }
        });
        done();
        drop(stop);
    });
}

#[test]
fn forms_tell_what_happens_to_a_packet_and_what_the_dns_answers() {
    let test = "forms_tell_what_happens_to_a_packet_and_what_the_dns_answers";
    let Some(machine) = machine(test, &[]) else { return };
    machine.pod("web-1", "web");
    let address = machine.service("web", "web");
    machine.service("lost", "nobody");
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/web']");

    browser.click("nav a[data-view=packet]");
    browser.fill("#from", "pod/web-1");
    browser.fill("#to", "svc/web:80");
    browser.click("button.main");
    browser.says(".outcome.is-ok .headline", "one endpoint");
    browser.says(".outcome .hops", &address);
    browser.sees(".lines.reasons li");
    browser.picture("packet-light");
    browser.fill("#to", "svc/lost:80");
    browser.click("button.main");
    browser.says(".outcome.is-broken .headline", "refused");
    browser.fill("#to", "svc/nothing:80");
    browser.click("button.main");
    browser.says(".result .note", "nothing");

    browser.click("nav a[data-view=dns]");
    browser.fill("#name", "web");
    browser.fill("#from", "pod/default/web-1");
    browser.click("button.main");
    browser.says(".tried .chosen", &address);
    browser.picture("dns-light");
    browser.fill("#name", "wbe.default.svc.cluster.local");
    browser.click("button.main");
    browser.says(".outcome.is-broken .headline", "Nobody knows wbe.default");
    browser.says(".tried .code", "NXDOMAIN");
}
