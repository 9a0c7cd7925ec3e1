//! The schema tables as JSON Schema, in the dialects of OpenAPI 2 and 3. Version 3 says defaults and wraps references so
//! that they may have neighbours; version 2 does neither.

use std::collections::BTreeMap;

use crate::value::{Map, Value, json};

use super::{descriptions, list_name, type_name};
use crate::schema::{Field, Gate, Merge, Presence, Shape, Strategic, Struct, meta};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Which OpenAPI to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to a type.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Dialect::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Dialect::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }
}

/// Collects types and everything they reach, by name.
pub(super) struct Schemas {
    dialect: Dialect,
    /// Fields behind other gates are not there.
    open: Vec<Gate>,
    types: BTreeMap<String, Value>,
}

impl Schemas {
    pub(super) fn new(dialect: Dialect, open: &[Gate]) -> Self {
        Schemas { dialect, open: open.to_vec(), types: BTreeMap::new() }
    }

    pub(super) fn finish(self) -> Map {
        self.types.into_iter().collect()
    }

    /// A type with `apiVersion` and `kind`.
    pub(super) fn object(&mut self, of: &'static Struct, gvks: &[Value]) {
        let mut schema = self.structure(of, type_meta());
        schema["x-kubernetes-group-version-kind"] = gvks.into();
        self.types.insert(type_name(of), schema);
    }

    /// The list of a type.
    pub(super) fn list(&mut self, of: &'static Struct, gvk: &Value) {
        let mut properties = type_meta();
        let metadata = self.reach(&meta::LIST_META);
        properties
            .insert("metadata".to_owned(), self.neighbours(metadata, descriptions::LIST_METADATA, Some(json!({}))));
        let item = self.reach(of);
        let items = json!({
            "description": format!("The {} objects.", of.name),
            "type": "array",
            "items": self.neighbours(item, "", Some(json!({}))),
        });
        properties.insert("items".to_owned(), items);
        let schema = json!({
            "description": format!("A list of {} objects.", of.name),
            "type": "object",
            "required": ["items"],
            "properties": properties.into_iter().collect::<Map>(),
            "x-kubernetes-group-version-kind": [gvk],
        });
        self.types.insert(list_name(of), schema);
    }

    /// What PATCH takes: anything.
    pub(super) fn patch(&mut self) {
        self.named(
            "Patch",
            json!({"description": "A change to an object, in one of the four patch formats.", "type": "object"}),
        );
    }

    fn structure(&mut self, of: &'static Struct, mut properties: BTreeMap<String, Value>) -> Value {
        let mut required = Vec::new();
        self.fields(of, &mut properties, &mut required);
        let mut out = json!({});
        if let Some(text) = descriptions::of_type(of) {
            out["description"] = text.into();
        }
        out["type"] = "object".into();
        if !required.is_empty() {
            out["required"] = required.into();
        }
        if !properties.is_empty() {
            out["properties"] = Value::Object(properties.into_iter().collect());
        }
        if of.atomic {
            out["x-kubernetes-map-type"] = "atomic".into();
        }
        out
    }

    fn fields(
        &mut self,
        of: &'static Struct,
        properties: &mut BTreeMap<String, Value>,
        required: &mut Vec<&'static str>,
    ) {
        for field in of.fields {
            if let ("", Shape::Struct(inner)) = (field.name, &field.shape) {
                self.fields(inner, properties, required);
                continue;
            }
            if field.gate.is_some_and(|gate| !self.open.contains(&gate)) {
                continue;
            }
            if field.required {
                required.push(field.name);
            }
            properties.insert(field.name.to_owned(), self.property(of, field));
        }
    }

    fn property(&mut self, of: &Struct, field: &'static Field) -> Value {
        let shape = self.shape(&field.shape, field.values);
        let text = descriptions::of_field(of, field.name).unwrap_or_default();
        let mut out = self.neighbours(shape, text, default(field));
        merging(field, &mut out);
        out
    }

    /// A schema with a description and a default beside it. A reference allows neither, hence the wrapping.
    fn neighbours(&self, schema: Value, text: &str, default: Option<Value>) -> Value {
        let mut out = json!({});
        if !text.is_empty() {
            out["description"] = text.into();
        }
        if let (Dialect::V3, Some(default)) = (self.dialect, default) {
            out["default"] = default;
        }
        if self.dialect == Dialect::V3 && schema.get("$ref").is_some() {
            out["allOf"] = json!([schema]);
            return out;
        }
        if let (Value::Object(out), Value::Object(schema)) = (&mut out, schema) {
            out.extend(schema);
        }
        out
    }

