//! Who may look: links that work once, sessions that end, and what is to be seen without one.

use serde_json::Value;

use super::browser::browser;
use super::machine::machine;

#[test]
fn a_link_works_once_and_a_session_ends_when_it_is_left() {
    let Some(machine) = machine("a_link_works_once_and_a_session_ends_when_it_is_left", &[]) else { return };
    let browser = browser(&machine);
    let link = machine.link("");
    let page = link.split('#').next().unwrap();

    browser.open(page);
    browser.says("main", "fairlead ui");
    assert_eq!(browser.text("document.cookie"), "");
    browser.picture("door-light");

    browser.open("about:blank");
    browser.open(&link);
    browser.says(".gauges", "Service");
    // Scripts cannot read the cookie.
    assert_eq!(browser.text("document.cookie"), "");
    // The page keeps what proves its requests where no page of another port finds it, and nothing else.
    let kept = "[...Object.keys(localStorage), ...Object.keys(sessionStorage)].join()";
    browser.until("the proof is kept", &format!("{kept} === 'proof'"));
    // Another tab, or the same one later, is signed in as well.
    browser.js("window.old = true; location.reload()");
    browser.until("it is the new page", "!window.old && document.querySelector('.gauges b')");
    browser.says(".gauges", "Service");
    // Who has the cookie alone is nobody.
    browser.js("fetch('/fairlead/v1/session').then((answer) => { window.alone = answer.status; })");
    browser.until("a cookie alone is refused", "window.alone === 401");

    browser.click(".tools button.small");
    browser.says("main h1", "You are not signed in");
    assert_eq!(browser.text(kept), "");
    browser.js("fetch('/fairlead/v1/services').then((answer) => { window.code = answer.status; })");
    browser.until("the session is over", "window.code === 401");

    // The same link once more.
    browser.open("about:blank");
    browser.open(&link);
    browser.says("main .note", "used already");
    browser.says("main h1", "That link does not open");
    browser.picture("used-link-light");
    let worse: Vec<String> = browser.console().into_iter().filter(|line| !line.contains("status of 401")).collect();
    assert_eq!(worse, Vec::<String>::new());

    // With a cookie alone nothing can be changed: another site could send that.
    browser.open("about:blank");
    browser.open(&machine.link("--write"));
    browser.says(".tools", "may write");
    machine.service("web", "web");
    browser.js("fetch('/api/v1/namespaces/default/services/web', {method: 'DELETE'}).then((answer) => { window.code = answer.status; })");
    browser.until("it is refused", "window.code === 401");
    assert_eq!(machine.api("GET", "/api/v1/namespaces/default/services/web", &Value::Null)["kind"], "Service");
}

#[test]
fn a_server_that_is_gone_is_waited_for_and_one_that_came_back_wants_a_new_link() {
    let test = "a_server_that_is_gone_is_waited_for_and_one_that_came_back_wants_a_new_link";
    let Some(machine) = machine(test, &[]) else { return };
    let address = machine.service("web", "web");
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/web']");
    browser.go("#/services/default/web");
    browser.says(".map .card.front", &address);
    browser.says(".live.on", "live");

    // What was known stays to be read, and the page says when it tries again.
    machine.kill();
    browser.says(".live.off", "next try in");
    browser.says(".service .note", "the server does not answer");
    browser.says(".map .card.front", &address);
    browser.picture("gone-light");

    // Who could not leave is told so, and what is shown stays.
    browser.click(".tools button.small");
    browser.says("#said", "You are still signed in");
    browser.says(".map .card.front", &address);

    // Sessions end with the process that knew them.
    machine.restart();
    browser.says("main h1", "You are not signed in");
    browser.open("about:blank");
    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/web']");
}
