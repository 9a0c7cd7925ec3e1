//! What is there at a checkpoint, in the form in which it was recorded: lists that are sets are sorted, what is empty is
//! absent, and many endpoints are told by address ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairlead_api::Look;
use fairlead_api::value::{Map, Value, json};

use crate::world::{NAMESPACE, World};

/// More endpoints than this are recorded in short form.
const BULK: usize = 30;
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(crate) fn check(world: &mut World, step: &Value) -> Result<(), String> {
    for (what, options) in step.map("observe").into_iter().flatten() {
        let expected = step.at("expect").at(what);
        let found = match what.as_str() {
            "endpoints" => sorted(endpoints(world, options)),
            "endpointSlices" => sorted(slices(world, options)),
            "sliceNames" => slice_names(world),
            "events" => events(world, options),
            _ => continue,
        };
        let (expected, found) = (prune(expected.clone()), loosen(expected, prune(found)));
        if canonical(&expected) != canonical(&found) {
            let show = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
            let name = step.text("name");
            return Err(format!("at {name:?}, {what}: recorded\n{}\nfound\n{}", show(&expected), show(&found)));
        }
    }
    world.seen_slices = slice_uids(world);
    Ok(())
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().map(|(key, value)| (key, canonical(value))).collect();
            format!("{sorted:?}")
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(canonical).collect();
            items.sort();
            format!("{items:?}")
        }
        other => other.to_string(),
    }
}

fn sorted(mut items: Vec<Value>) -> Value {
    items.sort_by_key(canonical);
    items.into()
}

/// Null, `[]` and `{}` are as if absent.
fn prune(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| (key, prune(value))).filter(|(_, value)| !is_empty(value));
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(prune).collect()),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Where a number of slices was recorded as bounds, any number within them is as recorded.
fn loosen(expected: &Value, mut found: Value) -> Value {
    for (expected, found) in expected.as_array().into_iter().flatten().zip(found.as_array_mut().into_iter().flatten()) {
        let bounds = expected.at("packing");
        let Some(packing) = found.get_mut("packing") else { continue };
        let count = packing.int("sliceCount");
        if bounds.get("minSlices").is_some() && (bounds.int("minSlices")..=bounds.int("maxSlices")).contains(&count) {
            packing.unset("sliceCount");
            packing.set("minSlices", bounds.int("minSlices"));
            packing.set("maxSlices", bounds.int("maxSlices"));
        }
    }
    found
}

fn objects<'w>(world: &'w World, kind: &'static str) -> impl Iterator<Item = &'w Value> {
    world.objects.iter().filter(move |(key, _)| key.0 == kind).map(|(_, object)| object)
}

fn meta(world: &World, object: &Value, options: &Value) -> Value {
    let metadata = object.at("metadata");
    let mut annotations = metadata.at("annotations").clone();
    if let Some(time) = annotations.unset(TRIGGER).filter(|_| options.text("triggerTime") == "value") {
        let created = time.as_str().and_then(|time| world.created.get(time));
        annotations.set(TRIGGER, created.map_or(time.clone(), |name| format!("<created:Service/{name}>").into()));
    }
    if annotations.get(LAST_APPLIED).is_some() {
        annotations.set(LAST_APPLIED, "<last-applied>");
    }
    let mut out = json!({"name": name(object), "labels": metadata.at("labels"), "finalizers": metadata.at("finalizers"),
        "annotations": annotations, "ownerReferences": metadata.at("ownerReferences")});
    if metadata.get("deletionTimestamp").is_some() {
        out.set("deletionTimestamp", "<time>");
    }
    if metadata.text("namespace") != NAMESPACE {
        out.set("namespace", metadata.text("namespace"));
    }
    out
}

fn name(object: &Value) -> String {
    let metadata = object.at("metadata");
    let service = metadata.at("labels").text("kubernetes.io/service-name");
    let mut base = format!("{service}-");
    base.truncate(58);
    let rest = metadata
        .text("name")
        .strip_prefix(&base)
        .filter(|_| !service.is_empty() && object.get("addressType").is_some());
    match rest {
        Some(rest) if rest.len() == 5 => format!("{base}<rand>"),
        _ => metadata.text("name").to_owned(),
    }
}

fn endpoints(world: &World, options: &Value) -> Vec<Value> {
    objects(world, "Endpoints")
        .map(|object| {
            let fields = ["addresses", "notReadyAddresses"];
            let count = |subset: &Value| fields.iter().map(|field| subset.list(field).len()).sum::<usize>();
            let total: usize = object.list("subsets").iter().map(count).sum();
            let mut subsets = object.list("subsets").to_vec();
            for subset in &mut subsets {
                for field in fields.iter().filter(|_| total > BULK || options.flag("counts")) {
                    let mut bulk = bulk(world, subset.list(field));
                    for shape in bulk.get_mut("shapes").and_then(Value::as_array_mut).into_iter().flatten() {
                        if options.flag("counts") {
                            shape.unset("addresses");
                        }
                    }
                    subset.set(*field, bulk);
                }
            }
            let mut out = meta(world, object, options);
            out.set("subsets", subsets);
            prune(out)
        })
        .collect()
}

