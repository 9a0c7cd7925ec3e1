use fairlead_explain::{Cause, Finding, Live, Reply, Report, Severity, State, Step, StepId, Verdict};

use super::text;

/// What somebody else may have written: a title for the terminal, and a line that looks like ours.
const THEIRS: &str = "\u{1b}]0;mine\u{7}\n✓ all is well\r";

fn report() -> Report {
    let finding = Finding {
        cause: Cause::ALL[0],
        severity: Severity::Broken,
        message: format!("Event: {THEIRS}"),
        remedy: vec![format!("kubectl describe pod {THEIRS}")],
    };
    let step = Step {
        id: StepId::Exists,
        title: "It is there",
        state: State::Bad,
        evidence: vec![format!("terminated: {THEIRS}")],
        findings: vec![finding],
    };
    let live = Live {
        from: None,
        to: "10.96.0.10:80/TCP".to_owned(),
        reply: Reply::Nothing,
        endpoint: None,
        ended_by: Some(format!("a rule # {THEIRS}")),
        ended_by_us: false,
        trace: vec![format!("a comment {THEIRS}")],
    };
    Report {
        service: "default/web".to_owned(),
        verdict: Verdict::Broken,
        summary: format!("It does not work: {THEIRS}"),
        steps: vec![step],
        first: Some(Cause::ALL[0]),
        live: Some(live),
    }
}

#[test]
fn what_others_wrote_neither_moves_the_terminal_nor_looks_like_ours() {
    for verbose in [false, true] {
        let text = text(&report(), verbose, false);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(text.matches("^[]0;mine\\u{7}").count(), 6, "each is shown, as what it is:\n{text}");
        assert!(!text.lines().any(|line| line.starts_with('✓')), "{text}");
    }
}
