use proptest::prelude::*;

use super::*;

const LOG: &str = "2026-01-01T00:00:00.1Z stdout F first
2026-01-01T00:00:01.2Z stderr F oh no
2026-01-01T00:00:02.3Z stdout P lo
2026-01-01T00:00:02.4Z stdout F ng
2026-01-01T00:00:03.5Z stdout F \n";

/// What a client sees who asks with this query.
#[track_caller]
fn check(query: &str, want: &str) {
    let now = "2026-01-01T00:00:04Z".parse().expect("a time");
    let options = Options::parse(&Query::parse(query), now).expect("options");
    let (mut printer, mut out) = (Printer::new(&options), Vec::new());
    let _ = LOG.split_inclusive('\n').all(|line| printer.print(line.as_bytes(), &mut out));
    assert_eq!(String::from_utf8_lossy(&out), want, "{query}");
}

#[test]
fn a_client_sees_what_it_asks_for() {
    check("", "first\noh no\nlong\n\n");
    check("stream=Stderr", "oh no\n");
    check("stream=All&limitBytes=8", "first\noh");
    check("sinceSeconds=2", "long\n\n");
    check("sinceTime=2026-01-01T00:00:02Z", "long\n\n");
    check("timestamps=true&sinceSeconds=2", "2026-01-01T00:00:02.3Z long\n2026-01-01T00:00:03.5Z \n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for query in ["tailLines=x", "limitBytes=-1", "sinceTime=yesterday"] {
        assert!(Options::parse(&Query::parse(query), Timestamp::UNIX_EPOCH).is_err(), "{query}");
    }
}

#[test]
fn a_line_that_is_none_is_left_out() {
    let options = Options::default();
    let (mut printer, mut out) = (Printer::new(&options), Vec::new());
    for line in ["", "\n", "half a", "2026-01-01T00:00:00Z stdout"] {
        assert!(printer.print(line.as_bytes(), &mut out));
    }
    assert_eq!(out, b"");
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200), limit in 0u64..50) {
        let options = Options { limit: Some(limit), timestamps: true, ..Options::default() };
        let mut out = Vec::new();
        Printer::new(&options).print(&line, &mut out);
        prop_assert!(out.len() as u64 <= limit);
    }
}
