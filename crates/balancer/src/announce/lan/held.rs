//! One address that is held: what it is about to do, and when. Pure: time is handed in.

use std::time::{Duration, Instant};

use fairlead_kernel::packet::Hardware;

use super::Post;

/// After an announcement the next one follows so much later. Packets get lost, machines are busy, switches are slow to open a port.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(700),
    Duration::from_secs(1),
    Duration::from_secs(3),
];
/// And then so often for ever: switches forget who they have not heard for five minutes.
const STEADY: Duration = Duration::from_secs(60);
/// So often somebody is asked for who may have an address.
const PROBES: u8 = 3;
/// So long an answer is waited for.
const PROBE: Duration = Duration::from_millis(80);
/// An address somebody else has is asked for again after this.
const TAKEN: Duration = Duration::from_secs(30);
/// An address is answered for until the Node that has it now announces it, but no longer than this.
const HANDOVER: Duration = Duration::from_millis(500);
/// Minimum time between two reports of claims to an address: a flood of claims on the link costs
/// the deciding task no more than that.
const REPORT: Duration = Duration::from_millis(100);
/// Who says the same of itself may be about to stop; after this we say it again.
const DEFENCE: Duration = Duration::from_millis(300);

/// How it is with an address that is held here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// It is being asked whether somebody else has it.
    Probing,
    /// It is this machine's, and whoever asks is told so.
    Held,
    /// It is another Node's, which has not announced it yet.
    Leaving,
    /// Its link is down.
    Suspended,
    /// Somebody who is no Node has it. It is not announced.
    Taken(Hardware),
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) post: Post,
    /// The links it is announced by, as far as they are there.
    pub(super) ports: Vec<u32>,
    /// Whether the kernel knows it as this machine's.
    pub(super) local: bool,
    /// Time of the last report of a claim by another machine.
    reported: Option<Instant>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Probing {
        sent: u8,
        next: Instant,
    },
    Announcing {
        sent: usize,
        next: Instant,
    },
    Suspended,
    Taken {
        by: Hardware,
        until: Instant,
    },
    /// It is another Node's now, which is waited for.
    Leaving {
        until: Instant,
    },
    Gone,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Probe,
    Announce,
}

impl Held {
    pub(super) fn new(post: Post, ports: Vec<u32>, now: Instant) -> Held {
        let probe = post.probe && !ports.is_empty();
        let state = if probe { State::Probing { sent: 0, next: now } } else { announcing(now) };
        Held { post, ports, local: false, reported: None, state }
    }

    /// It is told again to hold the address.
    pub(super) fn confirm(&mut self, post: Post, ports: Vec<u32>, now: Instant) {
        let more = ports.iter().any(|port| !self.ports.contains(port));
        let waits = matches!(self.state, State::Suspended | State::Leaving { .. } | State::Gone);
        if waits || (more && self.answers()) {
            self.state = announcing(now);
        }
        (self.post, self.ports) = (post, ports);
    }

    /// Everybody is to be told once more.
    pub(super) fn repeat(&mut self, now: Instant) {
        if let State::Announcing { .. } = self.state {
            self.state = announcing(now);
        }
    }

    /// Its links are others now. Who lost all of them waits until it is told again: others may have the address by then.
    pub(super) fn attach(&mut self, ports: Vec<u32>, now: Instant) {
        let lost = ports.is_empty() && !self.ports.is_empty();
        let more = ports.iter().any(|port| !self.ports.contains(port));
        match self.state {
            State::Announcing { .. } | State::Probing { .. } if lost => self.state = State::Suspended,
            State::Announcing { .. } if more => self.state = announcing(now),
            _ => {}
        }
        self.ports = ports;
    }

    /// Another Node has it from now on: it is let go as soon as that one announces it. False: nobody would notice, so at once.
    pub(super) fn hand_over(&mut self, now: Instant) -> bool {
        match self.state {
            State::Announcing { .. } if !self.ports.is_empty() => self.state = State::Leaving { until: now + HANDOVER },
            State::Leaving { .. } => {}
            _ => self.state = State::Gone,
        }
        !self.is_gone()
    }

    /// Whether it is no longer held.
    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Whether questions for it are answered.
    pub(super) fn answers(&self) -> bool {
        matches!(self.state, State::Announcing { .. } | State::Leaving { .. })
    }

    /// Whether the machine should have it.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.state, State::Announcing { .. } | State::Suspended | State::Leaving { .. })
    }

    pub(super) fn here(&self) -> Here {
        match self.state {
            State::Probing { .. } => Here::Probing,
            State::Announcing { .. } => Here::Held,
            State::Leaving { .. } | State::Gone => Here::Leaving,
            State::Suspended => Here::Suspended,
            State::Taken { by, .. } => Here::Taken(by),
        }
    }

    /// Notes that another machine claims the address. Returns true if the claim is to be reported:
    /// the address is announced here, and the last report is older than [`REPORT`].
    pub(super) fn rival(&mut self, hardware: Hardware, friend: bool, now: Instant) -> bool {
        match &mut self.state {
            State::Announcing { sent, next } => {
                (*sent, *next) = (0, (*next).min(now + DEFENCE));
                let due = self.reported.is_none_or(|last| now.saturating_duration_since(last) >= REPORT);
                if due {
                    self.reported = Some(now);
                }
                due
            }
            // The Node that had it still answers, and nobody else does.
            State::Probing { .. } if friend => {
                self.state = announcing(now);
                false
            }
            State::Probing { .. } => {
                self.state = State::Taken { by: hardware, until: now + TAKEN };
                false
            }
            State::Leaving { .. } if friend => {
                self.state = State::Gone;
                false
            }
            _ => false,
        }
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.state {
            State::Probing { next, .. } | State::Announcing { next, .. } => Some(next),
            State::Taken { until, .. } | State::Leaving { until } => Some(until),
            State::Suspended | State::Gone => None,
        }
    }

    /// What is to be done now, if anything is.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.next().is_none_or(|next| next > now) {
            return None;
        }
        match self.state {
            State::Taken { .. } => self.state = State::Probing { sent: 0, next: now },
            State::Probing { sent: PROBES, .. } => self.state = announcing(now),
            State::Leaving { .. } => self.state = State::Gone,
            _ => {}
        }
        match &mut self.state {
            State::Probing { sent, next } => {
                (*sent, *next) = (*sent + 1, now + PROBE);
                Some(Due::Probe)
            }
            State::Announcing { sent, next } => {
                *next = now + AGAIN.get(*sent).copied().unwrap_or(STEADY);
                *sent = sent.saturating_add(1);
                Some(Due::Announce)
            }
            _ => None,
        }
    }
}

