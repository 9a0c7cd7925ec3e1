use super::*;
use crate::settings::Fallthrough;

fn settings(lines: &[&str], fallthrough: Fallthrough) -> settings::Hosts {
    settings::Hosts {
        file: None,
        zones: vec![Name::root()],
        inline: lines.iter().map(|&line| line.to_owned()).collect(),
        ttl: 60,
        reload: Duration::ZERO,
        reverse: true,
        fallthrough,
        fallthrough_unsupported: false,
    }
}

const LINES: [&str; 4] = ["192.0.2.1 One uno # two", "2001:db8::1 one", "nonsense three", "# 192.0.2.9 four"];

/// How many records an answer has; `None`: others are asked.
fn check(fallthrough: Fallthrough, name: &str, rtype: u16, expected: Option<(u16, usize)>) {
    let hosts = Hosts::new(&settings(&LINES, fallthrough));
    let found = match hosts.answer(&Ask::sample(name, rtype)) {
        Found::Reply(reply) => Some((reply.head.rcode.0, reply.answer.len())),
        Found::Pass => None,
    };
    assert_eq!(found, expected, "{name} {rtype}");
    let name: Name = name.parse().expect("a name");
    assert_eq!(hosts.concerns(&name, rtype), expected.is_some(), "{name} {rtype}");
}

#[test]
fn a_name_has_the_addresses_of_its_lines() {
    let all = || Fallthrough::Zones(vec![Name::root()]);
    check(all(), "one", words::A, Some((0, 1)));
    check(all(), "ONE.", words::AAAA, Some((0, 1)));
    check(all(), "uno", words::AAAA, Some((0, 0)));
    check(all(), "one", words::TXT, Some((0, 0)));
    check(all(), "two", words::A, None);
    check(all(), "three", words::A, None);
    check(all(), "four", words::A, None);
}

#[test]
fn without_fallthrough_an_unknown_name_is_a_failure() {
    check(Fallthrough::Never, "two", words::A, Some((2, 0)));
    check(Fallthrough::Never, "one", words::A, Some((0, 1)));
}

#[test]
fn addresses_have_names() {
    check(Fallthrough::Never, "1.2.0.192.in-addr.arpa", words::PTR, Some((0, 2)));
    check(Fallthrough::Never, "2.2.0.192.in-addr.arpa", words::PTR, None);
}

#[test]
fn a_file_that_changes_is_read_again_and_one_that_vanishes_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hosts");
    std::fs::write(&file, "192.0.2.1 one\n").expect("a file");
    let mut settings = settings(&[], Fallthrough::Never);
    settings.file = Some(file.display().to_string());
    let hosts = Hosts::new(&settings);
    assert!(!hosts.read_again());
    std::fs::write(&file, "192.0.2.1 one two\n").expect("a file");
    assert!(hosts.read_again());
    let two: Name = "two".parse().expect("a name");
    assert!(hosts.table().addresses.contains_key(&two));
    std::fs::remove_file(&file).expect("it is there");
    assert!(!hosts.read_again() && hosts.table().addresses.contains_key(&two));
}
