//! What holds for any sets and any objects.

use crate::value::Map;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

/// Field sets in their text form.
fn fields() -> impl Strategy<Value = Value> {
    let step = prop_oneof!["f:[a-c]", "[vi]:[0-3]", "k:\\{\"p\":[0-3]\\}"];
    let leaf = Just(json!({}));
    leaf.prop_recursive(3, 24, 4, move |inner| {
        (btree_map(step.clone(), inner, 0..4), any::<bool>()).prop_map(|(nodes, member)| {
            let mut map: Map = nodes.into_iter().collect();
            if member && !map.is_empty() {
                map.insert(".", json!({}));
            }
            Value::Object(map)
        })
    })
}

/// Any JSON, with names that often mean something.
fn anything() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        "[a-c]",
        Just("metadata".to_owned()),
        Just("spec".to_owned()),
        Just("ports".to_owned()),
        Just("port".to_owned()),
        Just("managedFields".to_owned()),
        Just("labels".to_owned()),
        Just("finalizers".to_owned()),
        Just("fieldsV1".to_owned()),
        Just("operation".to_owned()),
        Just("f:spec".to_owned()),
        Just("status".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        Just(Value::from("Update")),
        Just(Value::from("v1")),
        Just(Value::from("FieldsV1")),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name.clone(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Specs that fit a Service.
fn spec() -> impl Strategy<Value = Value> {
    let port = (1..4i64, proptest::option::of(prop_oneof!["TCP", "UDP"]), proptest::option::of("[a-b]"));
    let ports = vec(port, 0..4).prop_map(|ports| {
        let mut seen = std::collections::HashSet::new();
        let unique = ports
            .into_iter()
            .filter(|(port, protocol, _)| seen.insert((*port, protocol.clone().unwrap_or_else(|| "TCP".to_owned()))));
        let all: Vec<Value> = unique
            .map(|(port, protocol, name)| {
                let mut one = json!({"port": port});
                for (key, value) in [("protocol", protocol), ("name", name)] {
                    if let Some(value) = value {
                        one.set(key, value);
                    }
                }
                one
            })
            .collect();
        all
    });
    let selector = proptest::option::of(btree_map("[a-b]", "[a-b]", 0..2));
    (ports, selector).prop_map(|(ports, selector)| {
        let mut spec = json!({"ports": ports});
        if let Some(selector) = selector {
            spec.set("selector", json!(selector));
        }
        spec
    })
}

fn set(fields: &Value) -> Set<'_> {
    text::read(fields).expect("fields")
}

proptest! {
    #[test]
    fn writing_and_reading_gives_the_same_set(a in fields()) {
        let written = text::write(&set(&a));
        prop_assert_eq!(set(&written), set(&a));
    }

    #[test]
    fn union_is_commutative_and_holds_both(a in fields(), b in fields()) {
        let (mut ab, mut ba) = (set(&a), set(&b));
        ab.union(set(&b));
        ba.union(set(&a));
        prop_assert_eq!(&ab, &ba);
        prop_assert_eq!(set(&a).intersection(&ab), set(&a));
    }

    #[test]
    fn difference_and_intersection_make_the_whole(a in fields(), b in fields()) {
        let mut rest = set(&a);
        rest.subtract(&set(&b));
        prop_assert!(rest.intersection(&set(&b)).is_empty());
        rest.union(set(&a).intersection(&set(&b)));
        prop_assert_eq!(rest, set(&a));
    }

    #[test]
    fn taking_whole_trees_takes_at_least_as_much(a in fields(), b in fields()) {
        let (mut some, mut more) = (set(&a), set(&a));
        some.subtract(&set(&b));
        more.subtract_trees(&set(&b));
        prop_assert_eq!(more.intersection(&some), more);
    }

    #[test]
    fn an_object_does_not_differ_from_itself(spec in spec()) {
        let object = canonical(service(json!({}), spec));
        prop_assert_eq!(compare(&SERVICE, &object, &object), Change::default());
    }

    #[test]
    fn applying_twice_is_applying_once(live in spec(), config in spec(), force in any::<bool>()) {
        let live = created(live, "u");
        let config = service(json!({}), config);
        if let Ok(once) = apply(&SERVICE, Some(&live), &config, force, by("m", EARLY)) {
            let once = canonical(once);
            let twice = apply(&SERVICE, Some(&once), &config, force, by("m", EARLY)).expect("no conflict with itself");
            prop_assert_eq!(canonical(twice), once);
        }
    }

    #[test]
    fn whoever_applies_gets_what_it_asked_for(live in spec(), config in spec()) {
        let live = created(live, "u");
        let config = service(json!({}), config);
        let out = apply(&SERVICE, Some(&live), &config, true, by("m", EARLY)).expect("forced");
        let again = merge::merge(types::Type::of_object(&SERVICE), &out, &config);
        prop_assert_eq!(compare(&SERVICE, &out, &again), Change::default());
    }

    #[test]
    fn giving_up_everything_leaves_no_trace(live in spec(), config in spec()) {
        let live = applied(None, "other", &service(json!({}), live));
        if let Ok(once) = apply(&SERVICE, Some(&live), &service(json!({}), config), false, by("m", EARLY)) {
            let nothing = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}});
            let gone = apply(&SERVICE, Some(&canonical(once)), &nothing, false, by("m", EARLY)).expect("no conflict");
            prop_assert!(list(&gone).iter().all(|entry| entry.text("manager") != "m"));
        }
    }

    #[test]
    fn nothing_from_outside_makes_it_panic(old in anything(), new in anything(), config in anything()) {
        let mut changed = new.clone();
        update(&SERVICE, Some(&old), &mut changed, by("m", EARLY));
        update(&SERVICE, None, &mut changed, by("m", EARLY));
        keep_reset(&new, &mut changed);
        keep_times(&old, &mut changed);
        let _ = apply(&SERVICE, Some(&old), &config, false, by("kubectl", EARLY));
        let mut typed = config;
        if typed.is_object() {
            typed.set("apiVersion", "v1");
            typed.set("kind", "Service");
        }
        let _ = apply(&SERVICE, Some(&old), &typed, true, by("m", EARLY));
        let _ = apply(&SERVICE, None, &typed, false, by("m", EARLY));
    }
}
