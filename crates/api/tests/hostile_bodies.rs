//! Bodies full of mistakes: every list and map of every kind, filled by a client that means harm,
//! is answered with few and short words and with work in proportion to its length.

use std::collections::HashSet;

use fairlead_api::field::{FieldErrors, MAX_MISTAKES};
use fairlead_api::managed::{self, Writer};
use fairlead_api::schema::{Shape, Struct};
use fairlead_api::status::Subject;
use fairlead_api::value::{Map, Value, json};
use fairlead_api::{Failure, Kind, Look, Settings, decode, kinds, patch, proto, validation};

/// Maximum size of an answer about one bad object.
const MAX_ANSWER: usize = 64 << 10;
/// Maximum body size of the server.
const BODY: usize = 3 << 20;

/// The steps from an object to one of its lists or maps.
type Steps = Vec<(u32, &'static str, Shape)>;

/// Returns the number of elements of a hostile list. All cases with the larger number take minutes,
/// with quadratic work hours.
fn elements() -> usize {
    if fairlead_testkit::full() { 10_000 } else { 1_000 }
}

fn settings() -> Settings {
    Settings {
        service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
        node_ports: 30000..=32767,
        service_topology: true,
    }
}

fn all_kinds() -> impl Iterator<Item = &'static Kind> {
    kinds::KINDS.iter().chain(kinds::OPTIONAL).copied()
}

/// Returns the steps to every list and map of a kind. Metadata is the same for all kinds, and
/// looked at for one.
fn lists_and_maps(kind: &Kind) -> Vec<Steps> {
    let mut all = Vec::new();
    collections(kind.schema, &Steps::new(), &mut all);
    all.retain(|steps| *kind == kinds::CONFIG_MAP || steps[0].1 != "metadata");
    all
}

fn collections(of: &'static Struct, above: &Steps, out: &mut Vec<Steps>) {
    for field in of.fields {
        let mut steps = above.clone();
        steps.push((field.number, field.name, field.shape));
        match field.shape {
            Shape::Struct(inner) if field.name.is_empty() => collections(inner, above, out),
            Shape::Struct(inner) => collections(inner, &steps, out),
            Shape::List(item) => {
                out.push(steps.clone());
                if let Shape::Struct(inner) = item {
                    collections(inner, &steps, out);
                }
            }
            Shape::Map(_) => out.push(steps),
            _ => {}
        }
    }
}

/// Form of the elements of a hostile list.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Filling {
    /// Nothing in them.
    Empty,
    /// No two alike, so that a search for a repeated one goes through all.
    Distinct,
    /// Bytes that no field may have.
    Garbage,
}

fn element(shape: &Shape, at: usize, filling: Filling) -> Value {
    match shape {
        Shape::Struct(of) => {
            let mut map = Map::new();
            if filling != Filling::Empty {
                fill(of, at, filling, &mut map);
            }
            Value::Object(map)
        }
        Shape::Text(_) | Shape::IntOrString => match filling {
            Filling::Empty => "".into(),
            Filling::Distinct => format!("n{at}").into(),
            Filling::Garbage => format!("\u{1}\u{85}\"{at}").into(),
        },
        Shape::Int32 | Shape::Int64 | Shape::Float64 => i64::try_from(at).expect("a small number").into(),
        Shape::Bool => true.into(),
        Shape::Bytes => "".into(),
        Shape::Quantity => at.to_string().into(),
        Shape::Time | Shape::MicroTime => Value::Null,
        Shape::Any | Shape::Fields => json!({}),
        Shape::List(item) => vec![element(item, at, filling)].into(),
        Shape::Map(item) => json!({}).as_object().map_or(Value::Null, |_| {
            let mut map = Map::new();
            map.insert(format!("k{at}"), element(item, at, filling));
            Value::Object(map)
        }),
    }
}

/// Fills the plain fields of a struct, and those of structs within it.
fn fill(of: &'static Struct, at: usize, filling: Filling, map: &mut Map) {
    for field in of.fields {
        match field.shape {
            Shape::Struct(inner) if field.name.is_empty() => fill(inner, at, filling, map),
            Shape::Text(_) | Shape::IntOrString | Shape::Int32 | Shape::Int64 | Shape::Bool => {
                map.insert(field.name, element(&field.shape, at, filling));
            }
            _ => {}
        }
    }
}

fn base(kind: &Kind) -> Value {
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": {"name": "a"}});
    if kind.namespaced {
        object["metadata"]["namespace"] = "default".into();
    }
    object
}

