//! Recorded requests about Pods, Nodes and Namespaces, played on the pure rules: decode, default, admit, prepare,
//! validate. Metadata common to all kinds (names, labels, versions, times) is the matter of other tests, as are strategic
//! merge patches, watches and lists; steps that need them are passed over and counted.

#![allow(clippy::print_stderr)] // says what was passed over

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fairlead_api::field::FieldErrors;
use fairlead_api::kinds::{self, Kind, pod};
use fairlead_api::status::Subject;
use fairlead_api::value::{Map, Value, json};
use fairlead_api::{Failure, Look, Settings, decode};

#[test]
fn recorded_requests_get_the_recorded_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/api/dev");
    let (mut played, mut passed_over, mut wrong) = (0, 0, Vec::new());
    for file in ["world.jsonl", "reads.jsonl"] {
        let text = fs::read_to_string(folder.join(file)).expect("vectors can be read");
        for line in text.lines() {
            let case: Value = serde_json::from_str(line).expect("a case is JSON");
            if !case.list("steps").iter().all(|step| of_step(step).is_some()) {
                continue;
            }
            let mut world = World::default();
            for step in case.list("steps") {
                match world.play(step) {
                    Played::AsRecorded => played += 1,
                    Played::PassedOver => passed_over += 1,
                    Played::Differently(how) => wrong.push(format!("{} {}", case.text("id"), how)),
                }
                if world.lost {
                    break;
                }
            }
        }
    }
    eprintln!("{played} as recorded, {passed_over} passed over, {} differ", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(played > 100, "only {played} steps were played");
}

/// The kind, name and subresource a step is about, if it is one of ours.
fn of_step(step: &Value) -> Option<(&'static Kind, String, String)> {
    let parts: Vec<&str> = step.text("path").split('/').collect();
    let (kind, rest) = match parts[..] {
        ["", "api", "v1", "nodes", ref rest @ ..] => (&kinds::NODE, rest),
        ["", "api", "v1", "namespaces", _, "pods", ref rest @ ..] => (&kinds::POD, rest),
        ["", "api", "v1", "namespaces"] => (&kinds::NAMESPACE, &[][..]),
        ["", "api", "v1", "namespaces", ref rest @ ..] if rest.len() <= 2 => (&kinds::NAMESPACE, rest),
        _ => return None,
    };
    let part = |at: usize| rest.get(at).map_or(String::new(), |text| (*text).to_owned());
    (!["services", "endpoints", "events"].contains(&part(1).as_str())).then(|| (kind, part(0), part(1)))
}

enum Played {
    AsRecorded,
    PassedOver,
    Differently(String),
}

/// What is stored while a case runs.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Value>,
    saved: BTreeMap<String, Value>,
    /// A write was passed over, so what follows cannot be told.
    lost: bool,
}

impl World {
    fn play(&mut self, step: &Value) -> Played {
        let (kind, name, part) = of_step(step).expect("the case was chosen by this");
        let (expect, patch) = (step.at("expect"), step.at("headers").text("Content-Type"));
        let dry = step.at("query").get("dryRun").is_some();
        if [404, 405, 400].contains(&expect.int("status")) || expect.text("reason") == "AlreadyExists" {
            return Played::PassedOver;
        }
        let answer = match step.text("method") {
            "POST" if part == "binding" => self.bind(step, &name),
            "POST" if name.is_empty() => create(kind, step.at("body").clone()),
            "PUT" | "PATCH" if part.is_empty() || part == "status" => {
                let Some(old) = self.objects.get(&name).cloned() else { return self.lose() };
                let new = match patch {
                    "application/merge-patch+json" => merge(old.clone(), step.at("body")),
                    "" => self.body(step.at("body")),
                    "application/strategic-merge-patch+json" if !has_list(step.at("body")) => {
                        merge(old.clone(), step.at("body"))
                    }
                    _ => return self.lose(),
                };
                update(kind, new, &old, &part)
            }
            "GET" if step.at("headers").text("Accept").contains("as=Table") => return self.table(kind, expect),
            "GET" if !name.is_empty() => Ok(self.objects.get(&name).cloned().unwrap_or(Value::Null)),
            "GET" => return Played::PassedOver,
            _ => return self.lose(),
        };
        let mut played = compare(&answer, expect);
        if let (Ok(object), "POST", "") = (&answer, step.text("method"), part.as_str()) {
            let warnings = (kind.rules.warnings)(object, None, &settings());
            if warnings != expect.texts("warnings") {
                played = Played::Differently(format!("warns {warnings:?} instead of {}", expect.at("warnings")));
            }
        }
        if let (Ok(object), true) = (answer, step.text("method") != "GET" && !dry) {
            if let Some(save) = step.text_opt("save") {
                self.saved.insert(save.to_owned(), object.clone());
            }
            if part != "binding" {
                self.objects.insert(object.at("metadata").text("name").to_owned(), object);
            }
        }
        played
    }

