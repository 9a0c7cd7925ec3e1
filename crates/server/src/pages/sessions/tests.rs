use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

const TEN_MINUTES: SignedDuration = SignedDuration::from_mins(10);

#[test]
fn a_link_works_once_and_only_in_its_time() {
    let sessions = Sessions::default();
    let link = sessions.link(false, TEN_MINUTES, at(0)).unwrap();
    assert_eq!(link.path(), format!("/ui/#token={}", link.token));
    let signed = sessions.redeem(&link.token, at(599)).unwrap().expect("in its time");
    assert_eq!(sessions.redeem(&link.token, at(599)), Ok(None), "twice");
    assert!(!sessions.find(&signed.id, at(600)).expect("signed in").write);

    let late = sessions.link(true, TEN_MINUTES, at(0)).unwrap();
    assert_eq!(sessions.redeem(&late.token, at(600)), Ok(None), "too late");
    for junk in ["", "x", &"a".repeat(LETTERS), &"a".repeat(1 << 16)] {
        assert_eq!(sessions.redeem(junk, at(0)), Ok(None));
        assert_eq!(sessions.find(junk, at(0)), None);
    }
}

#[test]
fn a_session_ends_after_half_a_day_or_when_told() {
    let sessions = Sessions::default();
    let id = |write| {
        let link = sessions.link(write, TEN_MINUTES, at(0)).unwrap();
        sessions.redeem(&link.token, at(0)).unwrap().unwrap().id
    };
    let (short, long) = (id(true), id(false));
    assert_eq!(sessions.find(&short, at(1)).unwrap().user().groups, [VIEWERS, EDITORS, "system:authenticated"]);
    assert_eq!(sessions.find(&long, at(1)).unwrap().user().groups, [VIEWERS, "system:authenticated"]);
    sessions.end(&short);
    assert_eq!(sessions.find(&short, at(1)), None);
    assert!(sessions.find(&long, at(12 * 3600 - 1)).is_some());
    assert_eq!(sessions.find(&long, at(12 * 3600)), None);
}

#[test]
fn a_session_is_proved_by_the_secret_it_began_with_and_by_nothing_else() {
    let sessions = Sessions::default();
    let sign_in = || {
        let link = sessions.link(false, TEN_MINUTES, at(0)).unwrap();
        sessions.redeem(&link.token, at(0)).unwrap().unwrap()
    };
    let (one, other) = (sign_in(), sign_in());
    let session = sessions.find(&one.id, at(1)).unwrap();
    assert!(session.is_proved_by(one.proof.as_bytes()));
    for wrong in [other.proof.as_str(), &one.id, "", &one.proof[1..]] {
        assert!(!session.is_proved_by(wrong.as_bytes()), "{wrong}");
    }
}

#[test]
fn however_many_sign_in_a_thousand_are_known() {
    let sessions = Sessions::default();
    let mut ids = Vec::new();
    for second in 0..MOST as i64 + 5 {
        let link = sessions.link(false, TEN_MINUTES, at(second)).unwrap();
        ids.push(sessions.redeem(&link.token, at(second)).unwrap().unwrap().id);
        sessions.link(false, TEN_MINUTES, at(second)).unwrap();
    }
    let known = sessions.known();
    assert_eq!((known.sessions.len(), known.links.len()), (MOST, MOST));
    drop(known);
    let there: Vec<bool> = ids.iter().map(|id| sessions.find(id, at(2000)).is_some()).collect();
    assert_eq!(there.iter().position(|there| *there), Some(5), "the oldest five had to go");
    assert!(there[5..].iter().all(|there| *there));
}
