//! Ten thousand Services: the list is complete, and only what is in sight exists.

use std::time::{Duration, Instant};

use serde_json::json;

use super::browser::browser;
use super::machine::{Machine, SERVICES, machine};

/// How many Services there are.
const MANY: usize = 10_000;

#[test]
fn ten_thousand_services_scroll_with_few_rows_and_are_found_at_once() {
    let test = "ten_thousand_services_scroll_with_few_rows_and_are_found_at_once";
    let Some(machine) = machine(test, &[]) else { return };
    create(&machine);
    let browser = browser(&machine);
    // The first page a browser shows has to wait for the browser itself; the next ones are what people see.
    for which in ["the first page of a browser", "the next", "one more"] {
        browser.open("about:blank");
        browser.open(&machine.link(""));
        browser.says(".gauges", "10,00");
        println!("with {MANY} Services, {which}: {}", browser.painted());
    }

    let rows = || browser.js("return document.querySelectorAll('table.rows tr').length").as_u64().unwrap();
    assert!((10..200).contains(&rows()), "{} rows", rows());
    browser.js("document.querySelector('.scroller').scrollTop = 1e9");
    browser.sees("tr[data-key='default/s-09999']");
    assert!((10..200).contains(&rows()), "{} rows", rows());
    browser.js("document.querySelector('.scroller').scrollTop = 200000");
    browser.until("rows of the middle are there", "document.querySelector(\"tr[aria-rowindex='5001']\")");
    browser.picture("many-light");

    browser.fill("input[type=search]", "s-0777");
    browser.until("ten are left", "document.querySelectorAll('tr[data-key]').length === 10");
    // How long one letter takes, from the press to the rows.
    let took = "const field = document.querySelector('input[type=search]'); const before = performance.now(); field.value = 's-07'; \
                field.dispatchEvent(new Event('input')); return performance.now() - before";
    println!("filtering {MANY} Services takes {} ms", browser.js(took));
    browser.says(".found", "1,000 of");
}

/// Makes them, headless so that no Node has anything to program.
fn create(machine: &Machine) {
    let began = Instant::now();
    let client = machine.client().unwrap();
    let make = |from: usize| {
        let mut connection = client.connect(Duration::from_secs(30)).unwrap();
        for number in (from..MANY).step_by(4) {
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("s-{number:05}")},
                "spec": {"clusterIP": "None", "selector": {"app": "none"}, "ports": [{"port": 80}]},
            });
            let answer = connection.send("POST", SERVICES, "application/json", service.to_string().as_bytes()).unwrap();
            assert_eq!(answer.status, 201, "{}", answer.json());
        }
    };
    std::thread::scope(|scope| {
        let make = &make;
        for from in 0..4 {
            scope.spawn(move || machine.namespace.run(|| make(from)).unwrap());
        }
    });
    println!("{MANY} Services made in {:?}", began.elapsed());
}
