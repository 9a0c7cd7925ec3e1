//! Plays the recorded answers of the reference server on the pure rules: decode, default, prepare, validate. What needs a
//! whole server (patches, versions, watches) is left out and counted; a case ends at the first step it cannot play.

mod vectors;

use std::collections::HashMap;

use fairlead_api::decode::decode;
use fairlead_api::kinds::{self, KINDS};
use fairlead_api::selector::LabelSelector;
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look, Settings, validation};

use vectors::{Case, Outcome, expand, matches};

const OURS: &[&str] = &["endpoints", "endpointslices", "events", "ipaddresses", "servicecidrs"];

#[test]
fn recorded_writes_are_answered_alike() {
    let (mut played, mut steps, mut left_out, mut wrong) = (0, 0, 0, Vec::new());
    for file in ["endpoints", "world", "reads"] {
        for case in vectors::load(file) {
            match play(&case) {
                Outcome::Played(count) => {
                    played += 1;
                    steps += count;
                }
                Outcome::LeftOut => left_out += 1,
                Outcome::Wrong(why) => wrong.push(format!("{}: {why}", case.id)),
            }
        }
    }
    vectors::say(&format!("{played} cases played ({steps} steps), {left_out} left out, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(played > 200, "only {played} cases were played");
}

/// What a case has made so far: objects in stored form by path, and answers by the name they were saved under.
#[derive(Default)]
struct World {
    objects: HashMap<String, Value>,
    saved: HashMap<String, Value>,
}

fn play(case: &Case) -> Outcome {
    let mut world = World::default();
    let mut steps = 0;
    for step in &case.steps {
        let Some((kind, name)) = target(step) else { break };
        let Some(answer) = world.answer(kind, name.as_deref(), step) else { break };
        if let Err(why) = compare(&answer, step) {
            return Outcome::Wrong(format!("{} {}: {why}", step.text("method"), step.text("path")));
        }
        if let (Some(name), Ok(body)) = (step.text_opt("save"), &answer.result) {
            world.saved.insert(name.to_owned(), body.clone());
        }
        steps += 1;
    }
    if steps == 0 { Outcome::LeftOut } else { Outcome::Played(steps) }
}

/// The kind and name a step is about, if these rules alone can answer it.
fn target(step: &Value) -> Option<(&'static Kind, Option<String>)> {
    let headers = step.at("headers").as_object().is_some_and(|h| !h.is_empty());
    let queries = step.at("query").as_object().is_some_and(|q| q.keys().any(|k| k != "dryRun"));
    if step.text_opt("op").is_some_and(|op| op != "request") || headers || queries || step.get("raw").is_some() {
        return None;
    }
    let path: Vec<&str> = step.text("path").trim_matches('/').split('/').collect();
    let (group, version, rest) = match path[..] {
        ["api", version, ref rest @ ..] => ("", version, rest),
        ["apis", group, version, ref rest @ ..] => (group, version, rest),
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", "${ns}", rest @ ..] => rest,
        rest => rest,
    };
    let (resource, name) = match rest {
        [resource] => (resource, None),
        [resource, name] => (resource, Some((*name).to_owned())),
        _ => return None,
    };
    let kind = kinds::find(group, version, resource).filter(|kind| OURS.contains(&kind.resource))?;
    Some((kind, name))
}

/// Whether a body is of the kind and namespace of its URL, which the server sees to.
fn fits(body: &Value, kind: &Kind) -> bool {
    let of = |value: &Value, wanted: &str| value.is_null() || value == wanted;
    of(body.at("apiVersion"), &kind.api_version())
        && of(body.at("kind"), kind.kind)
        && of(body.at("metadata").at("namespace"), vectors::NAMESPACE)
}

struct Answer {
    result: Result<Value, Failure>,
    warnings: Vec<String>,
}

impl World {
    fn answer(&mut self, kind: &'static Kind, name: Option<&str>, step: &Value) -> Option<Answer> {
        let stored = kind.conversion.map_or(kind, |c| c.stored);
        let key = |name: &str| format!("{}/{name}", stored.resource);
        let mut answer = Answer { result: Ok(Value::Null), warnings: Vec::new() };
        answer.warnings.extend(kind.traits.deprecation.map(str::to_owned));
        match (step.text("method"), name) {
            ("GET", Some(name)) => answer.result = Ok(shown(kind, self.objects.get(&key(name))?)),
            ("POST", None) => {
                let body = expand(step.at("body"), &self.saved).filter(|body| fits(body, kind))?;
                let name = body.at("metadata").text("name").to_owned();
                let is_new = !self.objects.contains_key(&key(&name));
                if !is_new || !body.at("metadata").at("resourceVersion").is_null() {
                    return None;
                }
                self.write(kind, body, None, &mut answer);
            }
            ("PUT", Some(name)) => {
                let old = self.objects.get(&key(name))?.clone();
                let body = expand(step.at("body"), &self.saved)?;
                let version = body.at("metadata").text("resourceVersion");
                let same =
                    |field: &str| ["", old.at("metadata").text(field)].contains(&body.at("metadata").text(field));
                if !["", "0", "1"].contains(&version)
                    || !same("uid")
                    || !same("name")
                    || step.at("expect").int("status") == 409
                {
                    return None;
                }
                self.write(kind, body, Some(&old), &mut answer);
            }
            _ => return None,
        }
        Some(answer)
    }

    fn write(&mut self, kind: &'static Kind, body: Value, old: Option<&Value>, answer: &mut Answer) {
        let stored = kind.conversion.map_or(kind, |c| c.stored);
        let decoded = match decode(kind.schema, body) {
            Ok(decoded) => decoded,
            Err(error) => {
                let (name, version) = (kind.kind, kind.version);
                answer.result = Err(Failure::bad_request(format!(
                    "{name} in version \"{version}\" cannot be handled as a {name}: {error}"
                )));
                return;
            }
        };
        answer.warnings.extend(decoded.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
        let mut object = kind.conversion.map_or(decoded.value.clone(), |c| (c.store)(&decoded.value));
        let settings = settings();
        (kind.rules.default)(&mut object, &settings);
        fill(&mut object, kind, old);
        let errors = match old {
            None => {
                (kind.rules.prepare_create)(&mut object, &settings);
                validation::create(kind, &object, &settings)
            }
            Some(old) => {
                (kind.rules.prepare_update)(&mut object, old, &settings);
                validation::update(kind, &object, old, &settings)
            }
        };
        let name = object.at("metadata").text("name").to_owned();
        if !errors.is_empty() {
            let subject = Subject { group: stored.group, kind: stored.kind, name: &name };
            answer.result = Err(Failure::invalid(subject, &errors));
            return;
        }
        answer.warnings.extend((kind.rules.warnings)(&object, old, &settings));
        answer.result = Ok(shown(kind, &object));
        self.objects.insert(format!("{}/{name}", stored.resource), object);
    }
}

/// What the server puts into metadata, as far as it matters here.
fn fill(object: &mut Value, kind: &Kind, old: Option<&Value>) {
    let metadata = object.map_mut("metadata");
    if let (None, Some(prefix)) = (metadata.get("name"), metadata.get("generateName").and_then(Value::as_str)) {
        metadata.insert("name".to_owned(), format!("{prefix}abcde").into());
    }
    if kind.namespaced {
        metadata.insert("namespace".to_owned(), vectors::NAMESPACE.into());
    }
    for (field, value) in [("uid", "u1"), ("creationTimestamp", "2024-01-01T00:00:00Z"), ("resourceVersion", "1")] {
        metadata.insert(field.to_owned(), value.into());
    }
    metadata.shift_remove("generation");
    if kind.traits.generation {
        let generation = old.map_or(1, |old| old.at("metadata").int("generation"));
        metadata.insert("generation".to_owned(), generation.into());
    }
}

fn shown(kind: &Kind, object: &Value) -> Value {
    let mut object = kind.conversion.map_or(object.clone(), |c| (c.load)(object));
    object.set("kind", kind.kind);
    object.set("apiVersion", kind.api_version());
    object
}

fn compare(answer: &Answer, step: &Value) -> Result<(), String> {
    let expect = step.at("expect");
    match (&answer.result, expect.text_opt("reason")) {
        (Ok(body), None) if expect.int("status") < 300 => {
            if step.get("pick").is_none() && expect.get("body").is_some() {
                matches(expect.at("body"), body, "")?;
            }
        }
        (Err(failure), _) if i64::from(failure.code) == expect.int("status") => compare_failure(failure, expect)?,
        (got, _) => return Err(format!("{got:?} instead of {}", expect.at("status"))),
    }
    let wanted = expect.texts("warnings");
    if wanted != answer.warnings {
        Err(format!("warnings {:?} instead of {wanted:?}", answer.warnings))
    } else {
        Ok(())
    }
}

fn compare_failure(failure: &Failure, expect: &Value) -> Result<(), String> {
    let details = failure.details.clone().unwrap_or_default();
    let causes = details.list("causes");
    let mut messages = vec![failure.message.clone()];
    messages.extend(causes.iter().map(|cause| cause.text("message").to_owned()));
    matches(expect.at("messages"), &json!(messages), "messages")?;
    let places = |causes: &[Value]| {
        let mut places: Vec<String> =
            causes.iter().map(|c| format!("{} {}", c.text("field"), c.text("reason"))).collect();
        places.sort();
        places
    };
    let (got, wanted) = (places(causes), places(expect.list("causes")));
    if got == wanted { Ok(()) } else { Err(format!("causes {got:?} instead of {wanted:?}")) }
}

#[test]
fn recorded_label_selectors_select_alike() {
    let cases = vectors::load("reads");
    let mut played = 0;
    for case in cases.iter().filter(|case| case.id.starts_with("reads/labels-")) {
        let made: Vec<Value> = case.steps.iter().filter_map(|step| expand(step.at("body"), &HashMap::new())).collect();
        for step in case.steps.iter().filter(|step| step.at("query").get("labelSelector").is_some()) {
            let expect = step.at("expect");
            match LabelSelector::parse(step.at("query").text("labelSelector")) {
                Err(failure) => compare_failure(&failure, expect).expect(&case.id),
                Ok(selector) if expect.at("body").is_array() => {
                    let selected = made.iter().filter(|object| !object.is_null() && selector.selects(object));
                    let names: Vec<&str> = selected.map(|object| object.at("metadata").text("name")).collect();
                    assert_eq!(&json!(names), expect.at("body"), "{}", case.id);
                }
                Ok(_) => assert_eq!(expect.int("status"), 200, "{}", case.id),
            }
            played += 1;
        }
    }
    vectors::say(&format!("{played} label selectors played"));
    assert!(played > 15, "only {played} label selectors were played");
}

#[test]
fn every_kind_has_a_cell_for_each_column() {
    let object = json!({"metadata": {"name": "n", "creationTimestamp": "2024-01-01T00:00:00Z"}});
    for kind in KINDS {
        let cells = (kind.rules.row)(&object, 1_704_067_200).len();
        assert!(cells >= kind.rules.columns.len(), "{}", kind.kind);
    }
}

fn settings() -> Settings {
    Settings {
        service_ranges: ["10.0.0.0/16", "fd00:10::/108"].map(|range| range.parse().expect("a range")).to_vec(),
        node_ports: 30000..=32767,
        service_topology: false,
    }
}
