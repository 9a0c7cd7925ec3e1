//! Objects as JSON, YAML or names, to the letter as kubectl prints them.

use std::io;

use clap::ValueEnum;
use fairlead_api::Look;
use fairlead_cluster::Resource;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::{kinds, yaml};

#[cfg(test)]
mod tests;

/// How objects are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table
    #[default]
    Table,
    /// A table with more columns
    Wide,
    /// Whole objects as JSON
    Json,
    /// Whole objects as YAML
    Yaml,
    /// KIND/NAME a line
    Name,
}

/// An object, or a list, in the form asked for.
pub(super) fn object(value: &Value, output: Output) -> String {
    match output {
        Output::Yaml => yaml::print(value),
        _ => json(value),
    }
}

/// Objects as the List kubectl makes of them.
pub(super) fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

/// `service/web`
pub(super) fn name(resource: &Resource, object: &Value) -> String {
    format!("{}/{}\n", kinds::told(resource), object.at("metadata").text("name"))
}

/// Leaves out who set which field: long, and seldom of interest.
pub(super) fn without_managers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata") {
        metadata.unset("managedFields");
    }
}

/// JSON with sorted keys and four blanks a level.
fn json(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Indented(PrettyFormatter::with_indent(b"    ")));
    value.serialize(&mut serializer).expect("memory takes everything");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is text")
}

/// As Go writes it: what HTML would read is escaped.
struct Indented(PrettyFormatter<'static>);

impl Formatter for Indented {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        for piece in fragment.split_inclusive(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let last = piece.chars().next_back().filter(|c| "<>&\u{2028}\u{2029}".contains(*c));
            let plain = last.map_or(piece, |last| &piece[..piece.len() - last.len_utf8()]);
            out.write_all(plain.as_bytes())?;
            if let Some(last) = last {
                write!(out, "\\u{:04x}", u32::from(last))?;
            }
        }
        Ok(())
    }
}
