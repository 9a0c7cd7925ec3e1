use super::*;

fn check(expected: &str, printed: &str, same: bool) {
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    assert_eq!(Bindings::default().take(&expected, printed), same, "{expected:?} {printed:?}");
}

#[test]
fn lines_are_the_same_but_for_blanks() {
    check("a b", "a b\n", true);
    check("a   b", "a b", true);
    check("a b", "ab", false);
    check("a", "b", false);
    check("", "", true);
    check("", "a", false);
    check("a", "", false);
    check("a", "a\nb", false);
    check("a (b) [c] *", "a (b) [c] *", true);
}

#[test]
fn dots_stand_for_anything() {
    check("a\n...\nd", "a\nb\nc\nd", true);
    check("a\n...", "a", true);
    check("...", "a\nb", true);
    check("a\n...\nd", "a\nb", false);
    check("a ... d", "a b c d", true);
    check("a…", "a b c d", true);
    check("a…e", "a b c d", false);
}

#[test]
fn times_differ() {
    check("ready after 81 ms.", "ready after 7 ms.", true);
    check("web  3s  Running", "web  1m12s  Running", true);
    check("at 2026-11-16T04:22:49.046061318Z", "at 2027-01-01T00:00:00Z", true);
    check("2026-11-16 14:54:41", "2027-01-01 00:00:07", true);
    check(" 15:04:58.311  Service", " 07:00:00.001  Service", true);
    check("3 Pods", "4 Pods", false);
}

#[test]
fn what_was_given_out_stays_the_same() {
    check("10.96.30.139 and 10.96.30.139", "10.96.1.2 and 10.96.1.2", true);
    check("10.96.30.139 and 10.96.30.139", "10.96.1.2 and 10.96.1.3", false);
    check("10.96.30.139", "10.97.1.2", false);
    check("80:32111/TCP", "80:30593/TCP", true);
    check("web-01242df6", "web-8899aabb", true);
    check("pod/curl-ppgk9", "pod/curl-x7k2b", true);
}

#[test]
fn commands_name_what_was_given_out_in_this_run() {
    let mut bindings = Bindings::default();
    assert!(bindings.take(&["web 10.96.30.139 80:32111/TCP".to_owned()], "web 10.96.1.2 80:30593/TCP"));
    assert_eq!(bindings.command("curl 10.96.30.139:80 192.0.2.1:32111"), "curl 10.96.1.2:80 192.0.2.1:30593");
    assert_eq!(bindings.command("curl 10.96.30.140"), "curl 10.96.30.140");
    assert!(!bindings.take(&["10.96.30.139".to_owned()], "10.96.30.139"));
}

#[test]
fn what_does_not_fit_binds_nothing() {
    let mut bindings = Bindings::default();
    assert!(!bindings.take(&["10.96.30.139 a".to_owned()], "10.96.1.2 b"));
    assert_eq!(bindings.command("10.96.30.139"), "10.96.30.139");
}
