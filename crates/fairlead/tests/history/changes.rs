//! Changes that are numbered, and what the history tells of them: the number stands in the target port of a Service.

use std::io;
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::https::connection::Connection;
use serde_json::{Value, json};

use crate::{PATIENCE, path};

/// What is told of a Service, without a hole: `first -> … -> last`, one by one, except where a gap is told.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) gaps: usize,
}

/// Gives a Service a number, and so many bytes to fill the history with, other ones every time. The number may have been set before:
/// by a change whose answer was lost.
pub(crate) fn change(connection: &mut Connection, name: &str, number: u64, filling: usize) -> io::Result<u16> {
    let filling: String = std::iter::repeat_with(fastrand::alphanumeric).take(filling).collect();
    let body = json!({
        "metadata": {"annotations": {"filling": filling}},
        "spec": {"ports": [{"port": 80, "targetPort": number}]},
    });
    let url = path("services", &format!("/{name}"));
    let answer = connection.send("PATCH", &url, "application/merge-patch+json", body.to_string().as_bytes())?;
    Ok(answer.status)
}

/// Waits until the history tells that a Service got a number, and checks that it tells everything before.
pub(crate) fn told(client: &Client, name: &str, last: u64) -> Chain {
    let began = Instant::now();
    let wanted = format!("-> {last}");
    loop {
        let items = items(client, name);
        if items.iter().flat_map(lines).any(|line| line.starts_with(NUMBER) && line.ends_with(&wanted)) {
            return chain(name, &items);
        }
        assert!(began.elapsed() < PATIENCE, "{wanted}: {:#?}", items.first());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How a line that tells of a number begins.
const NUMBER: &str = "spec.ports[0].targetPort: ";

fn items(client: &Client, name: &str) -> Vec<Value> {
    newest(client, name, 10_000).expect("an answer")
}

/// The newest that is told of a Service; an error where nobody answers.
fn newest(client: &Client, name: &str, limit: usize) -> io::Result<Vec<Value>> {
    let answer = client.get(&format!("/fairlead/v1/history?subject=svc/default/{name}&limit={limit}"))?;
    // An answer that the end of the server cut off is none.
    let mut answer: Value = serde_json::from_str(&answer.body).map_err(io::Error::other)?;
    Ok(match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

/// Waits until a number of a Service, or a later one, is told; an error where nobody answers.
pub(crate) fn reached(client: &Client, name: &str, number: u64) -> io::Result<()> {
    let began = Instant::now();
    loop {
        // Not every change is of the number.
        let items = newest(client, name, 20)?;
        let told = items.iter().flat_map(lines).filter_map(|line| line.strip_prefix(NUMBER)?.split_once(" -> "));
        if told.filter_map(|(_, to)| to.parse::<u64>().ok()).any(|to| to >= number) {
            return Ok(());
        }
        assert!(began.elapsed() < PATIENCE, "{name} {number}: {items:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn lines(item: &Value) -> impl Iterator<Item = &str> {
    item["lines"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Items are newest first; each number follows the one before, unless a gap is told between.
fn chain(name: &str, items: &[Value]) -> Chain {
    let (mut steps, mut gaps, mut gap, mut revision) = (Vec::<(u64, u64)>::new(), 0, false, 0);
    for item in items.iter().rev() {
        if item["change"] == "gap" {
            (gaps, gap) = (gaps + 1, true);
            continue;
        }
        let made = item["revision"].as_str().and_then(|text| text.parse().ok()).expect("a revision");
        assert!(made > revision, "{name}: revision {made} after {revision}");
        revision = made;
        let Some(step) = lines(item).find_map(|line| line.strip_prefix(NUMBER)) else { continue };
        let (from, to) = step.split_once(" -> ").expect("from, to");
        let step: (u64, u64) = (from.parse().expect("a number"), to.parse().expect("a number"));
        if let Some((_, before)) = steps.last() {
            assert!(gap || step.0 == *before, "{name}: {before} was followed by {step:?}");
            assert!(gap || step.1 == before + 1, "{name}: {before} was followed by {step:?}");
        }
        gap = false;
        steps.push(step);
    }
    let (Some((first, _)), Some((_, last))) = (steps.first(), steps.last()) else { panic!("{name}: nothing is told") };
    Chain { name: name.to_owned(), first: *first, last: *last, gaps }
}
