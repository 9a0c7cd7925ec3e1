//! Fields in the order of their type, after rules have added some: answers then read as people expect.

use serde_json::{Map, Value};

use crate::schema::{Field, Shape, Struct};

/// Puts the fields of a value of type `of`, and of all within it, in order. Keys the type does not know come first, which
/// leaves `kind` and `apiVersion` on top.
pub(super) fn arrange(of: &'static Struct, value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    let mut ordered = Map::with_capacity(map.len());
    for (key, value) in map.iter_mut().filter(|(key, _)| of.field(key).is_none()) {
        ordered.insert(key.clone(), value.take());
    }
    for field in fields(of) {
        if let Some(value) = map.get_mut(field.name) {
            let mut value = value.take();
            within(&field.shape, &mut value);
            ordered.insert(field.name.to_owned(), value);
        }
    }
    *map = ordered;
}

/// All fields, with those of inner structs that stand in the outer one.
fn fields(of: &'static Struct) -> Vec<&'static Field> {
    let mut all = Vec::new();
    for field in of.fields {
        match (field.name, &field.shape) {
            ("", Shape::Struct(inner)) => all.extend(fields(inner)),
            _ => all.push(field),
        }
    }
    all
}

fn within(shape: &'static Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Struct(of), value) => arrange(of, value),
        (Shape::List(item), Value::Array(items)) => items.iter_mut().for_each(|value| within(item, value)),
        (Shape::Map(item), Value::Object(map)) => map.values_mut().for_each(|value| within(item, value)),
        _ => {}
    }
}
