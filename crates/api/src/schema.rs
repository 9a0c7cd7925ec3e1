//! The fields of every type we serve, as data: JSON name, protobuf number, type, how lists and maps merge. Decoding,
//! protobuf, patches, server-side apply and OpenAPI all read these tables, so a field is described once.

use crate::value::{Map, Value};

pub mod apps;
pub mod authentication;
pub mod authorization;
pub mod autoscaling;
pub mod coordination;
pub mod core;
pub mod discovery;
pub mod events;
pub mod meta;
pub mod networking;
pub mod node;
pub mod pod;
pub mod policy;
pub mod rbac;
pub mod volume;

/// A type with named fields.
#[derive(Debug)]
pub struct Struct {
    /// The name in the API, such as `ServiceSpec`.
    pub name: &'static str,
    /// The package it is published under in OpenAPI, such as `io.k8s.api.core.v1`.
    pub package: &'static str,
    /// In the order in which they are written.
    pub fields: &'static [Field],
    /// Whether server-side apply treats a value of this type as one piece.
    pub atomic: bool,
}

/// One field of a [`Struct`].
#[derive(Debug)]
pub struct Field {
    /// The JSON name; empty when the fields of the inner struct stand in the outer one.
    pub name: &'static str,
    /// The protobuf field number.
    pub number: u32,
    /// What it holds.
    pub shape: Shape,
    /// When it is written.
    pub presence: Presence,
    /// Whether OpenAPI lists it as required.
    pub required: bool,
    /// How server-side apply merges it.
    pub merge: Merge,
    /// How a strategic merge patch merges it.
    pub strategic: Strategic,
    /// The value OpenAPI and the keys of [`Merge::Keyed`] lists assume when it is absent.
    pub default: Option<&'static str>,
    /// The values OpenAPI allows; empty means any.
    pub values: &'static [&'static str],
    /// The gate without which the field does not exist.
    pub gate: Option<Gate>,
}

/// A feature that the administrator switches on, and that brings fields with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// `spec.topologyKeys` of Service.
    ServiceTopology,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string; the text is the type's name in decoding errors (`string`, `v1.Protocol`).
    Text(&'static str),
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A double.
    Float64,
    /// A boolean.
    Bool,
    /// Bytes, in base64.
    Bytes,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    /// An amount with a unit, such as `100m` or `2Gi`.
    Quantity,
    /// A port number or a port name.
    IntOrString,
    /// Any JSON.
    Any,
    /// A set of field paths (managedFields).
    Fields,
    /// An object.
    Struct(&'static Struct),
    /// A list.
    List(&'static Shape),
    /// An object with free keys.
    Map(&'static Shape),
}

impl Shape {
    fn is_arranged(&self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Struct(of), value) => of.is_arranged(value),
            (Shape::List(item), Value::Array(items)) => items.iter().all(|value| item.is_arranged(value)),
            (Shape::Map(item), Value::Object(map)) => map.values().all(|value| item.is_arranged(value)),
            _ => true,
        }
    }

    fn arrange(&self, value: &mut Value) {
        match (self, value) {
            (Shape::Struct(of), value) => of.arrange(value),
            (Shape::List(item), Value::Array(items)) => items.iter_mut().for_each(|value| item.arrange(value)),
            (Shape::Map(item), Value::Object(map)) => map.values_mut().for_each(|value| item.arrange(value)),
            _ => {}
        }
    }
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Left out when zero, empty or null; a struct is always written.
    NonZero,
    /// Left out when null; zero counts as given.
    Given,
    /// Always written, as zero if need be.
    Always,
}

/// How server-side apply merges a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// By the shape: structs and maps field by field, all else as one piece.
    ByShape,
    /// As one piece.
    Atomic,
    /// A list of unique values.
    Set,
    /// A list of objects told apart by these keys.
    Keyed(&'static [&'static str]),
}

/// How a strategic merge patch merges a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategic {
    /// The patch's list takes the place of the old one.
    Replace,
    /// Elements are matched by this key; an empty key means a list of plain values.
    Merge(&'static str),
    /// Fields that the patch does not name under `$retainKeys` are dropped.
    RetainKeys,
    /// [`Strategic::Merge`] of elements of which only the fields under `$retainKeys` are kept.
    MergeRetainKeys(&'static str),
}

/// A plain string.
pub const TEXT: Shape = Shape::Text("string");

/// The fields of a type in their order, those of inlined structs in their places.
struct Fields {
    left: Vec<std::slice::Iter<'static, Field>>,
}

impl Iterator for Fields {
    type Item = &'static Field;

    fn next(&mut self) -> Option<&'static Field> {
        loop {
            match self.left.last_mut()?.next() {
                None => {
                    self.left.pop();
                }
                Some(Field { name: "", shape: Shape::Struct(inner), .. }) => self.left.push(inner.fields.iter()),
                Some(field) => return Some(field),
            }
        }
    }
}