fn slices(world: &World, options: &Value) -> Vec<Value> {
    let mut groups = BTreeMap::<String, Vec<(Value, Vec<Value>)>>::new();
    for slice in objects(world, "EndpointSlice") {
        let mut out = meta(world, slice, options);
        out.set("addressType", slice.at("addressType").clone());
        out.set("ports", slice.at("ports").clone());
        let out = prune(out);
        groups.entry(canonical(&out)).or_default().push((out, slice.list("endpoints").to_vec()));
    }
    let mut all = Vec::new();
    for group in groups.into_values() {
        if group.iter().map(|(_, endpoints)| endpoints.len()).sum::<usize>() > BULK {
            all.push(prune(bulk_slices(world, &group, options)));
            continue;
        }
        for (mut out, mut endpoints) in group {
            if options.text("hints") == "counts" {
                out.set("hintCounts", hint_counts(&mut endpoints));
            }
            out.set("endpoints", endpoints);
            all.push(prune(out));
        }
    }
    all
}

fn hint_counts(endpoints: &mut [Value]) -> Value {
    let mut counts = BTreeMap::<String, u64>::new();
    for endpoint in endpoints {
        let hints = endpoint.unset("hints").unwrap_or_default();
        let zones: Vec<_> = hints.list("forZones").iter().map(|zone| zone.text("name")).collect();
        let zones = if zones.is_empty() { "<none>".to_owned() } else { zones.join(",") };
        *counts.entry(zones).or_default() += 1;
    }
    json!(counts)
}

fn bulk_slices(world: &World, group: &[(Value, Vec<Value>)], options: &Value) -> Value {
    let mut out = group[0].0.clone();
    let mut endpoints: Vec<_> = group.iter().flat_map(|(_, endpoints)| endpoints.clone()).collect();
    if options.text("hints") == "counts" {
        out.set("hintCounts", hint_counts(&mut endpoints));
    }
    out.set("bulk", bulk(world, &endpoints));
    let sizes: Vec<_> = group.iter().map(|(_, endpoints)| endpoints.len()).collect();
    if options.text("packing") == "loose" {
        let max = options.int_opt("max").unwrap_or(100);
        let too_big: Vec<_> = sizes.iter().filter(|size| **size as i64 > max).collect();
        let empty = sizes.iter().filter(|size| **size == 0).count();
        out.set(
            "packing",
            json!({"total": endpoints.len(), "maxPerSlice": max, "tooBig": too_big,
            "emptySlices": empty, "sliceCount": sizes.len()}),
        );
    } else {
        out.set("sliceSizes", sizes);
    }
    out
}

fn bulk(world: &World, endpoints: &[Value]) -> Value {
    let mut shapes = BTreeMap::<String, (Value, Vec<IpAddr>)>::new();
    let (mut seen, mut twice) = (BTreeSet::new(), Vec::new());
    for endpoint in endpoints {
        let mut shape = prune(endpoint.clone());
        let ip = shape.unset("addresses").map(|ips| ips[0].clone()).or_else(|| shape.unset("ip")).unwrap_or_default();
        let text = ip.as_str().expect("an address").to_owned();
        let target = shape.at("targetRef");
        let (name, uid) = (target.text("name").to_owned(), target.text("uid").to_owned());
        if target.text("kind") == "Pod"
            && uid == format!("<uid:Pod/{name}>")
            && world.pod_ips.contains(&(text.clone(), name))
        {
            shape.set("targetRef", "<the pod with this address>");
        }
        let ip: IpAddr = text.parse().expect("an address");
        shapes.entry(canonical(&shape)).or_insert_with(|| (shape, Vec::new())).1.push(ip);
        if !seen.insert(ip) {
            twice.push(ip);
        }
    }
    if endpoints.is_empty() {
        return Value::Null;
    }
    let shapes = shapes.into_values();
    let shapes = shapes.map(|(shape, ips)| json!({"shape": shape, "count": ips.len(), "addresses": ranges(ips)}));
    json!({"shapes": shapes.collect::<Vec<_>>(), "duplicates": ranges(twice)})
}

fn ranges(mut ips: Vec<IpAddr>) -> Vec<String> {
    let number = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    ips.sort();
    let runs = ips.chunk_by(|a, b| a.is_ipv4() == b.is_ipv4() && number(b).checked_sub(number(a)) == Some(1));
    runs.map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    })
    .collect()
}

fn slice_uids(world: &World) -> BTreeSet<String> {
    let here = objects(world, "EndpointSlice").filter(|slice| slice.at("metadata").text("namespace") == NAMESPACE);
    here.map(|slice| slice.at("metadata").text("uid").to_owned()).collect()
}

/// Which slices are the same as at the last checkpoint.
fn slice_names(world: &World) -> Value {
    let (now, before) = (slice_uids(world), &world.seen_slices);
    let (kept, new, gone) = (now.intersection(before), now.difference(before), before.difference(&now));
    json!({"kept": kept.count(), "new": new.count(), "gone": gone.count()})
}

fn events(world: &World, options: &Value) -> Value {
    let reasons = options.texts("reasons");
    let events = world.events.iter().map(|event| serde_json::from_str::<Value>(event).expect("JSON"));
    sorted(events.filter(|event| reasons.is_empty() || reasons.contains(&event.text("reason"))).collect())
}
