use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn schedule(success_threshold: u32, failure_threshold: u32) -> Schedule {
    let (initial_delay, period) = (2 * SECOND, 5 * SECOND);
    Schedule { initial_delay, period, timeout: SECOND, success_threshold, failure_threshold }
}

/// Plays looks, `+` or `-`, and says after which of them the state changed, as `h` or `u`.
#[track_caller]
fn check(thresholds: (u32, u32), initial: State, looks: &str, expect: &str) {
    let mut tally = Tally::new(schedule(thresholds.0, thresholds.1), initial);
    let changes = looks.chars().map(|look| match tally.count(Duration::ZERO, look == '+') {
        None => '.',
        Some(State::Healthy) => 'h',
        Some(State::Unhealthy) => 'u',
        Some(State::Unknown) => '?',
    });
    assert_eq!(changes.collect::<String>(), expect, "{looks}");
}

#[test]
fn a_state_changes_after_so_many_alike_in_a_row() {
    check((1, 3), State::Unhealthy, "-+--+---+", ".h.....uh");
    check((2, 1), State::Unhealthy, "+-++-", "...hu");
    check((1, 3), State::Healthy, "--+---", ".....u");
    check((1, 2), State::Unknown, "--", ".u");
    check((1, 2), State::Unknown, "+", "h");
    // Kubernetes does not allow 0; it counts as 1.
    check((0, 0), State::Unknown, "+-", "hu");
}

#[test]
fn looks_are_due_after_the_delay_and_then_once_a_period() {
    let mut tally = Tally::new(schedule(1, 1), State::Unknown);
    assert_eq!(tally.due(), 2 * SECOND);
    tally.count(3 * SECOND, true);
    assert_eq!(tally.due(), 7 * SECOND);
    tally.count(30 * SECOND, true);
    assert_eq!(tally.due(), 30 * SECOND);
    tally.count(31 * SECOND, true);
    assert_eq!(tally.due(), 35 * SECOND);
}
