//! How it looks: contrast in both themes, a phone, and structure for those who do not see it.

use serde_json::json;

use super::browser::{Browser, browser};
use super::machine::machine;

/// The views, what says that they are there, and a name for their pictures.
const VIEWS: &[(&str, &str, &str)] = &[
    ("#/services", "tr[data-key]", "list"),
    ("#/services?q=nothing-like-that", ".empty", "empty"),
    ("#/services/default/web", ".map .card.back", "service"),
    ("#/services/default/lost", ".cause .command", "broken"),
    ("#/packet?from=node&to=svc/web:80", ".outcome", "packet"),
    ("#/dns?name=web.default.svc.cluster.local&from=node", ".tried .chosen", "dns"),
    ("#/events", "main table, main .quiet", "events"),
    ("#/history", ".timeline .change", "history"),
    ("#/balancers", "main table, .empty", "balancers"),
    ("#/nodes", "main table td", "nodes"),
    ("#/help", ".keys", "help"),
];

#[test]
fn every_view_is_readable_in_light_and_dark_and_on_a_phone() {
    let Some(machine) =
        machine("every_view_is_readable_in_light_and_dark_and_on_a_phone", &["--pool", "198.51.100.64/28"])
    else {
        return;
    };
    machine.pod("web-1", "web");
    machine.service("web", "web");
    machine.service("lost", "wbe");
    let balanced = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 9376}]},
    });
    machine.api("POST", super::machine::SERVICES, &balanced);
    let browser = browser(&machine);
    browser.open(&machine.link(""));
    browser.says("tr[data-key='default/shop']", "LoadBalancer");
    contrast_is_measured(&browser);
    for (view, sign, name) in VIEWS {
        browser.size(1440, 900);
        browser.go(view);
        browser.sees(sign);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            contrast(&browser, name, scheme);
            browser.picture(&format!("{name}-{scheme}"));
        }
        structure(&browser, name);
        phone(&browser, name);
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Every text has enough contrast.
fn contrast(browser: &Browser<'_>, view: &str, scheme: &str) {
    let found = browser.js(include_str!("contrast.js"));
    assert_eq!(found["wrong"], json!([]), "{view}, {scheme}");
    assert!(found["seen"].as_u64() > Some(10), "{view}, {scheme}: {found}");
}

/// A text that cannot be read is found, and so is a field that cannot be told from what is around it.
fn contrast_is_measured(browser: &Browser<'_>) {
    browser.js(
        "document.querySelector('.found').textContent = 'pale'; document.querySelector('.found').style.color = '#ccc'; \
         document.querySelector('input[type=search]').style.borderColor = '#ccc'",
    );
    let found = browser.js(include_str!("contrast.js"))["wrong"].to_string();
    assert!(found.contains("pale") && found.contains("border of INPUT"), "{found}");
    browser
        .js("document.querySelector('.found').textContent = ''; document.querySelector('.found').style.color = ''; \
         document.querySelector('input[type=search]').style.borderColor = ''");
}

/// There is one heading of the first rank, one main part, and everything to press or to fill in has a name.
fn structure(browser: &Browser<'_>, view: &str) {
    let count = |selector: &str| browser.text(&format!("document.querySelectorAll('{selector}').length"));
    assert_eq!((count("h1"), count("main"), count("nav[aria-label]")), ("1".into(), "1".into(), "1".into()), "{view}");
    let nameless = "[...document.querySelectorAll('button, input, select, a')].filter((one) => !(one.innerText?.trim() \
                    || one.ariaLabel || one.labels?.length)).map((one) => one.outerHTML)";
    assert_eq!(browser.js(&format!("return {nameless}")), json!([]), "{view}");
}

/// On a phone nothing is wider than the screen.
fn phone(browser: &Browser<'_>, view: &str) {
    browser.size(375, 812);
    browser.scheme("light");
    browser.until("the page fits", "innerWidth === 375");
    let wide = "[...document.querySelectorAll('main *')].filter((one) => one.getBoundingClientRect().right > 376 && !one.closest('pre, .wires')) \
                .map((one) => `${one.tagName}.${one.className}`)";
    assert_eq!(browser.js(&format!("return {wide}")), json!([]), "{view}");
    browser.picture(&format!("{view}-phone"));
}
