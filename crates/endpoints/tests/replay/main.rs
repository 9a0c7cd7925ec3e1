//! Scenarios recorded from the reference controllers, played on the pure functions: objects go into a small world that keeps
//! them by the API's own rules, after every step all controllers run until nothing changes, and at checkpoints what is there
//! is compared with what was recorded. Scenarios about other things (allocations, namespaces that go) are passed over.

#![allow(clippy::print_stderr)] // says what was passed over

use std::fs;
use std::path::PathBuf;

use fairlead_api::Look;
use fairlead_api::value::Value;

mod observe;
mod world;

use world::World;

/// Steps and observations that need more than the controllers of endpoints.
const FOREIGN_OPS: &[&str] = &["request", "waitGone"];
const FOREIGN_SIGHTS: &[&str] = &["ipAddresses", "objects"];

#[test]
fn recorded_scenarios_come_out_as_recorded() {
    let folder = scenarios();
    let only = std::env::var("SCENARIO").ok();
    let (mut played, mut passed_over, mut wrong) = (0, Vec::new(), Vec::new());
    let mut files: Vec<_> = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    for file in files {
        let scenario: Value = serde_json::from_slice(&fs::read(file).expect("readable")).expect("JSON");
        let name = scenario.text("name").to_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let is_quirk = scenario.texts("tags").contains(&"quirk") && only.is_none();
        if is_quirk || !scenario.list("steps").iter().all(is_ours) {
            passed_over.push(name);
            continue;
        }
        played += 1;
        wrong.extend(play(&scenario).err().map(|how| format!("{name}: {how}")));
    }
    eprintln!("{played} played, {} differ; passed over: {}", wrong.len(), passed_over.join(" "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(played > 70 || only.is_some(), "only {played} scenarios were played");
}

fn scenarios() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var("CONTROLLER_SCENARIOS").ok().map(PathBuf::from);
    given.unwrap_or_else(|| root.join("tests/conformance/controllers/dev"))
}

fn is_ours(step: &Value) -> bool {
    let foreign = |what: &&str| step.at("observe").get(what).is_some();
    !FOREIGN_OPS.contains(&step.text("op")) && !FOREIGN_SIGHTS.iter().any(foreign)
}

fn play(scenario: &Value) -> Result<(), String> {
    let mut world = World::default();
    for step in scenario.list("steps") {
        match step.text("op") {
            "checkpoint" => observe::check(&mut world, step)?,
            _ => world.step(step),
        }
        world.run_controllers();
    }
    Ok(())
}
