//! A version 2 document as protobuf: the `openapi_v2.Document` of gnostic, which kubectl insists on. The numbers are those
//! of its published schema. Free values (extensions, defaults, enums) are YAML text there; JSON is YAML.

use crate::value::{Map, Value};

use crate::Look;
use crate::proto::wire::Writer;

/// Writes the whole document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    text(&mut out, 1, document, "swagger");
    out.message(2, |out| {
        text(out, 1, document.at("info"), "title");
        text(out, 2, document.at("info"), "version");
    });
    out.message(8, |out| named(out, 2, document.at("paths"), path));
    out.message(9, |out| named(out, 1, document.at("definitions"), schema));
    for requirement in document.list("security") {
        out.message(12, |out| named(out, 1, requirement, |out, scopes| texts(out, 1, scopes)));
    }
    out.message(13, |out| {
        named(out, 1, document.at("securityDefinitions"), |out, key| out.message(2, |out| api_key(out, key)))
    });
    out.finish()
}

fn api_key(out: &mut Writer, key: &Value) {
    text(out, 1, key, "type");
    text(out, 2, key, "name");
    text(out, 3, key, "in");
    text(out, 4, key, "description");
}

fn path(out: &mut Writer, path: &Value) {
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(of) = path.get(method) {
            out.message(number, |out| operation(out, of));
        }
    }
    for of in path.list("parameters") {
        out.message(9, |out| parameter(out, of));
    }
}

fn operation(out: &mut Writer, of: &Value) {
    texts(out, 1, of.at("tags"));
    text(out, 3, of, "description");
    text(out, 5, of, "operationId");
    texts(out, 6, of.at("produces"));
    texts(out, 7, of.at("consumes"));
    for of in of.list("parameters") {
        out.message(8, |out| parameter(out, of));
    }
    out.message(9, |out| named(out, 1, of.at("responses"), |out, of| out.message(1, |out| response(out, of))));
    extensions(out, 13, of);
}

fn response(out: &mut Writer, of: &Value) {
    text(out, 1, of, "description");
    if let Some(of) = of.get("schema") {
        out.message(2, |out| out.message(1, |out| schema(out, of)));
    }
}

/// An item of a list of parameters: {1: parameter}, which is {1: body} or {2: {3: query or 4: path}}.
fn parameter(out: &mut Writer, of: &Value) {
    out.message(1, |out| match of.text("in") {
        "body" => out.message(1, |out| body_parameter(out, of)),
        "path" => out.message(2, |out| out.message(4, |out| url_parameter(out, of, 5, 19))),
        _ => out.message(2, |out| out.message(3, |out| url_parameter(out, of, 6, 20))),
    });
}

fn body_parameter(out: &mut Writer, of: &Value) {
    text(out, 1, of, "description");
    text(out, 2, of, "name");
    text(out, 3, of, "in");
    flag(out, 4, of, "required");
    out.message(5, |out| schema(out, of.at("schema")));
}

/// Parameters of the path and of the query differ in the numbers of some fields only.
fn url_parameter(out: &mut Writer, of: &Value, type_number: u32, unique_number: u32) {
    flag(out, 1, of, "required");
    text(out, 2, of, "in");
    text(out, 3, of, "description");
    text(out, 4, of, "name");
    text(out, type_number, of, "type");
    flag(out, unique_number, of, "uniqueItems");
}

fn schema(out: &mut Writer, of: &Value) {
    text(out, 1, of, "$ref");
    text(out, 2, of, "format");
    text(out, 4, of, "description");
    texts(out, 19, of.at("required"));
    for value in of.list("enum") {
        out.message(20, |out| out.text(2, &value.to_string()));
    }
    if let Some(of) = of.get("additionalProperties") {
        out.message(21, |out| out.message(1, |out| schema(out, of)));
    }
    if let Some(kind) = of.text_opt("type") {
        out.message(22, |out| out.text(1, kind));
    }
    if let Some(of) = of.get("items") {
        out.message(23, |out| out.message(1, |out| schema(out, of)));
    }
    if let Some(properties) = of.get("properties") {
        out.message(25, |out| named(out, 1, properties, schema));
    }
    extensions(out, 31, of);
}

/// An object as a list of `{1: name, 2: value}`.
fn named(out: &mut Writer, number: u32, of: &Value, write: impl Fn(&mut Writer, &Value)) {
    for (name, value) in of.as_object().unwrap_or(&Map::new()) {
        out.message(number, |out| {
            out.text(1, name);
            out.message(2, |out| write(out, value));
        });
    }
}

/// What begins with `x-`: `{1: name, 2: {2: YAML}}`.
fn extensions(out: &mut Writer, number: u32, of: &Value) {
    for (name, value) in of.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        out.message(number, |out| {
            out.text(1, name);
            out.message(2, |out| out.text(2, &value.to_string()));
        });
    }
}

fn text(out: &mut Writer, number: u32, of: &Value, name: &str) {
    if let Some(value) = of.text_opt(name) {
        out.text(number, value);
    }
}

fn texts(out: &mut Writer, number: u32, of: &Value) {
    for value in of.as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.text(number, value);
    }
}

fn flag(out: &mut Writer, number: u32, of: &Value, name: &str) {
    if of.flag(name) {
        out.flag(number, true);
    }
}
