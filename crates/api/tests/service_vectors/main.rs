//! Plays the recorded creates and updates of Services on the pure rules: decode, default, allocate, prepare, validate.
//! What belongs to the server (metadata, bodies that do not parse, conflicts, other kinds) is left to the server's test.

use std::path::Path;

use fairlead_api::value::Value;

mod template;
mod world;

fn vectors(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("tests/conformance/api/dev").join(file)).expect("the vectors are in the tree")
}

#[allow(clippy::print_stderr, reason = "a test says what it left out")]
fn play(file: &str) {
    let text = vectors(file);
    let (mut played, mut left_out, mut failures) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("each line is a case");
        let outcome = world::World::default().play(&case);
        played += outcome.played;
        left_out += outcome.left_out;
        if let Some(failure) = outcome.failure {
            failures.push(format!("{}: {failure}", case["id"]));
        }
    }
    eprintln!("{file}: {played} steps played, {left_out} left to the server, {} failed", failures.len());
    assert!(played > 100, "hardly any step of {file} was played");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn creates_answer_as_recorded() {
    play("service-create.jsonl");
}

#[test]
fn updates_answer_as_recorded() {
    play("service-update.jsonl");
}
