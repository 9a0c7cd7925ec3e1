//! The page without a mouse.

use super::browser::browser;
use super::machine::machine;

/// Keys that are no letters, as WebDriver writes them.
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DOWN: &str = "\u{e015}";

#[test]
fn everything_is_reached_with_keys() {
    let Some(machine) = machine("everything_is_reached_with_keys", &[]) else { return };
    for name in ["alpha", "beta", "gamma"] {
        machine.service(name, name);
    }
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.sees("tr[data-key='default/gamma']");
    let at = |view: &str| browser.until(view, &format!("location.hash.startsWith('#/{view}')"));
    let chosen = || browser.text("document.querySelector('tr[aria-selected=true]')?.dataset.key");

    // `/` looks for something, Enter goes to the rows, j and arrows choose, Enter opens, Esc goes back.
    browser.press("/");
    browser.press("default");
    assert_eq!(browser.text("document.querySelector('input[type=search]').value"), "default");
    browser.press(ENTER);
    browser.until("the rows have the focus", "document.activeElement.matches('.scroller')");
    browser.press("j");
    let first = chosen();
    // Who does not see which row is chosen is told by what has the focus.
    let told = || {
        browser
            .text("document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.dataset.key")
    };
    assert_eq!((browser.text("document.activeElement.role"), told()), ("grid".to_owned(), first.clone()));
    browser.press(DOWN);
    assert_ne!(chosen(), first);
    assert_eq!(told(), chosen());
    let places = "[...document.querySelectorAll('.scroller tr[role=row]')].map((row) => row.ariaRowIndex).join()";
    assert_eq!(browser.text(places), "1,2,3,4,5", "the heads, kubernetes and three of ours");
    assert_eq!(browser.text("document.activeElement.ariaRowCount"), "5");
    browser.press("k");
    assert_eq!(chosen(), first);
    browser.press(ENTER);
    at(&format!("services/{first}"));
    browser.sees(".service h1");
    browser.press(ESCAPE);
    browser.sees("tr[data-key='default/gamma']");

    // Letters after g lead everywhere.
    for (key, view) in [
        ("n", "nodes"),
        ("p", "packet"),
        ("d", "dns"),
        ("e", "events"),
        ("h", "history"),
        ("l", "balancers"),
        ("s", "services"),
    ] {
        browser.js("document.activeElement.blur()");
        browser.press(&format!("g{key}"));
        at(view);
    }
    browser.sees("tr[data-key='default/gamma']");

    // ? explains, and Esc closes it.
    browser.press("?");
    browser.sees("dialog[open] .keys");
    browser.picture("keys-light");
    browser.press(ESCAPE);
    browser.until("the dialog is closed", "!document.querySelector('dialog')");

    // t changes the colours, and they stay.
    let colour = || browser.text("getComputedStyle(document.body).backgroundColor");
    let light = colour();
    browser.press("tt");
    assert_ne!(colour(), light);
    browser.js("location.reload()");
    browser.sees("tr[data-key='default/gamma']");
    assert_ne!(colour(), light);

    // What has the focus can be seen.
    browser.press("\u{e004}");
    browser.press("\u{e004}");
    let outline = browser.text("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "{}", browser.text("document.activeElement.outerHTML"));
    assert_eq!(browser.console(), Vec::<String>::new());
}
