//! Why the result of a strategic merge patch is not of its type. The reference server reads it by other means than a body, so
//! the words differ from those of [`crate::decode`].

use crate::value::Value;

use crate::schema::{Shape, Struct};

/// The first place that does not fit, in the type's order.
pub(in crate::patch) fn misfit(of: &'static Struct, value: &Value) -> Option<String> {
    of.fields.iter().find_map(|field| match (field.name, &field.shape) {
        ("", Shape::Struct(inner)) => misfit(inner, value),
        (name, shape) => value.get(name).and_then(|value| unlike(shape, value)),
    })
}

fn unlike(shape: &Shape, value: &Value) -> Option<String> {
    match (shape, value) {
        (_, Value::Null) | (Shape::Any | Shape::Fields, _) => None,
        (Shape::Struct(of), Value::Object(_)) => misfit(of, value),
        (Shape::List(item), Value::Array(list)) => list.iter().find_map(|value| unlike(item, value)),
        (Shape::Map(item), Value::Object(map)) => map.values().find_map(|value| unlike(item, value)),
        (Shape::Struct(_), other) => Some(format!("cannot restore struct from: {}", kind(other))),
        (Shape::List(_), other) => Some(format!("cannot restore slice from {}", kind(other))),
        (Shape::Map(_), other) => Some(format!("cannot restore map from {}", kind(other))),
        (Shape::Text(_), Value::String(_)) | (Shape::Bool, Value::Bool(_)) | (Shape::Float64, Value::Number(_)) => None,
        (Shape::Int32 | Shape::Int64, Value::Number(n)) if !n.is_f64() => None,
        (Shape::Int32, Value::Number(_)) => Some("cannot convert float64 to int32".to_owned()),
        (Shape::Int64, Value::Number(_)) => Some("cannot convert float64 to int64".to_owned()),
        (Shape::Text(name), Value::Number(n)) if !n.is_f64() => Some(format!("cannot convert int64 to {name}")),
        (Shape::Text(_), _) => Some("unrecognized type: string".to_owned()),
        (Shape::Bool, _) => Some("unrecognized type: bool".to_owned()),
        (Shape::Int32, _) => Some("unrecognized type: int32".to_owned()),
        (Shape::Int64, _) => Some("unrecognized type: int64".to_owned()),
        (Shape::Float64, _) => Some("unrecognized type: float64".to_owned()),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