    fn shape(&mut self, shape: &'static Shape, values: &[&str]) -> Value {
        match shape {
            Shape::Text(_) if !values.is_empty() => json!({"type": "string", "enum": values}),
            Shape::Text(_) => json!({"type": "string"}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Float64 => json!({"type": "number", "format": "double"}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Struct(inner) => self.reach(inner),
            Shape::List(item) => json!({"type": "array", "items": self.item(item, values)}),
            Shape::Map(item) => json!({"type": "object", "additionalProperties": self.item(item, values)}),
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString | Shape::Any | Shape::Fields => {
                self.special(shape)
            }
        }
    }

    /// What stands in a list or a map.
    fn item(&mut self, shape: &'static Shape, values: &[&str]) -> Value {
        let schema = self.shape(shape, values);
        match zero(shape) {
            Some(zero) => self.neighbours(schema, "", Some(zero)),
            None => schema,
        }
    }

    fn reach(&mut self, of: &'static Struct) -> Value {
        let name = type_name(of);
        if !self.types.contains_key(&name) {
            let schema = self.structure(of, BTreeMap::new());
            self.types.insert(name.clone(), schema);
        }
        self.dialect.reference(&name)
    }

    /// Types that JSON writes as something else than an object.
    fn special(&mut self, shape: &Shape) -> Value {
        let either = |one: &str, other: &str| json!([{"type": one}, {"type": other}]);
        let v3 = self.dialect == Dialect::V3;
        match shape {
            Shape::Time => {
                self.named("Time", json!({"description": descriptions::TIME, "type": "string", "format": "date-time"}))
            }
            Shape::MicroTime => self.named(
                "MicroTime",
                json!({"description": descriptions::MICRO_TIME, "type": "string", "format": "date-time"}),
            ),
            Shape::Fields => self.named("FieldsV1", json!({"description": descriptions::FIELDS, "type": "object"})),
            Shape::Quantity => {
                let mut schema = json!({"description": descriptions::QUANTITY});
                if v3 {
                    schema["oneOf"] = either("string", "number");
                } else {
                    schema["type"] = "string".into();
                }
                self.typed("io.k8s.apimachinery.pkg.api.resource.Quantity", schema)
            }
            Shape::IntOrString => {
                let mut schema = json!({"description": descriptions::INT_OR_STRING, "format": "int-or-string"});
                if v3 {
                    schema["oneOf"] = either("integer", "string");
                } else {
                    schema["type"] = "string".into();
                }
                self.typed("io.k8s.apimachinery.pkg.util.intstr.IntOrString", schema)
            }
            _ => self.typed(
                "io.k8s.apimachinery.pkg.runtime.RawExtension",
                json!({"description": descriptions::ANY, "type": "object"}),
            ),
        }
    }

    fn named(&mut self, name: &str, schema: Value) -> Value {
        self.typed(&format!("{META}.{name}"), schema)
    }

    fn typed(&mut self, name: &str, schema: Value) -> Value {
        self.types.entry(name.to_owned()).or_insert(schema);
        self.dialect.reference(name)
    }
}

fn type_meta() -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("apiVersion".to_owned(), json!({"description": descriptions::API_VERSION, "type": "string"})),
        ("kind".to_owned(), json!({"description": descriptions::KIND, "type": "string"})),
    ])
}

/// The default of a field: what the table says, else zero where absent and zero mean the same.
fn default(field: &Field) -> Option<Value> {
    if let Some(text) = field.default {
        return Some(match field.shape {
            Shape::Text(_) => text.into(),
            _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        });
    }
    match (&field.shape, field.presence) {
        (_, Presence::Given) => None,
        (Shape::Struct(_), _) => Some(json!({})),
        (shape, Presence::Always) => zero(shape),
        (_, Presence::NonZero) => None,
    }
}

fn zero(shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Text(_) => Some("".into()),
        Shape::Int32 | Shape::Int64 | Shape::Float64 => Some(0.into()),
        Shape::Bool => Some(false.into()),
        Shape::Struct(_) => Some(json!({})),
        _ => None,
    }
}

/// How patches and server-side apply merge the field.
fn merging(field: &Field, out: &mut Value) {
    let list = matches!(field.shape, Shape::List(_));
    match field.merge {
        Merge::Keyed(keys) => {
            out["x-kubernetes-list-map-keys"] = keys.into();
            out["x-kubernetes-list-type"] = "map".into();
        }
        Merge::Set => out["x-kubernetes-list-type"] = "set".into(),
        Merge::Atomic | Merge::ByShape if list => out["x-kubernetes-list-type"] = "atomic".into(),
        Merge::Atomic => out["x-kubernetes-map-type"] = "atomic".into(),
        Merge::ByShape => {}
    }
    let (strategy, key) = match field.strategic {
        Strategic::Replace => return,
        Strategic::Merge(key) => ("merge", key),
        Strategic::RetainKeys => ("retainKeys", ""),
        Strategic::MergeRetainKeys(key) => ("merge,retainKeys", key),
    };
    if !key.is_empty() {
        out["x-kubernetes-patch-merge-key"] = key.into();
    }
    out["x-kubernetes-patch-strategy"] = strategy.into();
}
