use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::shim::launch::End;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A Pod with containers `i` (init), `s` (sidecar), `a` and `b`, of which some have a history: each letter is `r` for a start,
/// a digit for an end with that code, `R` for a start whose startup probe passed.
fn units(histories: &[(&str, &str)]) -> Vec<Unit> {
    let pod = json!({"spec": {
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}],
    }});
    let mut units = Unit::all(&pod);
    for (name, history) in histories {
        let unit = units.iter_mut().find(|unit| unit.name == *name).expect("such a container");
        for letter in history.chars() {
            match letter.to_digit(10) {
                Some(code) => {
                    unit.end(&End { code: code.cast_signed(), signal: 0, at: NOW.to_string(), failure: None })
                }
                None => {
                    unit.start(NOW);
                    unit.started = letter == 'R';
                }
            }
        }
    }
    units
}

/// `start a b`, `wait a 10`, `over true`, or nothing.
fn check(policy: Policy, histories: &[(&str, &str)], expected: &str) {
    let units = units(histories);
    let made = order(policy, &units, NOW);
    let names = |places: &[usize]| places.iter().map(|place| units[*place].name.as_str()).collect::<Vec<_>>().join(" ");
    let mut said = Vec::new();
    if !made.start.is_empty() {
        said.push(format!("start {}", names(&made.start)));
    }
    if let Some(again) = made.again {
        said.push(format!("wait {} {}", names(&made.held_back), again.as_second()));
    }
    if let Some(well) = made.over {
        said.push(format!("over {well}"));
    }
    assert_eq!(said.join(", "), expected, "{policy:?} {histories:?}");
}

#[test]
fn init_containers_run_one_after_the_other() {
    check(Policy::Always, &[], "start i");
    check(Policy::Always, &[("i", "r")], "");
    check(Policy::Always, &[("i", "r0")], "start s");
    check(Policy::Always, &[("i", "r0"), ("s", "r")], "");
    check(Policy::Always, &[("i", "r0"), ("s", "R")], "start a b");
}

#[test]
fn an_init_container_that_fails_is_tried_again_unless_never() {
    check(Policy::Always, &[("i", "r1")], "start i");
    check(Policy::OnFailure, &[("i", "r1r1")], "wait i 10");
    check(Policy::Never, &[("i", "r1")], "over false");
}

#[test]
fn containers_start_again_by_the_policy() {
    let so = |a, b| [("i", "r0"), ("s", "R"), ("a", a), ("b", b)];
    check(Policy::Always, &so("r0", "r"), "start a");
    check(Policy::OnFailure, &so("r0", "r1"), "start b");
    check(Policy::OnFailure, &so("r0", "r"), "");
    check(Policy::OnFailure, &so("r0", "r0"), "over true");
    check(Policy::Never, &so("r1", "r"), "");
    check(Policy::Never, &so("r1", "r0"), "over false");
    check(Policy::Never, &so("r0", "r0"), "over true");
}

#[test]
fn a_sidecar_that_ends_starts_again_and_holds_nobody_up_then() {
    check(Policy::Never, &[("i", "r0"), ("s", "R0"), ("a", "r"), ("b", "r")], "start s");
    check(Policy::Always, &[("i", "r0"), ("s", "R0"), ("a", "r1"), ("b", "r")], "start s a");
}

#[test]
fn waits_are_doubled_up_to_five_minutes_and_forgotten_after_a_long_run() {
    let history = |times: usize| "r1".repeat(times);
    for (times, wait) in [(2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (9, 300)] {
        let (i, s, a) = (("i", "r0"), ("s", "R"), history(times));
        check(Policy::Always, &[i, s, ("a", &a), ("b", "r")], &format!("wait a {wait}"));
    }
    let mut units = units(&[("a", &history(5))]);
    let unit = units.iter_mut().find(|unit| unit.name == "a").expect("a");
    unit.start(NOW);
    let long = NOW + SignedDuration::from_secs(600);
    unit.end(&End { code: 1, signal: 0, at: long.to_string(), failure: None });
    assert_eq!(unit.due(), Some(long));
}