    fn lose(&mut self) -> Played {
        self.lost = true;
        Played::PassedOver
    }

    fn body(&self, body: &Value) -> Value {
        let Some(from) = body.text_opt("$from") else { return body.clone() };
        let mut object = self.saved.get(from).cloned().unwrap_or_default();
        for (pointer, value) in body.map("set").into_iter().flatten() {
            let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
            if let Some(place) = object.pointer_mut(parent) {
                place.set(key.to_string(), value.clone());
            }
        }
        object
    }

    fn bind(&mut self, step: &Value, name: &str) -> Result<Value, Failure> {
        let pod = self.objects.get_mut(name).expect("the case makes it before");
        pod::bind(pod, step.at("body"), "2024-01-01T00:00:00Z")?;
        Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
    }

    fn table(&self, kind: &Kind, expect: &Value) -> Played {
        let columns: Value = kind
            .rules
            .columns
            .iter()
            .map(|c| json!({"name": c.name, "type": c.kind, "format": c.format, "priority": c.priority}))
            .collect();
        let mut cells: Vec<Value> = self.objects.values().map(|object| (kind.rules.row)(object, 0).into()).collect();
        let body = expect.at("body");
        let wanted: Vec<Value> = body.list("rows").iter().map(|row| row.at("cells").clone()).collect();
        for (cells, wanted) in cells.iter_mut().zip(&wanted) {
            let age = wanted.as_array().and_then(|wanted| wanted.iter().position(|cell| cell == "${age}"));
            if let (Some(age), Some(cells)) = (age, cells.as_array_mut()) {
                cells[age] = "${age}".into();
            }
        }
        same(&json!([columns, cells]), &json!([body.at("columnDefinitions"), wanted]))
    }
}

fn settings() -> Settings {
    Settings {
        service_ranges: vec!["10.0.0.0/16".parse().expect("a range"), "fd00:10::/108".parse().expect("a range")],
        node_ports: 30000..=32767,
        service_topology: false,
    }
}

fn decoded(kind: &Kind, body: Value) -> Value {
    let mut object = decode::decode(kind.schema, body).expect("bodies of these cases fit their type").value;
    (kind.rules.default)(&mut object, &settings());
    object
}

fn create(kind: &Kind, body: Value) -> Result<Value, Failure> {
    let (rules, settings) = (kind.rules, settings());
    let mut object = decoded(kind, body);
    if let Some(prefix) = object.at("metadata").text_opt("generateName").map(str::to_owned) {
        object.map_mut("metadata").insert("name".to_owned(), format!("{prefix}abcde").into());
    }
    (rules.admit)(&mut object, &settings)?;
    (rules.prepare_create)(&mut object, &settings);
    finish(kind, (rules.validate)(&object, None, &settings), object)
}