fn announcing(now: Instant) -> State {
    State::Announcing { sent: 0, next: now }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(probe: bool, ports: &[u32], now: Instant) -> Held {
        Held::new(Post { links: vec!["eth0".into()], probe }, ports.to_vec(), now)
    }

    /// What it does within some milliseconds, and when.
    fn play(held: &mut Held, start: Instant, until: u64) -> Vec<(u128, Due)> {
        let mut done = Vec::new();
        while let Some(next) = held.next().filter(|next| *next <= start + Duration::from_millis(until)) {
            done.extend(held.due(next).map(|due| ((next - start).as_millis(), due)));
        }
        done
    }

    #[test]
    fn announcements_are_repeated_ever_more_rarely() {
        let start = Instant::now();
        let times: Vec<u128> =
            play(&mut held(false, &[1], start), start, 130_000).into_iter().map(|one| one.0).collect();
        assert_eq!(times, [0, 100, 300, 1000, 2000, 5000, 65_000, 125_000]);
    }

    #[test]
    fn an_address_is_announced_when_nobody_answers_for_it() {
        let start = Instant::now();
        let mut fresh = held(true, &[1], start);
        let done = play(&mut fresh, start, 239);
        assert_eq!(done, [(0, Due::Probe), (80, Due::Probe), (160, Due::Probe)]);
        assert!(!fresh.answers() && !fresh.is_ours());
        assert_eq!(play(&mut fresh, start, 240), [(240, Due::Announce)]);
        assert!(fresh.answers() && fresh.is_ours());
        // Without a link there is nobody to ask.
        assert_eq!(held(true, &[], start).here(), Here::Held);
    }

    #[test]
    fn an_address_somebody_has_is_left_to_it() {
        let (start, other) = (Instant::now(), [2; 6]);
        let mut fresh = held(true, &[1], start);
        assert!(!fresh.rival(other, false, start));
        assert_eq!((fresh.here(), fresh.is_ours()), (Here::Taken(other), false));
        assert_eq!(play(&mut fresh, start, 30_000), [(30_000, Due::Probe)]);
    }

    #[test]
    fn an_address_is_handed_over_without_a_gap() {
        let (start, other) = (Instant::now(), [2; 6]);
        let mut old = held(false, &[1], start);
        play(&mut old, start, 10);
        assert!(old.hand_over(start) && old.answers() && old.is_ours());
        // Who gets it hears the old one, and need not ask any further.
        let mut new = held(true, &[1], start);
        assert!(!new.rival(other, true, start));
        assert_eq!(new.due(start), Some(Due::Announce));
        // A stranger means nothing.
        assert!(!old.rival(other, false, start) && !old.is_gone());
        assert!(!old.rival(other, true, start) && old.is_gone() && !old.answers());

        // The new one is never heard.
        let mut old = held(false, &[1], start);
        old.hand_over(start);
        assert_eq!(play(&mut old, start, 499), []);
        assert!(!old.is_gone());
        play(&mut old, start, 500);
        assert!(old.is_gone());
        // What nobody was told of goes at once.
        assert!(!held(false, &[], start).hand_over(start) && !held(true, &[1], start).hand_over(start));
    }

    #[test]
    fn who_announces_says_it_again_when_another_says_the_same() {
        let start = Instant::now();
        let mut ours = held(false, &[1], start);
        play(&mut ours, start, 5000);
        let later = start + Duration::from_secs(20);
        assert!(ours.rival([2; 6], false, later));
        assert_eq!(play(&mut ours, later, 400), [(300, Due::Announce), (400, Due::Announce)]);
    }

    #[test]
    fn who_lost_its_link_waits_for_a_new_word() {
        let start = Instant::now();
        let mut ours = held(false, &[1], start);
        play(&mut ours, start, 10);
        ours.attach(Vec::new(), start);
        ours.attach(vec![1], start);
        assert_eq!((ours.here(), ours.answers(), ours.next()), (Here::Suspended, false, None));
        ours.confirm(ours.post.clone(), vec![1], start);
        assert_eq!((ours.here(), ours.due(start)), (Here::Held, Some(Due::Announce)));
        // One of two links that comes back is told at once.
        play(&mut ours, start, 10);
        ours.attach(vec![1, 2], start);
        assert_eq!(ours.due(start), Some(Due::Announce));
    }

    #[test]
    fn a_flood_of_claims_is_reported_a_few_times_a_second() {
        let start = Instant::now();
        let mut one = held(false, &[1], start);
        let mut reported = 0;
        for claim in 0..100_000_u64 {
            let now = start + Duration::from_micros(claim * 10);
            reported += usize::from(one.rival([2, 0, 0, 0, 0, (claim % 250) as u8], false, now));
        }
        assert_eq!((reported, one.here()), (10, Here::Held));
    }
}