/// Returns an object whose list or map at the end of `steps` has so many elements.
fn hostile(kind: &Kind, steps: &Steps, count: usize, filling: Filling) -> Value {
    let (last, above) = steps.split_last().expect("there is a field");
    let mut value = match last.2 {
        Shape::List(item) => (0..count).map(|at| element(item, at, filling)).collect::<Vec<_>>().into(),
        Shape::Map(item) => {
            let key = |at: usize| if filling == Filling::Garbage { format!("\u{1}{at}") } else { format!("k{at}") };
            let entries = (0..count).map(|at| (key(at), element(item, at, filling)));
            Value::Object(entries.collect())
        }
        _ => unreachable!("only lists and maps are filled"),
    };
    let mut name = last.1;
    for (_, outer, shape) in above.iter().rev() {
        let mut map = Map::new();
        map.insert(name, value);
        value = Value::Object(map);
        if matches!(shape, Shape::List(_)) {
            value = vec![value].into();
        }
        name = outer;
    }
    let mut object = base(kind);
    match (object.get_mut(name), value) {
        (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
        (_, value) => {
            object.set(name, value);
        }
    }
    object
}

fn writer(version: &str) -> Writer<'_> {
    Writer { manager: "stranger", api_version: version, subresource: "", now: "2024-01-01T00:00:00Z" }
}

fn refused(kind: &Kind, errors: &FieldErrors) -> usize {
    assert!(errors.len() <= MAX_MISTAKES);
    let failure = Failure::invalid(Subject { group: kind.group, kind: kind.kind, name: "a" }, errors);
    size(&failure)
}

fn size(failure: &Failure) -> usize {
    failure.status().to_string().len()
}

/// Plays what the server does with an object that is created, and with one that takes the place of
/// itself. Returns the size of the largest answer.
fn judge(kind: &'static Kind, body: Value) -> usize {
    let settings = settings();
    let mut object = match decode::decode_gated(kind.schema, body, &|_| true) {
        Ok(decoded) => decoded.value,
        Err(mismatch) => return size(&Failure::bad_request(mismatch.to_string())),
    };
    (kind.rules.default)(&mut object, &settings);
    let version = kind.api_version();
    managed::update(kind.schema, None, &mut object, writer(&version));
    let mut largest = match (kind.rules.admit)(&mut object, &settings) {
        Ok(()) => 0,
        Err(failure) => size(&failure),
    };
    let mut created = object.clone();
    (kind.rules.prepare_create)(&mut created, &settings);
    largest = largest.max(refused(kind, &validation::create(kind, &created, &settings)));
    (kind.rules.warnings)(&created, None, &settings);
    let mut again = object.clone();
    (kind.rules.prepare_update)(&mut again, &object, &settings);
    largest = largest.max(refused(kind, &validation::update(kind, &again, &object, &settings)));
    largest = largest.max(refused(kind, &validation::update(kind, &again, &base(kind), &settings)));
    largest.max(refused(kind, &validation::update_status(kind, &object, &object, &settings)))
}

#[test]
fn every_list_and_map_full_of_mistakes_gets_a_short_answer() {
    let mut cases = 0;
    for kind in all_kinds() {
        for steps in &lists_and_maps(kind) {
            for filling in [Filling::Empty, Filling::Distinct, Filling::Garbage] {
                let answer = judge(kind, hostile(kind, steps, elements(), filling));
                let path: Vec<&str> = steps.iter().map(|step| step.1).collect();
                assert!(answer < MAX_ANSWER, "{} {} {filling:?}: {answer}", kind.kind, path.join("."));
                cases += 1;
            }
        }
    }
    assert!(cases > 400, "{cases}");
}

#[test]
fn every_list_and_map_full_of_mistakes_gets_a_short_answer_as_a_patch() {
    for kind in all_kinds() {
        let live = decode::decode(kind.schema, base(kind)).expect("an empty object is one").value;
        let version = kind.api_version();
        for steps in &lists_and_maps(kind) {
            for filling in [Filling::Distinct, Filling::Garbage] {
                let body = hostile(kind, steps, elements(), filling);
                let text = body.to_string();
                let strategic = patch::strategic(kind.schema, &live, text.as_bytes());
                let merged = patch::merge(&live, text.as_bytes());
                for patched in [strategic, merged] {
                    let answer = match patched {
                        Ok(patched) => {
                            let decoded = decode::decode_gated(kind.schema, patched.value.clone(), &|_| true);
                            let failure = decoded.err().map(|why| patched.undecodable(&why.to_string()));
                            failure.map_or(0, |failure| size(&failure))
                        }
                        Err(failure) => size(&failure),
                    };
                    assert!(answer < MAX_ANSWER, "{} {steps:?}: {answer}", kind.kind);
                }
                if let Err(failure) = managed::apply(kind.schema, Some(&live), &body, false, writer(&version)) {
                    assert!(size(&failure) < MAX_ANSWER, "{} {steps:?}", kind.kind);
                }
            }
        }
    }
}

