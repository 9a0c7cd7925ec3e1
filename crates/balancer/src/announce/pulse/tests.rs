use super::*;

const STEP: Duration = Duration::from_millis(100);
const TIMES: Times = Times {
    interval: Duration::from_millis(400),
    limit: Duration::from_millis(1100),
    alone: Duration::from_millis(3000),
};

/// Plays what is heard: a character is what happens at that tenth of a second. `a`, `b`: the Lease of that Node is renewed;
/// `m`: ours is, and comes back at once; `s`: `a` renews its Lease and says that it is good for three seconds; `S`: ours says that and comes
/// back at once; `x`: `a` says that it goes; anything else: nothing.
fn play(times: Times, score: &[&str]) -> (Pulse, Instant) {
    let start = Instant::now();
    let mut pulse = Pulse::new("m", times);
    let mut now = start;
    for (tick, all) in score.iter().enumerate() {
        now = start + STEP * u32::try_from(tick).unwrap();
        for (number, one) in all.chars().enumerate() {
            let beat = Beat {
                guarded: true,
                stamp: format!("{tick}.{number}"),
                left: one == 'x',
                lasts: (one == 's' || one == 'S').then_some(STEP * 30),
                attachments: Vec::new(),
            };
            match one {
                'a' | 'b' | 'm' => drop(pulse.hear(&one.to_string(), beat, now)),
                'x' | 's' => drop(pulse.hear("a", beat, now)),
                'S' => drop(pulse.hear("m", beat, now)),
                _ => {}
            }
            if one == 'm' || one == 'S' {
                pulse.prove(now);
            }
        }
    }
    (pulse, now)
}

#[track_caller]
fn check(score: &str, a: Presence, b: Presence) {
    let (pulse, _) = play(TIMES, &score.split(' ').collect::<Vec<_>>());
    assert_eq!((pulse.presence("a"), pulse.presence("b")), (a, b), "{score}");
}

use Presence::{Left, Live, Silent, Unheard};

#[test]
fn who_is_silent_for_the_limit_is_silent() {
    check("ab m . . ab m . . ab m . . ab m", Live, Live);
    // Its last renewal is 11 steps ago.
    check("ab m . . ab m . . b m . . b m . m", Silent, Live);
    check("ab m . . ab m . . b m . . b m .", Live, Live);
    check("ab m . . x m", Left, Live);
    check("m", Unheard, Unheard);
    // It comes back.
    check("ab m . . b m . . b m . . b m a", Live, Live);
}

#[test]
fn nobody_is_silent_as_long_as_nothing_of_ours_comes_back() {
    check("ab m . . . . . . . . . . . . . . . . .", Live, Live);
}

#[test]
fn time_without_the_api_is_not_counted_against_others() {
    // The API is away for two seconds. Ours comes back first, theirs a little later.
    check("ab m . . . . . . . . . . . . . . . . . . . m . .", Live, Live);
    check("ab m . . . . . . . . . . . . . . . . . . . m . . a m . . a m . . a m", Live, Silent);
    // A short break, and another.
    check("ab m . . . . . . . m . . ab m . . . . . . . m", Live, Live);
}

#[test]
fn a_proof_is_asked_for_when_the_first_time_is_over() {
    let times = TIMES;
    let (pulse, now) = play(times, &["m", "a", "bm"]);
    assert_eq!(pulse.next_suspicion(), Some(now - STEP + times.limit));
    assert!(pulse.sighted(now + STEP * 10) && !pulse.sighted(now + STEP * 11));
    // Nobody asks for those who are known to be silent, nor for oneself.
    let (pulse, _) = play(times, &["am", "m", "", "", "", "m", "", "", "", "m", "", "m"]);
    assert_eq!((pulse.presence("a"), pulse.next_suspicion()), (Silent, None));
}

#[test]
fn who_came_late_counts_no_silence_from_before() {
    // What was heard long ago counts from our first proof on.
    check("ab . . . . . . . . . . . . m", Live, Live);
    check("ab . . . . . . . . . . . . m . . . m . . . m . . m", Silent, Silent);
    // A beat of ours that was late for long excuses others until it, not beyond.
    check("m . . . . . . . . . . . . . . . . . . . . ab m . . . m . . . m . . m", Silent, Silent);
    check("m . . . . . . . . . . . . . . . . . . . . ab m . . . m . . . m", Live, Live);
}

#[test]
fn who_said_that_it_beats_slowly_is_waited_for() {
    let rounds = |first: &str, count: usize| format!("m {first}{}", " m . . .".repeat(count));
    check(&rounds("s", 7), Live, Unheard);
    check(&rounds("s", 9), Silent, Unheard);
    // Once it beats as usual it is waited for as usual.
    check(&rounds("s a", 4), Silent, Unheard);
}

#[test]
fn what_is_known_in_calm_is_good_until_the_next_slow_beat() {
    let (mut pulse, now) = play(TIMES, &["S"]);
    assert!(pulse.sighted(now + STEP * 10) && !pulse.sighted(now + STEP * 11));
    assert!(pulse.rest());
    assert!(pulse.sighted(now + STEP * 40) && !pulse.sighted(now + STEP * 41));
    assert!(pulse.rouse(None, now).is_some() && pulse.rouse(None, now).is_none());
    assert!(!pulse.sighted(now + STEP * 11));
    // Whose heart beats is no reason for calm.
    assert!(!pulse.hears_others());
    assert!(play(TIMES, &["m", "a"]).0.hears_others() && !play(TIMES, &["m", "x"]).0.hears_others());
}

#[test]
fn who_did_not_say_that_it_beats_slowly_does_not() {
    for (score, rests) in [("m", false), ("S", true), ("S m", false), ("m S", true), ("", false)] {
        let (mut pulse, _) = play(TIMES, &score.split(' ').collect::<Vec<_>>());
        assert_eq!((pulse.rest(), pulse.is_calm()), (rests, rests), "{score}");
    }
}

#[test]
fn however_often_something_comes_up_hearts_beat_no_faster_than_usual() {
    // Our last beat began so many steps ago, and the next is due in so many.
    for (ago, next) in [(Some(0), 4), (Some(1), 3), (Some(3), 1), (Some(4), 0), (Some(90), 0), (None, 0)] {
        let (mut pulse, now) = play(TIMES, &["S"]);
        assert!(pulse.rest());
        let (began, now) = (ago.map(|_| now), now + STEP * ago.unwrap_or_default());
        assert_eq!(pulse.rouse(began, now), Some(now + STEP * next), "{ago:?}");
        assert_eq!(pulse.rouse(began, now), None, "it is roused");
    }
}

#[test]
fn a_heartbeat_that_says_the_same_changes_nothing() {
    let mut pulse = Pulse::new("m", Times::default());
    let beat = |stamp: &str, link: &str| Beat {
        guarded: true,
        stamp: stamp.to_owned(),
        left: false,
        lasts: None,
        attachments: vec![Attachment { link: link.to_owned(), hardware: [2; 6], networks: Vec::new() }],
    };
    let now = Instant::now();
    assert!(pulse.hear("a", beat("1", "eth0"), now));
    assert!(!pulse.hear("a", beat("1", "eth0"), now) && !pulse.hear("a", beat("2", "eth0"), now));
    assert!(pulse.hear("a", beat("3", "eth1"), now));
    assert!(pulse.forget("a") && !pulse.forget("a"));
}
