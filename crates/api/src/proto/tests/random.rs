//! Random objects come back as they were; random bytes do no harm.

use crate::value::{Value, json};
use proptest::prelude::*;

use super::{canonical, canonical_from};
use crate::proto::{MAGIC, read, read_list, unwrap, write};
use crate::schema::{Field, Shape, Struct, apps, core, discovery, node, pod};

/// Any value of a shape. No empty lists and maps: protobuf cannot tell them from none.
fn value_of(shape: &'static Shape) -> BoxedStrategy<Value> {
    match shape {
        Shape::Text(_) => "[a-zäß]{0,6}".prop_map(Value::from).boxed(),
        Shape::Int32 => any::<i32>().prop_map(Value::from).boxed(),
        Shape::Int64 => any::<i64>().prop_map(Value::from).boxed(),
        Shape::Float64 => (-100i32..100).prop_map(|n| json!(f64::from(n) / 4.0)).boxed(),
        Shape::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Bytes => Just(json!("AQID")).boxed(),
        Shape::Time => (-1000i64..4_000_000_000).prop_map(|s| time(s, "%Y-%m-%dT%H:%M:%SZ")).boxed(),
        Shape::MicroTime => (-1000i64..4_000_000_000).prop_map(|s| time(s, "%Y-%m-%dT%H:%M:%S.%6fZ")).boxed(),
        Shape::Quantity => (0u32..5000).prop_map(|n| json!(format!("{n}m"))).boxed(),
        Shape::IntOrString => {
            prop_oneof![any::<i32>().prop_map(Value::from), "[a-z]{0,4}".prop_map(Value::from)].boxed()
        }
        Shape::Any | Shape::Fields => Just(json!({"f:a": {}})).boxed(),
        Shape::Struct(of) => object_of(of),
        Shape::List(item) => prop::collection::vec(value_of(item), 1..3).prop_map(Value::from).boxed(),
        Shape::Map(item) => prop::collection::btree_map("[a-c]", value_of(item), 1..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
            .boxed(),
    }
}

fn time(seconds: i64, layout: &str) -> Value {
    jiff::Timestamp::new(seconds, 0).expect("in range").strftime(layout).to_string().into()
}

/// An object with some of the fields of its type.
fn object_of(of: &'static Struct) -> BoxedStrategy<Value> {
    let mut fields = Vec::new();
    flat(of, &mut fields);
    let few = prop::sample::subsequence(fields.clone(), 0..=fields.len().min(5));
    few.prop_flat_map(|fields| {
        let values: Vec<_> = fields.iter().map(|field| value_of(&field.shape)).collect();
        let names: Vec<_> = fields.iter().map(|field| field.name.to_owned()).collect();
        values.prop_map(move |values| Value::Object(names.iter().cloned().zip(values).collect()))
    })
    .boxed()
}

fn flat(of: &'static Struct, out: &mut Vec<&'static Field>) {
    for field in of.fields {
        match (&field.shape, field.name) {
            (Shape::Struct(inner), "") => flat(inner, out),
            _ => out.push(field),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(
        service in object_of(&core::SERVICE),
        slice in object_of(&discovery::ENDPOINT_SLICE),
        pod in object_of(&pod::POD),
        deployment in object_of(&apps::DEPLOYMENT_STATUS),
    ) {
        for (of, object) in [
            (&core::SERVICE, service),
            (&discovery::ENDPOINT_SLICE, slice),
            (&pod::POD, pod),
            (&apps::DEPLOYMENT_STATUS, deployment),
        ] {
            let canonical = canonical(of, object);
            prop_assert_eq!(canonical_from(of, &write(of, &canonical)), canonical);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..200)) {
        for of in [
            &core::SERVICE,
            &pod::POD,
            &core::EVENT,
            &discovery::ENDPOINT_SLICE,
            &node::NODE,
            &apps::STATEFUL_SET,
        ] {
            let _ = read(of, &raw);
            let _ = read_list(of, &raw);
        }
        let _ = unwrap(&raw);
        let _ = unwrap(&[&MAGIC[..], &raw].concat());
    }

    #[test]
    fn no_damage_makes_it_panic(object in object_of(&pod::POD), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut raw = write(&pod::POD, &canonical(&pod::POD, object));
        let at = at.index(raw.len());
        raw[at] = byte;
        let _ = read(&pod::POD, &raw);
        let _ = read(&pod::POD, &raw[..at]);
    }
}