/// Returns a protobuf message whose list at the end of `steps` fills a body with empty elements of
/// two bytes.
fn empty_elements(steps: &Steps) -> Vec<u8> {
    let mut raw: Vec<u8> = Vec::new();
    for (at, (number, _, _)) in steps.iter().enumerate().rev() {
        let mut tag = Vec::new();
        varint(u64::from(number << 3 | 2), &mut tag);
        if at + 1 == steps.len() {
            tag.push(0);
            raw = tag.repeat((BODY - 64) / tag.len());
            continue;
        }
        varint(raw.len() as u64, &mut tag);
        tag.extend(raw);
        raw = tag;
    }
    raw
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
}

#[test]
fn empty_elements_in_protobuf_are_counted_before_they_are_made() {
    let all = lists_and_maps(&kinds::SERVICE);
    let ports =
        all.iter().find(|steps| steps.iter().map(|step| step.1).eq(["spec", "ports"])).expect("a Service has ports");
    let error = proto::read(kinds::SERVICE.schema, &empty_elements(ports)).unwrap_err();
    assert!(error.to_string().contains("more than 400000 list elements"), "{error}");
}

#[test]
fn lists_that_are_too_long_are_refused_before_their_items_are_read() {
    let list = |count: usize| json!({"metadata": {"finalizers": vec![Value::from("a.example/b"); count]}});
    let decode = |value| decode::decode_gated(kinds::SERVICE.schema, value, &|_| false);
    assert!(decode(list(decode::MAX_LIST)).is_ok());
    let error = decode(list(decode::MAX_LIST + 1)).unwrap_err();
    assert_eq!(error.to_string(), "metadata.finalizers: a list may have at most 25000 elements, this one has 25001");
    let labels: Map = (0..=decode::MAX_ELEMENTS).map(|at| (at.to_string(), Value::from(""))).collect();
    let error = decode(json!({"metadata": {"labels": labels}})).unwrap_err();
    assert_eq!(error.to_string(), "metadata.labels: an object may have at most 100000 list elements and map entries");
}

#[test]
fn a_body_of_tiny_values_is_refused_before_it_fills_memory() {
    let body = format!("[{}0]", "0,".repeat(BODY / 2 - 2));
    assert_eq!(fairlead_api::json::parse(body.as_bytes()).unwrap_err(), "the body has more than 400000 values");
}

#[test]
fn repeated_keys_below_a_long_key_are_named_briefly_and_a_hundred_at_most() {
    let keys: String = (0..40_000).map(|at| format!("\"k{at}\":1,\"k{at}\":2,")).collect();
    let body = format!("{{\"{}\":{{{keys}\"z\":1}}}}", "x".repeat(BODY / 2));
    let parsed = fairlead_api::json::parse(body.as_bytes()).expect("JSON");
    assert_eq!(parsed.duplicates.len(), 1, "shortened, all have one path");
    assert!(parsed.duplicates[0].len() < 2048);
    let parsed = fairlead_api::json::parse(format!("{{{keys}\"z\":1}}").as_bytes()).expect("JSON");
    assert_eq!(parsed.duplicates.len(), 100);
}

#[test]
fn a_patch_that_moves_a_long_list_again_and_again_is_refused() {
    let list = vec![Value::from(0); 300_000];
    let mut operations = vec![json!({"op": "add", "path": "/data", "value": list})];
    operations.extend((0..9_000).map(|_| json!({"op": "remove", "path": "/data/0"})));
    let patch = Value::from(operations).to_string();
    assert!(patch.len() < BODY);
    assert_eq!(patch::json(&base(&kinds::CONFIG_MAP), patch.as_bytes()).unwrap_err().code, 422);
    let one = json!([{"op": "add", "path": "/data", "value": {"a": "b"}}, {"op": "remove", "path": "/data/a"}]);
    assert!(patch::json(&base(&kinds::CONFIG_MAP), one.to_string().as_bytes()).is_ok());
}

#[test]
fn one_element_that_is_reached_by_many_names_is_not_sorted_for_each() {
    let map: Map = (0..20_000).map(|at| (format!("k{at}"), Value::from(0))).collect();
    let mut operations = vec![json!({"op": "add", "path": "/list", "value": [map]})];
    operations.extend(
        (1..9_000)
            .map(|at| json!({"op": "test", "path": format!("/list/{:0>at$}/k1", 0, at = at % 90 + 1), "value": 0})),
    );
    let patch = Value::from(operations).to_string();
    let answer = patch::json(&base(&kinds::CONFIG_MAP), patch.as_bytes());
    assert!(answer.is_ok(), "90 names of one element are little work");
}

