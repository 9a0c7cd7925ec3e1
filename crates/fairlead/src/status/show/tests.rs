use super::super::Status;
use super::super::look::{Leader, NodeState, Part, Tally, Trouble};
use super::text;
use crate::paint::Paint;

/// What a container may leave as its last words.
const THEIRS: &str = "\u{1b}]0;mine\u{7}\r\n✓ all is well";

fn status() -> Status {
    let trouble = |message: &str| Trouble {
        service: "default/web".to_owned(),
        cause: "PodNotReady".to_owned(),
        message: message.to_owned(),
    };
    let node = |name: &str, trouble: Option<&str>| NodeState {
        name: name.to_owned(),
        ready: trouble.is_none(),
        addresses: vec!["192.0.2.1".to_owned()],
        pods: 3,
        proxy: None,
        trouble: trouble.map(str::to_owned),
    };
    let part = |name, says: &str, runs| Part { name, says: says.to_owned(), runs };
    Status {
        server: "v1.36.4".to_owned(),
        services: Tally { well: 2, warnings: vec![trouble("one of two is ready")], broken: vec![trouble("no Pod")] },
        nodes: vec![node("one", None), node("two", Some("it went away"))],
        leaders: vec![Leader { lease: "fairlead-control".to_owned(), holder: "one".to_owned() }],
        here: vec![part("proxy", "mode nftables", true), part("load balancers", "nobody is there", false)],
    }
}

#[test]
fn a_status_is_one_screen_and_plain_where_nobody_looks() {
    let wanted = "\
API server v1.36.4 answers.

Services: 4, of which 1 broken and 1 with a warning
  ✗ default/web: no Pod
  ! default/web: one of two is ready
  fairlead explain svc/web -n default    # says why, and what to do

NODE   STATE       PROXY   PODS   ADDRESSES
one    ready       -       3      192.0.2.1
two    not ready   -       3      192.0.2.1
  ✗ two: it went away

Controllers
  ✓ fairlead-control: one

This machine
  ✓ proxy: mode nftables
  · load balancers: nobody is there
";
    assert_eq!(text(&status(), Paint::NEVER), wanted);
}

#[test]
fn what_is_well_and_what_is_not_has_a_colour_where_somebody_looks() {
    let text = text(&status(), Paint::ALWAYS);
    for words in [
        "  \u{1b}[31m✗\u{1b}[0m default/web: no Pod\n",
        "  \u{1b}[33m!\u{1b}[0m default/web: one",
        "\u{1b}[1mNODE\u{1b}[0m   \u{1b}[1mSTATE\u{1b}[0m       \u{1b}[1mPROXY\u{1b}[0m",
        "one    \u{1b}[32mready\u{1b}[0m       -",
        "two    \u{1b}[31mnot ready\u{1b}[0m   -",
        "\u{1b}[1mControllers\u{1b}[0m\n  \u{1b}[32m✓\u{1b}[0m fairlead-control",
        "  \u{1b}[2m·\u{1b}[0m load balancers",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text:?}");
    }
}

#[test]
fn what_others_wrote_neither_moves_the_terminal_nor_looks_like_ours() {
    let mut status = status();
    status.server.push_str(THEIRS);
    status.services.broken[0].message.push_str(THEIRS);
    status.nodes[1].trouble = Some(THEIRS.to_owned());
    status.nodes[1].proxy = Some(THEIRS.to_owned());
    status.leaders[0].holder.push_str(THEIRS);
    status.here[0].says.push_str(THEIRS);
    let text = text(&status, Paint::NEVER);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert_eq!(text.matches("^[]0;mine\\u{7}\\r").count(), 6, "{text}");
    assert!(!text.lines().any(|line| line.starts_with('✓')), "{text}");
}
