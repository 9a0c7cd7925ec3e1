//! Manifests as people write them: files, directories or standard input, several documents each, and where in them every field
//! stands, so that a mistake can be shown in its place.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use fairlead_api::Look;
use serde_json::Value;

use place::Place;

mod place;
#[cfg(test)]
mod tests;

/// Files of a directory that are read.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// The largest file, as many objects of the largest size.
const LARGEST: u64 = 64 << 20;
/// Lists in lists are looked into this deep.
const DEPTH: usize = 4;

/// An object, and where it was written.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The file; `-` is standard input.
    pub(super) file: String,
    /// The line its document begins on, counted from 0.
    line: usize,
    /// The path of the object in its document: empty, or `items[3]`.
    path: String,
    place: Place,
    /// The object.
    pub(super) object: Value,
}

impl Manifest {
    /// `web.yaml:7`: where a field stands, or the nearest that is written down.
    pub(super) fn at(&self, field: &str) -> String {
        let path = match (self.path.as_str(), field) {
            ("", field) => field.to_owned(),
            (path, "") => path.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        format!("{}:{}", self.file, self.line + self.place.line_of(&path))
    }

    /// `service/web`, for who reads of it.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.object.text("kind").to_lowercase(), self.object.at("metadata").text("name"))
    }
}

/// All objects of some files.
pub(super) fn read(files: &[PathBuf], deep: bool) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            found.extend(parse("-", &text(std::io::stdin()).context("standard input")?)?);
            continue;
        }
        for file in inside(file, deep)? {
            let name = file.display().to_string();
            let content = std::fs::File::open(&file).map_err(anyhow::Error::from).and_then(text);
            found.extend(parse(&name, &content.with_context(|| name.clone())?)?);
        }
    }
    if found.is_empty() {
        bail!(
            "there is no object in {}",
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(found)
}

fn text(from: impl Read) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = from.take(LARGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST {
        bail!("larger than {} MiB", LARGEST >> 20);
    }
    Ok(text)
}

/// The file, or the manifests of a directory in the order of their names.
fn inside(path: &Path, deep: bool) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let name = || path.display().to_string();
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).with_context(name)? {
        entries.push(entry.with_context(name)?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        let extension = entry.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_link = entry.is_symlink();
        if entry.is_dir() && deep && !is_link {
            files.extend(inside(&entry, deep)?);
        } else if EXTENSIONS.contains(&extension) && entry.is_file() {
            files.push(entry);
        }
    }
    Ok(files)
}

/// The objects of a text.
fn parse(file: &str, text: &str) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Vec::new();
    for (line, document) in documents(text) {
        let place = Place::parse(document).map_err(|mistake| match mistake.line {
            Some(at) => anyhow!("{file}:{}: {}", line + at, mistake.why),
            None => anyhow!("{file}: {}", mistake.why),
        })?;
        let value = place.value();
        if !value.is_null() {
            add(
                &mut found,
                Manifest { file: file.to_owned(), line, path: String::new(), place, object: value },
                DEPTH,
            )?;
        }
    }
    Ok(found)
}

/// Adds an object, or each item of a list.
fn add(found: &mut Vec<Manifest>, mut manifest: Manifest, depth: usize) -> anyhow::Result<()> {
    if !manifest.object.is_object() {
        bail!("{}: an object is wanted here, with apiVersion, kind and metadata", manifest.at(""));
    }
    let is_list = manifest.object.text("kind").ends_with("List") && manifest.object.get("items").is_some();
    if is_list && depth > 0 {
        let Some(Value::Array(items)) = manifest.object.unset("items") else { return Ok(()) };
        for (at, object) in items.into_iter().enumerate() {
            let path = Some(manifest.path.as_str()).filter(|path| !path.is_empty());
            let path = path.map_or_else(|| format!("items[{at}]"), |path| format!("{path}.items[{at}]"));
            let (file, line, place) = (manifest.file.clone(), manifest.line, manifest.place.clone());
            add(found, Manifest { file, line, path, place, object }, depth - 1)?;
        }
        return Ok(());
    }
    for field in ["apiVersion", "kind"] {
        if manifest.object.text(field).is_empty() {
            bail!("{}: {field} is not set", manifest.at(""));
        }
    }
    let name = manifest.object.at("metadata").at("name");
    if !name.is_string() && !name.is_null() {
        bail!("{}: metadata.name is {name}, which is no text: write it in quotes", manifest.at("metadata.name"));
    }
    if name.as_str().is_none_or(str::is_empty) {
        bail!("{}: metadata.name is not set: an object is applied by its name", manifest.at("metadata"));
    }
    found.push(manifest);
    Ok(())
}

/// The documents of a file and the lines they begin on: a line that begins with `---` begins another.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let separator = line.trim_end() == "---" || line.starts_with("--- ");
        if separator && at > start {
            found.push((start_line, &text[start..at]));
            (start, start_line) = (at, number);
        }
        at += line.len();
    }
    found.push((start_line, &text[start..]));
    found.retain(|(_, document)| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.starts_with("---") && !line.trim_start().starts_with('#'))
    });
    found
}