impl Struct {
    /// The field of that JSON name, looked for in inlined structs too.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find_map(|field| match (field.name, &field.shape) {
            ("", Shape::Struct(inner)) => inner.field(name),
            (own, _) if own == name => Some(field),
            _ => None,
        })
    }

    /// Sets a field of an object of this type and keeps the type's order, in which the object already is. Null removes.
    pub fn place(&self, object: &mut Value, name: &'static str, value: impl Into<Value>) {
        let Some(map) = object.as_object_mut() else {
            return;
        };
        match value.into() {
            Value::Null => {
                map.shift_remove(name);
            }
            value => match map.get_mut(name) {
                Some(place) => *place = value,
                None => {
                    let before = self.fields.iter().take_while(|field| field.name != name);
                    let last = before.filter_map(|field| map.keys().position(|key| key == field.name)).max();
                    let at = last.map_or_else(|| self.head(map), |last| last + 1);
                    map.shift_insert(at, name, value);
                }
            },
        }
    }

    /// How many keys stand before the fields of the type: `kind` and `apiVersion` of a whole object.
    fn head(&self, map: &Map) -> usize {
        map.keys().take_while(|key| self.field(key).is_none()).count()
    }

    /// Puts the fields of a value of this type, and of all within it, into the type's order. Keys the type does not know come
    /// first, which leaves `kind` and `apiVersion` on top.
    pub fn arrange(&self, value: &mut Value) {
        if self.is_arranged(value) {
            return;
        }
        let Some(map) = value.as_object_mut() else { return };
        let mut arranged = Map::with_capacity(map.len());
        for (key, value) in map.iter_mut().filter(|(key, _)| self.field(key).is_none()) {
            arranged.insert(key.clone(), value.take());
        }
        self.arrange_into(map, &mut arranged);
        *map = arranged;
    }

    /// Whether the fields of a value of this type, and of all within it, are in the type's order.
    fn is_arranged(&self, value: &Value) -> bool {
        let Some(map) = value.as_object() else { return true };
        let mut fields = Fields { left: vec![self.fields.iter()] };
        let known = map.iter().skip_while(|(key, _)| self.field(key).is_none());
        known.into_iter().all(|(key, value)| {
            let field = fields.find(|field| *key == field.name);
            field.is_some_and(|field| field.shape.is_arranged(value))
        })
    }

    fn arrange_into(&self, map: &mut Map, arranged: &mut Map) {
        for field in self.fields {
            if let ("", Shape::Struct(inner)) = (field.name, &field.shape) {
                inner.arrange_into(map, arranged);
            } else if let Some(value) = map.get_mut(field.name) {
                let mut value = value.take();
                field.shape.arrange(&mut value);
                arranged.insert(field.name, value);
            }
        }
    }

    /// As one piece under server-side apply.
    pub(crate) const fn atomic(mut self) -> Struct {
        self.atomic = true;
        self
    }
}

/// A field written when it is not zero; the methods below change that.
pub(crate) const fn field(number: u32, name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        number,
        shape,
        presence: Presence::NonZero,
        required: false,
        merge: Merge::ByShape,
        strategic: Strategic::Replace,
        default: None,
        values: &[],
        gate: None,
    }
}

/// The fields of another struct standing among those of the outer one in JSON, in a message of their own in protobuf.
pub(crate) const fn inline(number: u32, inner: &'static Struct) -> Field {
    field(number, "", Shape::Struct(inner))
}

impl Field {
    pub(crate) const fn pointer(mut self) -> Field {
        self.presence = Presence::Given;
        self
    }

    pub(crate) const fn always(mut self) -> Field {
        self.presence = Presence::Always;
        self
    }

    pub(crate) const fn required(mut self) -> Field {
        self.required = true;
        self
    }

    pub(crate) const fn atomic(mut self) -> Field {
        self.merge = Merge::Atomic;
        self
    }

    pub(crate) const fn set(mut self) -> Field {
        self.merge = Merge::Set;
        self
    }

    pub(crate) const fn keys(mut self, keys: &'static [&'static str]) -> Field {
        self.merge = Merge::Keyed(keys);
        self
    }

    pub(crate) const fn merge(mut self, key: &'static str) -> Field {
        self.strategic = Strategic::Merge(key);
        self
    }

    pub(crate) const fn retain_keys(mut self) -> Field {
        self.strategic = match self.strategic {
            Strategic::Merge(key) => Strategic::MergeRetainKeys(key),
            _ => Strategic::RetainKeys,
        };
        self
    }

    pub(crate) const fn default(mut self, value: &'static str) -> Field {
        self.default = Some(value);
        self
    }

    pub(crate) const fn values(mut self, values: &'static [&'static str]) -> Field {
        self.values = values;
        self
    }

    pub(crate) const fn behind(mut self, gate: Gate) -> Field {
        self.gate = Some(gate);
        self
    }
}
