//! Checks that the tree is what ARCHITECTURE.md says it is, and that files keep the rules of the house. Needs nothing but std.

use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and the crates of ours it may name in `[dependencies]`. The order is the direction data flows.
const LAYERS: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("endpoints", &["api"]),
    ("plan", &["api"]),
    ("program", &["plan"]),
    ("zone", &["api"]),
    ("explain", &["api", "endpoints", "plan", "zone"]),
    ("store", &["api"]),
    ("server", &["api", "monitor", "runtime", "store"]),
    ("cluster", &["api"]),
    ("history", &["api", "cluster", "runtime"]),
    ("kernel", &[]),
    ("probe", &[]),
    ("monitor", &["runtime"]),
    ("runtime", &[]),
    ("control", &["api", "cluster", "endpoints", "monitor", "probe"]),
    ("proxy", &["api", "cluster", "kernel", "monitor", "plan", "program", "runtime"]),
    ("dns", &["api", "cluster", "kernel", "monitor", "runtime", "zone"]),
    ("balancer", &["api", "cluster", "kernel", "monitor", "plan", "probe", "runtime"]),
    ("pods", &["api", "cluster", "kernel", "monitor", "probe", "runtime"]),
];
/// Crates that may depend on anything: the program, and what only tests use.
const TOP: &[&str] = &["fairlead", "testkit"];
/// Crates that only compute: values in, values out.
const PURE: &[&str] = &["api", "endpoints", "explain", "plan", "program", "zone"];
/// What a pure crate may take from outside: formats and arithmetic, no clock, no sockets.
const PURE_DEPS: &[&str] = &["base64", "bytes", "foldhash", "ipnet", "jiff", "serde", "serde_json", "thiserror"];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["mod", "util", "utils", "helpers", "common", "misc"];

#[test]
fn crates_depend_only_downwards() {
    let mut wrong = Vec::new();
    for (name, allowed) in LAYERS {
        for dep in dependencies(&crates().join(name).join("Cargo.toml")) {
            let fine = match dep.strip_prefix("fairlead-") {
                Some(ours) => allowed.contains(&ours),
                None => !PURE.contains(name) || PURE_DEPS.contains(&dep.as_str()),
            };
            if !fine {
                wrong.push(format!("{name} may not depend on {dep}"));
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_crate_is_on_the_map_and_named_after_its_folder() {
    let map = read(&top().join("ARCHITECTURE.md"));
    for entry in fs::read_dir(crates()).expect("the tree is there").flatten() {
        let folder = entry.file_name().to_string_lossy().into_owned();
        let known = LAYERS.iter().any(|(name, _)| *name == folder) || TOP.contains(&&*folder);
        assert!(known, "crates/{folder} is not in LAYERS; say where it stands");
        assert!(map.contains(&format!("`{folder}`")), "crates/{folder} is not in ARCHITECTURE.md");
        let name = if folder == "fairlead" { folder.clone() } else { format!("fairlead-{folder}") };
        let line = format!("name = \"{name}\"");
        assert!(read(&entry.path().join("Cargo.toml")).contains(&line), "crates/{folder} must be package {name}");
    }
}

#[test]
fn every_dependency_says_what_it_is_for_and_has_its_version_in_one_place() {
    let root = read(&top().join("Cargo.toml"));
    let chosen = section(&root, "workspace.dependencies");
    let silent = chosen.iter().filter(|line| !line.contains("path = ") && !line.contains(" # "));
    none(&silent.map(|line| format!("Cargo.toml: say what it is for: {line}")).collect::<Vec<_>>());

    let mut wrong = Vec::new();
    for manifest in files().into_iter().filter(|file| file.ends_with("Cargo.toml") && *file != top().join("Cargo.toml"))
    {
        let text = read(&manifest);
        // A workspace of its own, as fuzzing needs, cannot take versions from this one.
        if text.lines().any(|line| line == "[workspace]") {
            continue;
        }
        for part in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let own = section(&text, part).into_iter().filter(|line| !line.contains("workspace = true"));
            wrong.extend(own.map(|line| format!("{}: the version belongs into the root: {line}", name(&manifest))));
        }
    }
    none(&wrong);
}

#[test]
fn every_file_of_code_begins_by_saying_what_it_is_for() {
    // `foo/tests.rs` has the tests of `foo.rs`, which says what it is for.
    let beside = |file: &Path| file.ends_with("tests.rs") && file.with_file_name("").with_extension("rs").exists();
    let silent = sources().into_iter().filter(|file| !beside(file) && !read(file).starts_with("//! "));
    none(&silent.map(|file| format!("{}: begin with `//! `", name(&file))).collect::<Vec<_>>());
}

#[test]
fn file_names_say_what_is_inside() {
    let empty = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        EMPTY_NAMES.contains(&stem.as_str())
    };
    let wrong = sources().into_iter().filter(empty);
    none(&wrong.map(|file| format!("{}: a name that says nothing", name(&file))).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_to_do_without_an_issue() {
    // Written in two pieces so that this file passes its own test.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    let mut wrong = Vec::new();
    for file in sources() {
        for (at, line) in read(&file).lines().enumerate() {
            let open = marks.iter().any(|mark| line.contains(mark) && !line.contains(&format!("{mark}(#")));
            if open || line.contains(concat!("#[ig", "nore")) {
                wrong.push(format!("{}:{}: {}", name(&file), at + 1, line.trim()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn the_tree_says_nothing_about_the_machine_it_was_written_on() {
    let paths = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/"), concat!("../sh", "ared/")];
    let texts = ["rs", "md", "toml", "py", "sh", "yaml", "yml", ""];
    let mut wrong = Vec::new();
    for file in files() {
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        if !texts.contains(&extension.as_str()) {
            continue;
        }
        for (at, line) in read(&file).lines().enumerate() {
            if paths.iter().any(|path| line.contains(path)) {
                wrong.push(format!("{}:{}: {}", name(&file), at + 1, line.trim()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for file in files().into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let folder = file.parent().expect("a file is in a folder").to_owned();
        for target in read(&file).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://") || target.contains(' ');
            if !outside && !folder.join(target).exists() {
                wrong.push(format!("{}: nothing at {target}", name(&file)));
            }
        }
    }
    none(&wrong);
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the tree is there")
}

fn crates() -> PathBuf {
    top().join("crates")
}

fn read(file: &Path) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// A file as people write its path.
fn name(file: &Path) -> String {
    file.strip_prefix(top()).unwrap_or(file).display().to_string()
}

/// Every file of the tree but what is built and what git keeps.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![top()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the tree is there").flatten() {
            let path = entry.path();
            let skipped = [".git", "target", "__pycache__"].iter().any(|name| path.ends_with(name));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !skipped => folders.push(path),
                Ok(kind) if kind.is_file() && !skipped => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    files().into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The lines of a section of a manifest that are neither empty nor remarks.
fn section(manifest: &str, wanted: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == format!("[{wanted}]");
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            found.push(line.to_owned());
        }
    }
    found
}

/// The keys of `[dependencies]` in a manifest; an absent crate has none.
fn dependencies(manifest: &Path) -> Vec<String> {
    let keys = section(&read(manifest), "dependencies");
    keys.iter().filter_map(|line| line.split_once(['=', '.'])).map(|(key, _)| key.trim().to_owned()).collect()
}
