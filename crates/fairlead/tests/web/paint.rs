//! What is there before anything is known: the frame of the page is plain HTML and waits for no script and no answer.

use serde_json::json;

use super::browser::browser;
use super::machine::machine;

#[test]
fn the_frame_is_painted_without_any_module_and_before_any_answer() {
    let Some(machine) = machine("the_frame_is_painted_without_any_module_and_before_any_answer", &[]) else { return };
    let browser = browser(&machine);
    let page = machine.link("").split('#').next().unwrap().to_owned();
    for blocked in [["*main.js"], ["*/fairlead/v1/*"]] {
        browser.block(&blocked);
        for (view, outlined) in
            [("", true), ("#/services?q=x", true), ("#/services/default/web", false), ("#/dns", false)]
        {
            browser.open("about:blank");
            browser.open(&format!("{page}{view}"));
            browser.until("it is painted", "performance.getEntriesByName('first-contentful-paint').length");
            if blocked == ["*main.js"] {
                browser.sees("nav a[data-view=nodes]");
                let outline = "document.querySelector('.outline .gauge').getClientRects().length > 0";
                assert_eq!(browser.js(&format!("return {outline}")), json!(outlined), "{view}");
                browser.picture(if outlined { "frame-light" } else { "frame-elsewhere-light" });
            } else {
                browser.says("main .note", "the server does not answer");
                browser.says("main h1", "The page cannot be shown");
            }
        }
    }
}
