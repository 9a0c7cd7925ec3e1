//! Why the server refused an object, with the place of each mistake in the file it comes from.

use anyhow::anyhow;
use fairlead_api::schema::Shape;
use fairlead_api::{Failure, Look, kinds};
use fairlead_cluster::Error;

use super::super::manifest::Manifest;
use crate::subject::similar;

#[cfg(test)]
mod tests;

/// The failure as people can act on it.
pub(super) fn explained(manifest: &Manifest, error: Error) -> anyhow::Error {
    let name = manifest.name();
    // Kubernetes answers this with code 500, as if it were its own fault.
    if let Some(field) = unknown_field(&error.to_string()) {
        let (parent, last) = field.rsplit_once('.').unwrap_or(("", &field));
        let meant = match similar(last, fields(manifest, parent)) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("`fairlead get {} -o yaml` shows which there are", kind(manifest)),
        };
        return anyhow!("{}: {name} has no field {field}, nothing of it was changed; {meant}", manifest.at(&field));
    }
    match &error {
        Error::Invalid(failure) => {
            let lines =
                causes(failure).map(|(field, message)| format!("\n  {}: {field}: {message}", manifest.at(&field)));
            let lines: String = lines.collect();
            let why = if lines.is_empty() { format!(": {}", failure.message) } else { format!(":{lines}") };
            anyhow!("{} {name} is invalid, nothing of it was changed{why}", at(manifest))
        }
        Error::Conflict(failure) if causes(failure).next().is_some() => {
            let lines = causes(failure).map(|(field, message)| {
                let field = field.trim_start_matches('.');
                format!("\n  {}: {field}: {message}", manifest.at(field))
            });
            anyhow!(
                "{} {name} sets fields that others have set to something else, nothing of it was changed:{}\n  \
                 Take them over with --force-conflicts, or leave them out of the file.",
                at(manifest),
                lines.collect::<String>()
            )
        }
        Error::Unavailable { .. } => error.into(),
        _ => anyhow::Error::from(error).context(format!("{} {name}, nothing of it was changed", at(manifest))),
    }
}

fn at(manifest: &Manifest) -> String {
    format!("{}:", manifest.at(""))
}

fn kind(manifest: &Manifest) -> String {
    manifest.object.text("kind").to_lowercase()
}

/// The fields there are at a path, of kinds we know.
fn fields(manifest: &Manifest, path: &str) -> Vec<&'static str> {
    let (version, name) = (manifest.object.text("apiVersion"), manifest.object.text("kind"));
    let kind = kinds::KINDS.iter().find(|kind| kind.kind == name && kind.api_version() == version);
    let Some(mut here) = kind.map(|kind| kind.schema) else { return Vec::new() };
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let step = step.split('[').next().unwrap_or(step);
        match here.fields.iter().find(|field| field.name == step).map(|field| field.shape) {
            Some(Shape::Struct(inner) | Shape::List(&Shape::Struct(inner))) => here = inner,
            _ => return Vec::new(),
        }
    }
    here.fields.iter().map(|field| field.name).collect()
}

/// The causes of a failure that name a field.
fn causes(failure: &Failure) -> impl Iterator<Item = (String, String)> {
    let all = failure.details.iter().flat_map(|details| details.list("causes"));
    all.map(|cause| (cause.text("field").to_owned(), cause.text("message").to_owned()))
        .filter(|(field, _)| !field.is_empty())
}

/// The field of `.spec.foo: field not declared in schema` or `unknown field "spec.foo"`.
fn unknown_field(message: &str) -> Option<String> {
    if let Some((before, _)) = message.split_once(": field not declared in schema") {
        let path = before.rsplit([' ', '\n']).next()?;
        return Some(path.trim_start_matches('.').to_owned()).filter(|path| !path.is_empty());
    }
    let (_, after) = message.split_once("unknown field \"")?;
    Some(after.split_once('"')?.0.to_owned())
}
