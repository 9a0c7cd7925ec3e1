//! Which tokens let machines join?

use super::*;

#[track_caller]
fn check(change: impl FnOnce(&mut Value), token: &str, want: Option<&[&str]>) {
    let mut object = secret("abcdef", "0123456789abcdef");
    change(&mut object);
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let (id, given) = parse(token).unwrap();
    let groups = known(&object, id, given, now).map(|user| user.groups);
    let want: Option<Vec<String>> = want.map(|want| want.iter().map(|group| (*group).to_owned()).collect());
    assert_eq!(groups, want);
}

fn set(name: &'static str, value: &'static str) -> impl FnOnce(&mut Value) {
    move |object| {
        let mut data = object.at("data").clone();
        data.set(name, STANDARD.encode(value));
        object.set("data", data);
    }
}

#[test]
fn a_token_holds_as_its_secret_says() {
    let token = "abcdef.0123456789abcdef";
    let fine: Option<&[&str]> = Some(&[GROUP]);
    check(|_| {}, token, fine);
    check(|_| {}, "abcdef.0123456789abcdee", None);
    check(|object| object.set("type", "Opaque"), token, None);
    check(set("usage-bootstrap-authentication", "false"), token, None);
    check(set("expiration", "2026-01-01T00:00:01Z"), token, fine);
    check(set("expiration", "2026-01-01T00:00:00Z"), token, None);
    check(set("expiration", "soon"), token, None);
    let groups: &[&str] = &[GROUP, "system:bootstrappers:x"];
    check(set("auth-extra-groups", "system:masters,system:bootstrappers:x"), token, Some(groups));
}

#[test]
fn tokens_have_a_form() {
    for token in
        ["", "abcdef", "abcdef.0123", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef.", "a/../b.0123456789abcdef"]
    {
        assert_eq!(parse(token), None, "{token}");
    }
    let (one, other) = (generate().unwrap(), generate().unwrap());
    assert!(parse(&one).is_some() && one != other, "{one} {other}");
}
