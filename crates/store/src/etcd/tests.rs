use super::progress_works;

#[test]
fn progress_is_asked_only_of_members_that_answer_in_order() {
    let check = |version, expect| assert_eq!(progress_works(version), expect, "{version}");
    check("3.4.23", false);
    check("3.4.31", true);
    check("3.5.12", false);
    check("3.5.13", true);
    check("3.6.0", true);
    check("3.6.0-rc.1", true);
    check("4.0.0", true);
    check("3.3.99", false);
    check("", false);
}