fn update(kind: &Kind, body: Value, old: &Value, part: &str) -> Result<Value, Failure> {
    let (rules, settings) = (kind.rules, settings());
    let mut object = decoded(kind, body);
    if part == "status" {
        (rules.prepare_status)(&mut object, old, &settings);
        return finish(kind, (rules.validate_status)(&object, old, &settings), object);
    }
    (rules.prepare_update)(&mut object, old, &settings);
    let mut errors = (rules.validate)(&object, Some(old), &settings);
    errors.extend((rules.validate_update)(&object, old, &settings));
    finish(kind, errors, object)
}

fn finish(kind: &Kind, errors: FieldErrors, object: Value) -> Result<Value, Failure> {
    let metadata = object.at("metadata");
    let name = metadata.text("name");
    let plain = name.replace("${ns}", "ns");
    let mut all: FieldErrors = (if name.is_empty() { Vec::new() } else { (kind.rules.name)(&plain, false) })
        .into_iter()
        .map(|reason| {
            fairlead_api::FieldError::invalid(&fairlead_api::Path::new("metadata").child("name"), name, reason)
        })
        .collect();
    all.extend(errors);
    if all.is_empty() {
        return Ok(object);
    }
    Err(Failure::invalid(Subject { group: kind.group, kind: kind.kind, name }, &all))
}

fn merge(mut target: Value, patch: &Value) -> Value {
    let Some(patch) = patch.as_object() else { return patch.clone() };
    for (key, value) in patch {
        if value.is_null() {
            target.unset(key);
        } else {
            let inner = target.get(key).cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
            target.set(key, merge(inner, value));
        }
    }
    target
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.values().any(has_list),
        _ => false,
    }
}

fn compare(answer: &Result<Value, Failure>, expect: &Value) -> Played {
    let shared = |cause: &Value| {
        cause.text("field") == "metadata.labels"
            || cause.text("reason") == "FieldValueRequired" && cause.text("field") == "metadata.name"
    };
    if !expect.list("causes").is_empty() && expect.list("causes").iter().all(shared) {
        return Played::PassedOver;
    }
    match answer {
        Ok(object) if expect.int("status") < 300 => same(&bare(object), &bare(expect.at("body"))),
        Ok(object) => Played::Differently(format!("should fail with {} but gave {object}", expect.at("causes"))),
        Err(failure) if expect.int("status") < 300 => Played::Differently(format!("failed: {}", failure.message)),
        Err(failure) => {
            let details = failure.details.clone().unwrap_or_default();
            let causes = |list: &[Value]| {
                let mut causes: Vec<(String, String)> = list
                    .iter()
                    .map(|cause| (cause.text("field").to_owned(), cause.text("reason").to_owned()))
                    .filter(|(field, _)| field != "metadata.labels")
                    .collect();
                causes.sort();
                causes
            };
            let ours = (i64::from(failure.code), failure.reason, causes(details.list("causes")));
            let theirs = (expect.int("code"), expect.text("reason"), causes(expect.list("causes")));
            if ours != theirs {
                return Played::Differently(format!("{ours:?} should be {theirs:?}"));
            }
            let message = expect.texts("messages").first().map_or("", |text| text).to_owned();
            let whole = !message.contains("\n@@") && !message.contains("metadata.labels");
            match whole && message != failure.message {
                true => Played::Differently(format!("says {} instead of {message}", failure.message)),
                false => Played::AsRecorded,
            }
        }
    }
}

/// The parts of an object that these rules decide, with times set to a placeholder.
fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    let metadata: Map = object
        .map("metadata")
        .into_iter()
        .flatten()
        .filter(|(key, _)| ["labels", "annotations", "generation", "finalizers"].contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    bare.set("metadata", metadata);
    for condition in bare.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if condition.text("type") == "PodScheduled" {
            condition.set("lastTransitionTime", "${time}");
        }
    }
    bare
}

fn same(ours: &Value, theirs: &Value) -> Played {
    if ours == theirs {
        Played::AsRecorded
    } else {
        Played::Differently(format!("\n  ours   {ours}\n  theirs {theirs}"))
    }
}
