//! Single modules of the page, in a browser, with answers made up where it depends on which ones come and in which order.

use serde_json::{Value, json};

use super::browser::{Browser, browser};
use super::machine::machine;

#[test]
fn modules_of_the_page_do_what_they_say() {
    let Some(machine) = machine("modules_of_the_page_do_what_they_say", &[]) else { return };
    let elsewhere = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}});
    machine.api("POST", "/api/v1/nodes", &elsewhere);
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.says(".gauges", "Service");
    proxies_of_other_nodes_are_not_known(&browser);
    // The door asks nothing by itself.
    browser.click(".tools button.small");
    browser.says("main h1", "You are not signed in");
    objects_are_written_as_yaml_that_reads_the_same(&browser);
    what_is_unchanged_after_an_error_takes_its_place(&browser);
    a_question_that_is_asked_anew_is_not_answered_twice(&browser);
    what_is_not_there_is_asked_for_again_though_rarely(&browser);
    the_newest_events_are_shown_however_many_there_are(&browser);
}

fn proxies_of_other_nodes_are_not_known(browser: &Browser<'_>) {
    browser.go("#/nodes");
    let row = |name: &str| {
        format!("[...document.querySelectorAll('main tr')].find((row) => row.cells[1].innerText === '{name}')")
    };
    browser.until("both are there", &format!("{} && {}", row("here"), row("elsewhere")));
    let proxy = |name: &str| browser.text(&format!("{}.querySelector('[data-head=Proxy]').innerText", row(name)));
    assert_eq!((proxy("here"), proxy("elsewhere")), ("nftables".into(), "not known here".into()));
}

#[track_caller]
fn check_yaml(browser: &Browser<'_>, value: Value, expected: &str) {
    let script = format!("return import('/ui/yaml.js').then(({{ yaml }}) => yaml({{ a: {value} }}))");
    assert_eq!(browser.js(&script), json!(format!("a:{expected}\n")), "{value}");
}

fn objects_are_written_as_yaml_that_reads_the_same(browser: &Browser<'_>) {
    check_yaml(browser, json!("one\ntwo"), " |-\n  one\n  two");
    check_yaml(browser, json!("one\ntwo\n"), " |\n  one\n  two");
    check_yaml(browser, json!("one\n\ntwo\n\n\n"), " |+\n  one\n\n  two\n\n");
    check_yaml(browser, json!(" one\ntwo"), " \" one\\ntwo\"");
    check_yaml(browser, json!("\n"), " \"\\n\"");
    check_yaml(browser, json!("one\u{7}\n"), " \"one\\u0007\\n\"");
    for word in [".5", ".inf", ".NaN", "1.5", "true", "No", "~", ""] {
        check_yaml(browser, json!(word), &format!(" \"{word}\""));
    }
    for word in ["web", "a.b/c-d", "/healthz", "_x"] {
        check_yaml(browser, json!(word), &format!(" {word}"));
    }
    check_yaml(browser, json!(["x\ny\n"]), "\n- |\n  x\n  y");
}

fn what_is_unchanged_after_an_error_takes_its_place(browser: &Browser<'_>) {
    let said = browser.js(
        "return import('/ui/dom.js').then(({ h, part }) => { const body = h('div', {}); const said = []; let drawn = 0; \
         const show = part(body, (data) => { drawn += 1; return data.text; }); \
         const does = [() => show({text: 'data'}), () => show({text: 'data'}), () => show.instead('error'), () => show({text: 'data'})]; \
         for (const one of does) { one(); said.push(`${body.textContent} ${drawn}`); } return said; })",
    );
    assert_eq!(said, json!(["data 1", "data 1", "error 1", "data 2"]));
}

/// Answers to `fetch` come when `answers.shift()` is called with them, and timers only tell how long they would wait.
const MADE_UP: &str = "const answers = []; const asked = []; const waits = []; const [fetched, timed] = [window.fetch, window.setTimeout]; \
                       window.fetch = (where) => new Promise((come) => { asked.push(where); \
                       answers.push((code, body) => come(new Response(JSON.stringify(body), {status: code}))); }); \
                       window.setTimeout = (_, wait) => waits.push(wait); \
                       const settle = async () => { for (let turn = 0; turn < 5; turn += 1) { await new Response('{}').json(); \
                       await new Promise((go) => timed(go)); } }; \
                       const back = () => { window.fetch = fetched; window.setTimeout = timed; };";

/// What a script returns that goes on with made-up answers.
#[track_caller]
fn made_up(browser: &Browser<'_>, module: &str, script: &str) -> Value {
    browser.js(&format!(
        "return import('/ui/{module}').then(async (it) => {{ {MADE_UP} try {{ {script} }} finally {{ back(); }} }})"
    ))
}

fn a_question_that_is_asked_anew_is_not_answered_twice(browser: &Browser<'_>) {
    let script = "const got = []; const polled = it.poll('/x', 5, (data) => got.push(data), () => got.push('trouble')); \
                  await settle(); polled.now(); await settle(); answers[1](200, 'new'); await settle(); \
                  answers[0](200, 'old'); await settle(); polled.stop(); return [asked.length, got, waits];";
    assert_eq!(made_up(browser, "api.js", script), json!([2, ["new"], [5]]));
}

fn what_is_not_there_is_asked_for_again_though_rarely(browser: &Browser<'_>) {
    let script = "const got = []; const polled = it.poll('/x', 5, () => {}, (error) => got.push(error.code)); await settle(); \
                  answers[0](404, {message: 'no'}); await settle(); polled.now(); await settle(); answers[1](401, {message: 'no'}); \
                  await settle(); polled.stop(); return [got, waits];";
    assert_eq!(made_up(browser, "api.js", script), json!([[404, 401], [30000]]));
}

fn the_newest_events_are_shown_however_many_there_are(browser: &Browser<'_>) {
    let script = "const event = (name, minute) => ({metadata: {namespace: 'a'}, involvedObject: {kind: 'Pod', name}, type: 'Normal', \
                  reason: name, message: name, lastTimestamp: `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`}); \
                  const view = it.eventList({query: new URLSearchParams()}); await settle(); \
                  answers[0](200, {metadata: {continue: 'next'}, items: [event('older', 1)]}); await settle(); \
                  answers[1](200, {metadata: {}, items: [event('newest', 2)]}); await settle(); view.stop(); \
                  return [asked, view.node.querySelector('tbody td:nth-child(3)').innerText, view.node.querySelector('.found').textContent];";
    let asked = ["/api/v1/events?limit=2000", "/api/v1/events?limit=2000&continue=next"];
    assert_eq!(made_up(browser, "past.js", script), json!([asked, "newest", "2"]));
}
