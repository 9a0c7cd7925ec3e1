//! The page in a real browser: a headless Chromium does what people do, on a machine where `fairlead up` serves real Pods.
//! Pictures of what it saw are in `target/screenshots`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "times are for people to read")]

use std::collections::BTreeSet;

mod browser;
mod changes;
mod flows;
mod keyboard;
mod look;
mod machine;
mod many;
mod modules;
mod paint;
mod sessions;
mod sorting;

/// Without this a browser finds out file by file what it needs, one round trip after another; and what is not needed at once
/// does not hold up what is.
#[test]
fn the_first_page_names_every_file_it_begins_with_and_no_other_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let page = read("index.html");
    let mut needed = vec!["main.js".to_owned(), "paint.js".to_owned()];
    let mut at = 0;
    while let Some(name) = needed.get(at) {
        let text = read(name);
        // `import { a, b } from './c.js';`
        let imports = text.split("from './").skip(1).filter_map(|rest| rest.split_once("';")).map(|(name, _)| name);
        let new: Vec<String> = imports
            .map(str::to_owned)
            .filter(|name| !needed.contains(name))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        needed.extend(new);
        at += 1;
    }
    needed.sort();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let (modules, others): (Vec<String>, Vec<String>) = files.partition(|name| name.ends_with(".js"));
    let named = |name: &String| page.contains(&format!("=\"{name}\""));
    let mut preloaded: Vec<String> = modules.into_iter().filter(named).collect();
    preloaded.sort();
    assert_eq!(preloaded, needed);
    let missing: Vec<String> = others.into_iter().filter(|name| name != "index.html" && !named(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}