#[test]
fn a_patch_cannot_make_an_object_deeper_than_a_body_may_be() {
    // Each operation goes on where the one before ended.
    let nest = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    let mut operations = Vec::new();
    for at in 0..20 {
        let path = format!("/x{}", "/a".repeat(at * 100));
        operations.push(format!("{{\"op\":\"add\",\"path\":\"{path}\",\"value\":{}}}", nest(100)));
    }
    let patch = format!("[{}]", operations.join(","));
    assert_eq!(patch::json(&base(&kinds::CONFIG_MAP), patch.as_bytes()).unwrap_err().code, 422);
    // Copies and moves double the depth.
    let mut operations = vec![format!("{{\"op\":\"add\",\"path\":\"/x\",\"value\":{}}}", nest(60))];
    for at in 0..12 {
        operations.push("{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/y\"}".to_owned());
        let path = format!("/x{}", "/a".repeat(60 << at));
        operations.push(format!("{{\"op\":\"move\",\"from\":\"/y\",\"path\":\"{path}\"}}"));
    }
    let patch = format!("[{}]", operations.join(","));
    assert_eq!(patch::json(&base(&kinds::CONFIG_MAP), patch.as_bytes()).unwrap_err().code, 422);
}

#[test]
fn nulls_remove_many_keys_of_a_map_at_once() {
    let keys: Vec<String> = (0..50_000).map(|at| format!("k{at}")).collect();
    let with = |value: &Value| -> Map { keys.iter().map(|key| (key.clone(), value.clone())).collect() };
    let mut live = base(&kinds::CONFIG_MAP);
    live.set("data", Value::Object(with(&"".into())));
    let patch = json!({"data": with(&Value::Null)}).to_string();
    for patched in [
        patch::merge(&live, patch.as_bytes()).expect("a patch"),
        patch::strategic(kinds::CONFIG_MAP.schema, &live, patch.as_bytes()).expect("a patch"),
    ] {
        assert_eq!(patched.value["data"], json!({}));
    }
}

#[test]
fn managers_by_the_thousand_are_merged_together() {
    let count = if fairlead_testkit::full() { 20_000 } else { 4_000 };
    let entry = |at: usize| {
        let fields = json!({"f:data": {format!("f:k{at}"): {}}});
        json!({"manager": format!("m{at}"), "operation": "Apply", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
               "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let mut live = base(&kinds::CONFIG_MAP);
    let data: Map = (0..count).map(|at| (format!("k{at}"), Value::from(""))).collect();
    live.set("data", Value::Object(data));
    live["metadata"]["managedFields"] = (0..count).map(entry).collect::<Vec<_>>().into();
    let mut config = base(&kinds::CONFIG_MAP);
    let data: Map = (0..count).map(|at| (format!("k{at}"), Value::from("mine"))).collect();
    config.set("data", Value::Object(data));
    let failure = managed::apply(kinds::CONFIG_MAP.schema, Some(&live), &config, false, writer("v1")).unwrap_err();
    assert_eq!(failure.code, 409);
    assert!(size(&failure) < MAX_ANSWER);
    let forced = Writer { manager: "m1", ..writer("v1") };
    managed::apply(kinds::CONFIG_MAP.schema, Some(&live), &config, true, forced).expect("it is forced");
}

#[test]
fn a_long_value_is_shown_by_its_beginning() {
    let long = "\u{1}".repeat(BODY / 2);
    let object = json!({
        "metadata": {"name": long, "labels": {"a": long, long.clone(): "b"}, "finalizers": [long]},
        "spec": {"clusterIP": long, "type": long, "ports": [{"name": long, "protocol": long, "port": 1}]},
    });
    let answer = judge(&kinds::SERVICE, object);
    assert!(answer < MAX_ANSWER, "{answer}");
    let failure = Failure::not_found(Subject { group: "", kind: "services", name: &long });
    assert!(size(&failure) < MAX_ANSWER);
}

#[test]
fn what_is_not_listed_is_said_to_be_there() {
    let labels: Map = (0..500).map(|at| (format!("-{at}"), Value::from(""))).collect();
    let object = json!({"metadata": {"name": "a", "namespace": "b", "labels": labels}});
    let errors = validation::create(&kinds::CONFIG_MAP, &object, &settings());
    assert_eq!(errors.len(), MAX_MISTAKES);
    let failure = Failure::invalid(Subject { group: "", kind: "ConfigMap", name: "a" }, &errors);
    let causes = failure.details.expect("details")["causes"].as_array().expect("causes").clone();
    let last = causes.last().expect("a cause");
    let listed = causes.len() - 1;
    assert_eq!(last["message"], format!("there are more mistakes: only the first {listed} are listed").as_str());
    assert!(failure.message.ends_with(&format!("there are more mistakes: only the first {listed} are listed]")));
    let distinct: HashSet<&Value> = causes.iter().collect();
    assert_eq!(distinct.len(), causes.len());
}
