//! Who of the members may be chosen, and who is next: made anew whenever a member, its health or an ejection changes.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::member::{Health, Member};
use super::{Rules, Stage, maglev, turns};
use crate::spec::Choice;

/// A state of the backends.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) members: Vec<Arc<Member>>,
    /// Those that may be chosen.
    eligible: Vec<Arc<Member>>,
    /// Which of the eligible is next, turn by turn: each as often as its weight says.
    turns: Vec<u16>,
    /// Which of the eligible a client's address leads to; made at the first use, then at each change.
    hashed: OnceLock<Vec<u16>>,
    hash_used: AtomicBool,
    /// They are eligible though checks say that none of them is healthy.
    pub(super) fails_open: bool,
    /// When the first ejection ends.
    pub(super) return_at: Option<u64>,
}

impl Table {
    pub(super) fn new(members: Vec<Arc<Member>>, rules: &Rules, now: u64, before: &Table) -> Table {
        let (eligible, fails_open) = eligible(&members, rules, now);
        let weights: Vec<u32> = eligible.iter().map(|member| member.backend.weight).collect();
        let return_at = members.iter().filter_map(|member| member.known.back_at(now)).min();
        let table = Table {
            turns: turns::turns(&weights),
            members,
            eligible,
            hashed: OnceLock::new(),
            hash_used: AtomicBool::new(before.hash_used.load(Ordering::Relaxed)),
            fails_open,
            return_at,
        };
        if table.hash_used.load(Ordering::Relaxed) {
            table.hashed();
        }
        table
    }

    /// The next one that was not tried.
    pub(super) fn pick(
        &self,
        choice: Choice,
        client: IpAddr,
        tried: &[SocketAddr],
        turn: impl FnOnce() -> usize,
    ) -> Option<&Arc<Member>> {
        if self.turns.is_empty() {
            return None;
        }
        let first = match choice {
            Choice::RoundRobin => self.at(turn()),
            Choice::Least => self.least(turn(), tried),
            Choice::TwoChoices => self.better_of_two(),
            Choice::Hash => self.by_hash(client),
        }?;
        if !tried.contains(&first.backend.address) {
            return Some(first);
        }
        // After a failure any other one is fine, but not the same for everybody.
        let from = fastrand::usize(..self.eligible.len());
        let (before, after) = self.eligible.split_at(from);
        after.iter().chain(before).find(|member| !tried.contains(&member.backend.address))
    }

    /// The one at an address, if it may be chosen.
    pub(super) fn eligible(&self, address: SocketAddr) -> Option<&Arc<Member>> {
        self.eligible.iter().find(|member| member.backend.address == address)
    }

    fn at(&self, turn: usize) -> Option<&Arc<Member>> {
        let index = self.turns.get(turn % self.turns.len())?;
        self.eligible.get(usize::from(*index))
    }

    fn least(&self, turn: usize, tried: &[SocketAddr]) -> Option<&Arc<Member>> {
        // Among equals it is the turn that decides, else the first would get all that comes while nobody is busy.
        let (before, after) = self.eligible.split_at(turn % self.eligible.len());
        let fresh = after.iter().chain(before).filter(|member| !tried.contains(&member.backend.address));
        fresh.min_by_key(|member| member.load(1))
    }

    fn better_of_two(&self) -> Option<&Arc<Member>> {
        // Draws follow weights. Two that are idle are equal whatever their weights: the heavier would else win twice.
        let drawn = || self.at(fastrand::usize(..self.turns.len()));
        let (one, other) = (drawn()?, drawn()?);
        Some(if other.load(0) < one.load(0) { other } else { one })
    }

    fn by_hash(&self, client: IpAddr) -> Option<&Arc<Member>> {
        self.hash_used.store(true, Ordering::Relaxed);
        let hashed = self.hashed();
        let index = hashed.get(maglev::place(client, hashed.len()))?;
        self.eligible.get(usize::from(*index))
    }

    fn hashed(&self) -> &Vec<u16> {
        self.hashed.get_or_init(|| {
            let each = self.eligible.iter().map(|member| (member.backend.address, member.backend.weight));
            maglev::table(&each.collect::<Vec<_>>())
        })
    }
}

/// How many members can be told apart; more are left out.
const MOST: usize = u16::MAX as usize;

/// Who may be chosen, and whether that is in spite of what checks say.
fn eligible(members: &[Arc<Member>], rules: &Rules, now: u64) -> (Vec<Arc<Member>>, bool) {
    let usable = |member: &&Arc<Member>| member.backend.weight > 0;
    let healthy = |member: &&Arc<Member>| member.known.health() != Health::Unhealthy && !member.known.is_ejected(now);
    let in_stage = |stage: Stage| move |member: &&Arc<Member>| member.backend.stage == stage;
    let usable: Vec<&Arc<Member>> = members.iter().take(MOST).filter(usable).collect();
    for stage in [Stage::Ready, Stage::Draining] {
        let fine = usable.iter().copied().filter(in_stage(stage)).filter(healthy).collect();
        let fine = prefer_zone(fine, rules);
        if !fine.is_empty() {
            return (fine, false);
        }
    }
    // Checks that fail everywhere say more of the checks than of the backends: all are used, as ELB does.
    for stage in [Stage::Ready, Stage::Draining] {
        let any: Vec<&Arc<Member>> = usable.iter().copied().filter(in_stage(stage)).collect();
        if !any.is_empty() {
            return (prefer_zone(any, rules), true);
        }
    }
    (Vec::new(), false)
}

/// Those of the zone, if it has any.
fn prefer_zone(members: Vec<&Arc<Member>>, rules: &Rules) -> Vec<Arc<Member>> {
    let here = |member: &&&Arc<Member>| rules.zone.is_some() && member.backend.zone == rules.zone;
    let of_zone: Vec<Arc<Member>> = members.iter().filter(here).map(|member| Arc::clone(member)).collect();
    if of_zone.is_empty() { members.into_iter().cloned().collect() } else { of_zone }
}
