use super::*;

fn only(page: &str) -> What {
    let mut steps = steps(page);
    assert_eq!(steps.len(), 1, "{steps:?}");
    steps.remove(0).what
}

fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    match only(page) {
        What::Session { commands, .. } => commands.into_iter().map(|one| (one.text, one.output)).collect(),
        other => panic!("{other:?}"),
    }
}

fn check(page: &str, expected: &[(&str, &[&str])]) {
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let expected: Vec<_> = expected.iter().map(|(text, output)| ((*text).to_owned(), own(output))).collect();
    assert_eq!(commands(page), expected);
}

#[test]
fn a_transcript_is_commands_and_what_they_print() {
    check("```console\n$ a\nb\n\nc\n$ d\n```\n", &[("a", &["b", "", "c"]), ("d", &[])]);
}

#[test]
fn a_command_goes_on_behind_a_backslash_and_to_the_end_of_its_input() {
    check("```console\n$ a \\\n  b\nc\n```", &[("a \\\n  b", &["c"])]);
    check("```console\n$ a -f - <<EOF\n$ x\nEOF\nc\n```", &[("a -f - <<EOF\n$ x\nEOF", &["c"])]);
}

#[test]
fn comments_say_what_becomes_of_the_next_block() {
    assert_eq!(only("<!-- not-run: no Helm -->\n```console\n$ helm\n```"), What::NotRun { reason: "no Helm".into() });
    let file = What::File { machine: "one".into(), name: "a.yaml".into(), text: "a: 1\n".into() };
    assert_eq!(only("<!-- file: a.yaml -->\n\n```yaml\na: 1\n```"), file);
    let there = "<!-- on: two -->\n```console\n$ a\n```";
    assert!(matches!(only(there), What::Session { machine, .. } if machine == "two"));
    let lab = What::Lab { machine: "one".into(), commands: vec!["a".into(), "b c".into()] };
    assert_eq!(only("<!-- lab:\na\nb c\n-->\n"), lab);
    assert_eq!(only("<!-- lab: a -->"), What::Lab { machine: "one".into(), commands: vec!["a".into()] });
}

#[test]
fn a_comment_does_not_reach_over_other_text() {
    let page = "<!-- not-run: x -->\ntext\n```console\n$ a\n```";
    assert!(matches!(only(page), What::Session { .. }), "{page}");
}

#[test]
fn manifests_are_known_by_their_kind() {
    let text = "apiVersion: v1\nkind: Service\n".to_owned();
    assert_eq!(only(&format!("```yaml\n{text}```")), What::Manifest { machine: "one".into(), text });
}

#[test]
fn what_cannot_be_run_and_does_not_say_so_is_wrong() {
    for page in [
        "```sh\na\n```",
        "```\na\n```",
        "```yaml\na: 1\n```",
        "```text\n$ a\n```",
        "```console\na\n```",
        "<!-- not-run: -->\n",
    ] {
        assert!(matches!(only(page), What::Wrong(_)), "{page}");
    }
}
