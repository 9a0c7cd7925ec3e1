//! Recorded answers of the reference server, read from the files beside the project: see the format's description there.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use fairlead_api::Look;
use fairlead_api::value::{Map, Value};

/// The namespace every case is played in.
pub(crate) const NAMESPACE: &str = "vectors-ns";

/// One recorded conversation.
pub(crate) struct Case {
    /// Topic, family and number.
    pub(crate) id: String,
    /// Requests and what was answered.
    pub(crate) steps: Vec<Value>,
}

/// How a case went.
pub(crate) enum Outcome {
    /// As recorded, for as many steps as could be played.
    Played(usize),
    /// Nothing of it could be played.
    LeftOut,
    /// Not as recorded.
    Wrong(String),
}

/// The cases of a topic.
pub(crate) fn load(topic: &str) -> Vec<Case> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("tests/conformance/api/dev").join(format!("{topic}.jsonl"));
    let text = std::fs::read_to_string(file).expect("the vectors are in the tree");
    let case = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a vector is JSON");
        Case { id: value.text("id").to_owned(), steps: value.list("steps").to_vec() }
    };
    text.lines().map(case).collect()
}

/// Says something in the output of the tests.
#[allow(clippy::print_stderr)]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// A body as it is sent: what it refers to and repeats, written out. None if it needs more than that.
pub(crate) fn expand(body: &Value, saved: &HashMap<String, Value>) -> Option<Value> {
    expand_at(body, saved, None)
}

fn expand_at(body: &Value, saved: &HashMap<String, Value>, at: Option<u64>) -> Option<Value> {
    Some(match body {
        Value::String(text) => expand_text(text, at)?,
        Value::Array(items) => {
            let mut out = Vec::new();
            for item in items {
                match item.int_opt("$repeat") {
                    Some(count) => {
                        for index in 0..u64::try_from(count).ok()? {
                            out.push(expand_at(item.at("item"), saved, Some(index))?);
                        }
                    }
                    None => out.push(expand_at(item, saved, at)?),
                }
            }
            Value::Array(out)
        }
        Value::Object(map) if map.contains_key("$from") => changed(body, saved)?,
        Value::Object(map) if map.contains_key("$pad") => {
            let [text, count] = body.list("$pad") else { return None };
            text.as_str()?.repeat(usize::try_from(count.as_u64()?).ok()?).into()
        }
        Value::Object(map) if map.keys().any(|key| key.starts_with('$')) => return None,
        Value::Object(map) => {
            let entries: Option<Map> =
                map.iter().map(|(key, value)| Some((key.clone(), expand_at(value, saved, at)?))).collect();
            Value::Object(entries?)
        }
        other => other.clone(),
    })
}

/// A saved answer with some fields set or removed.
fn changed(body: &Value, saved: &HashMap<String, Value>) -> Option<Value> {
    let mut value = saved.get(body.text("$from"))?.clone();
    for pointer in body.texts("unset") {
        let (parent, last) = pointer.rsplit_once('/')?;
        value.pointer_mut(parent)?.unset(last);
    }
    for (pointer, set) in body.map("set").into_iter().flatten() {
        let set = expand(set, saved)?;
        let (parent, last) = pointer.rsplit_once('/')?;
        match value.pointer_mut(parent)? {
            Value::Array(items) => *items.get_mut(last.parse::<usize>().ok()?)? = set,
            parent => parent.set(last.replace("~1", "/"), set),
        }
    }
    Some(value)
}

fn expand_text(text: &str, at: Option<u64>) -> Option<Value> {
    let text = text.replace("${ns}", NAMESPACE);
    let Some((before, rest)) = text.split_once("${") else { return Some(text.into()) };
    let (what, after) = rest.split_once('}')?;
    let at = at?;
    match what.split_once(':').unwrap_or((what, "")) {
        ("i", _) => expand_text(&format!("{before}{at}{after}"), Some(at)),
        ("n", start) => Some((start.parse::<u64>().ok()? + at).into()),
        ("ip4" | "ip6", start) => {
            let ip = match start.parse().ok()? {
                IpAddr::V4(ip) => IpAddr::V4((u32::from(ip) + u32::try_from(at).ok()?).into()),
                IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) + u128::from(at)).into()),
            };
            Some(format!("{before}{ip}{after}").into())
        }
        _ => None,
    }
}

/// Whether a value is as recorded; a placeholder stands for anything.
pub(crate) fn matches(wanted: &Value, got: &Value, path: &str) -> Result<(), String> {
    match (wanted, got) {
        (Value::String(wanted), got) if wanted.contains("${") => {
            let wanted = wanted.replace("${ns}", NAMESPACE);
            let Some((before, _)) = wanted.split_once("${") else {
                return matches(&wanted.into(), got, path);
            };
            let fine = !got.is_null() && got.as_str().is_none_or(|got| got.starts_with(before));
            if fine { Ok(()) } else { Err(format!("{path}: {got} instead of {wanted}")) }
        }
        (Value::Object(wanted), Value::Object(got)) => {
            for key in wanted.keys().chain(got.keys()) {
                // Counting changes is the server's work.
                if key == "resourceVersion" || key == "generation" {
                    continue;
                }
                match (wanted.get(key), got.get(key)) {
                    (Some(wanted), Some(got)) => matches(wanted, got, &format!("{path}.{key}"))?,
                    (Some(_), None) => return Err(format!("{path}.{key} is missing")),
                    (None, _) => return Err(format!("{path}.{key} is too much")),
                }
            }
            Ok(())
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            let mut pairs = wanted.iter().zip(got).enumerate();
            pairs.try_for_each(|(index, (wanted, got))| matches(wanted, got, &format!("{path}[{index}]")))
        }
        (wanted, got) if wanted == got => Ok(()),
        (wanted, got) => Err(format!("{path}: {got} instead of {wanted}")),
    }
}
