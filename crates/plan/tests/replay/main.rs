//! Packets recorded through the reference proxy, played on plans alone: every Node of the recorded cluster has a planner,
//! objects go in as the scenario applies them, and for each probe `decide` says who answers and whom the server sees.
//!
//! Not judged, because it takes a kernel or a running proxy: load while endpoints change, pages other than health checks,
//! commands, rules of others, and which endpoint a client with affinity got before.

#![allow(clippy::disallowed_methods)] // reads the scenarios
#![allow(clippy::print_stderr)] // says what was not judged

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use fairlead_api::Look;
use serde_json::{Value, json};

mod cluster;
mod probe;
mod way;
mod world;

use probe::Probes;
use world::{Mode, World};

#[test]
fn packets_go_where_the_reference_proxy_in_nftables_mode_sends_them() {
    replay(Mode::Nftables);
}

#[test]
fn packets_go_where_the_reference_proxy_in_iptables_mode_sends_them() {
    replay(Mode::Iptables);
}

fn folder() -> PathBuf {
    let given = std::env::var("DATAPLANE_SCENARIOS").ok().map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/dataplane"))
}

fn read(file: &PathBuf) -> Value {
    serde_json::from_slice(&fs::read(file).expect("readable")).expect("JSON")
}

/// What came of the probes of all scenarios.
#[derive(Default)]
struct Tally {
    judged: usize,
    /// By kind.
    unjudged: BTreeMap<String, usize>,
    better: BTreeSet<String>,
    wrong: Vec<String>,
}

fn replay(mode: Mode) {
    let only = std::env::var("SCENARIO").ok();
    let set = std::env::var("DATAPLANE_SET").unwrap_or_else(|_| "dev".to_owned());
    let mut files: Vec<_> = fs::read_dir(folder().join("scenarios").join(&set)).expect("a folder").flatten().collect();
    files.sort_by_key(fs::DirEntry::file_name);
    let mut tally = Tally::default();
    for file in files {
        let scenario = read(&file.path());
        if only.as_ref().is_none_or(|only| only == scenario.text("name")) {
            let expected = read(&folder().join("expected").join(&set).join(file.file_name()));
            play(&scenario, &expected, mode, &mut tally);
        }
    }
    eprintln!("{mode:?}: {} judged, not judged: {:?}, better: {:?}", tally.judged, tally.unjudged, tally.better);
    assert!(tally.wrong.is_empty(), "{} wrong\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    assert!(tally.judged > 350 || only.is_some(), "only {} probes were judged", tally.judged);
}

fn play(scenario: &Value, expected: &Value, mode: Mode, tally: &mut Tally) {
    let mut world = World::new(scenario.at("proxy_options"), mode);
    let mut probes = Probes::default();
    for step in scenario.list("steps") {
        let Some(name) = step.text_opt("probe") else {
            world.change(step);
            probes.change(step, &world);
            continue;
        };
        let Some(seen) = probes.run(step, &world) else {
            *tally.unjudged.entry(step.text_opt("type").unwrap_or("conn").to_owned()).or_default() += 1;
            continue;
        };
        tally.judged += 1;
        let accepted = expected.at("probes").at(name).list("accept");
        let by = |word: &'static str| accepted.iter().filter(move |one| one.texts("modes").contains(&word));
        let fits = |one: &&Value| probe::fits(step, &seen, one.at("outcome"));
        if by(mode.name()).any(|one| fits(&one)) {
            continue;
        }
        let id = format!("{} / {name}", scenario.text("name"));
        if by("better").any(|one| fits(&one)) {
            tally.better.insert(id);
        } else {
            let wanted: Vec<&Value> = by(mode.name()).map(|one| one.at("outcome")).collect();
            tally.wrong.push(format!("{id}\n  wanted {}\n  seen   {seen}", json!(wanted)));
        }
    }
}
