//! The thread itself: waits for frames, for notices of links and of its tables, and for orders.

mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_kernel::Error;
use fairlead_kernel::link::{LinkMonitor, Links};
use fairlead_kernel::packet::{Groups, Hardware, Protocol};
use fairlead_kernel::relay::{Events, Poller, Waker};

use super::desk::{Desk, Told};
use super::held::{Due, Held};
use super::port::{Heard, Port};
use super::{OWNER, Orders, Post, Rival, Says};
use crate::guard::Table;
use crate::owner::Attachment;

/// So many frames of a link are taken before others have their turn.
const TURN: usize = 64;
/// Maximum number of frames read within a [`WINDOW`], 25,000 a second; then the thread sleeps for
/// the rest of the window. A flood on a link costs a bounded share of a core: the kernel drops
/// frames that do not fit into the socket buffers, and a neighbour without an answer asks again.
const FRAMES: usize = 250;
/// Time in which frames are counted, see [`FRAMES`]. Far shorter than the times of probes and
/// announcements.
const WINDOW: Duration = Duration::from_millis(10);
/// What did not work is tried again after this.
const RETRY: Duration = Duration::from_secs(1);
/// Notices of links come in swarms.
const GATHERED: Duration = Duration::from_millis(10);
/// Links are looked at again so often, whatever notices say.
const LOOK: Duration = Duration::from_secs(30);

const WAKE: u64 = 0;
const LINKS: u64 = 1;
const TABLES: u64 = 2;
/// A port's tokens begin here: twice its link's number, and one more for NDP.
const PORTS: u64 = 16;

pub(super) struct Thread {
    desk: Arc<Desk>,
    waker: Arc<Waker>,
    says: Says,
    poller: Poller,
    links: Links,
    loopback: u32,
    monitor: LinkMonitor,
    table: Table,
    groups: Option<Groups>,
    /// By number; only links that are needed.
    ports: BTreeMap<u32, Port>,
    /// All links, by number, that are up and have networks.
    attached: BTreeMap<u32, Attachment>,
    held: BTreeMap<IpAddr, Held>,
    /// What an earlier process held: nobody has to be asked for it.
    inherited: BTreeSet<IpAddr>,
    orders: Option<Orders>,
    /// The orders could not be carried out whole: then again.
    retry: Option<Instant>,
    /// When to look at links again.
    look: Instant,
    /// What went wrong last, so that it is said once.
    trouble: String,
    /// How it is with what is held may have changed.
    changed: bool,
    /// Start of the window in which frames are counted, and the number read since.
    window: (Instant, usize),
}

impl Thread {
    pub(super) fn open(desk: Arc<Desk>, waker: Arc<Waker>, says: Says) -> Result<Thread, Error> {
        let failed = |source: io::Error| Error::System { action: "starting the announcer".into(), source };
        let (poller, monitor, table) = (Poller::new().map_err(failed)?, LinkMonitor::open()?, Table::open()?);
        for (fd, token) in [(waker.as_fd(), WAKE), (monitor.as_fd(), LINKS), (table.as_fd(), TABLES)] {
            poller.watch(fd, token).map_err(failed)?;
        }
        let mut links = Links::open()?;
        let loopback = links.index("lo")?;
        let inherited = links.local(OWNER)?.into_iter().collect();
        // Machines without IPv6 are fine.
        let groups = Groups::open().ok();
        let mut thread = Thread {
            desk,
            waker,
            says,
            poller,
            links,
            loopback,
            monitor,
            table,
            groups,
            ports: BTreeMap::new(),
            attached: BTreeMap::new(),
            held: BTreeMap::new(),
            inherited,
            orders: None,
            retry: None,
            look: Instant::now(),
            trouble: String::new(),
            changed: false,
            window: (Instant::now(), 0),
        };
        thread.look()?;
        Ok(thread)
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(64);
        loop {
            if self.take_orders().is_break() {
                return;
            }
            let now = Instant::now();
            self.act(now);
            self.tell();
            let next = self.next(now).saturating_duration_since(Instant::now());
            if let Err(error) = self.poller.wait(&mut events, Some(next)) {
                // Nothing can be heard: what is due is done all the same, and not more often than this.
                tracing::error!(%error, "the announcer cannot wait for frames");
                std::thread::sleep(RETRY);
            }
            for token in events.iter().map(|event| event.token).collect::<Vec<_>>() {
                self.happened(token);
            }
            self.rest();
        }
    }

    /// Waits for the end of a window in which as many frames were read as may be.
    fn rest(&mut self) {
        let (began, frames) = self.window;
        let left = WINDOW.saturating_sub(began.elapsed());
        if frames >= FRAMES {
            std::thread::sleep(left);
        }
        if frames >= FRAMES || left.is_zero() {
            self.window = (Instant::now(), 0);
        }
    }

    fn take_orders(&mut self) -> ControlFlow<()> {
        let Told { hold, stop } = self.desk.take();
        if stop {
            self.let_go(|_| true);
            return ControlFlow::Break(());
        }
        if let Some(orders) = hold {
            let (fresh, again) = (orders.sighted, orders.again);
            self.orders = Some(orders);
            self.carry_out(fresh);
            if again {
                self.held.values_mut().for_each(|held| held.repeat(Instant::now()));
            }
        }
        ControlFlow::Continue(())
    }

    /// Carries orders out; `fresh` ones let suspended addresses go on.
    fn carry_out(&mut self, fresh: bool) {
        let Some(orders) = self.orders.clone() else { return };
        let now = Instant::now();
        (self.retry, self.changed) = (None, true);
        if let Some(posts) = &orders.posts {
            self.hand_over(posts, &orders.handed, now);
        }
        // An address that is not guarded is not held either. The second attempt makes everything
        // anew, in case that the first one stumbled over what others did to the tables.
        if let Err(error) = self.table.apply(&orders.guard).or_else(|_| self.table.apply(&orders.guard)) {
            self.let_go(|_| true);
            self.report_guard(Some(error.to_string()));
            return self.failed("cannot guard load balancers' addresses, which are given up", &error, now);
        }
        self.report_guard(None);
        let Some(posts) = orders.posts else { return };
        self.open_ports(&posts, now);
        let inherited = std::mem::take(&mut self.inherited);
        for (address, mut post) in posts {
            post.probe &= !inherited.contains(&address);
            let ports = self.ports_of(&post, address);
            match self.held.get_mut(&address) {
                Some(held) if fresh => held.confirm(post, ports, now),
                Some(_) => {}
                None => {
                    self.join(address, &ports);
                    self.held.insert(address, Held::new(post, ports, now));
                }
            }
        }
        self.settle(now);
    }

    /// Lets go of what is no longer ours: at once, or when the Node that has it now is heard.
    fn hand_over(&mut self, posts: &BTreeMap<IpAddr, Post>, handed: &BTreeSet<IpAddr>, now: Instant) {
        let mut stays: BTreeSet<IpAddr> = posts.keys().copied().collect();
        for (address, held) in &mut self.held {
            if !stays.contains(address) && handed.contains(address) && held.hand_over(now) {
                stays.insert(*address);
            }
        }
        self.let_go(|address| !stays.contains(address));
    }

    /// Holds no longer what `gone` says, and nothing an earlier process held.
    fn let_go(&mut self, gone: impl Fn(&IpAddr) -> bool) {
        let away: Vec<IpAddr> = self.held.keys().filter(|address| gone(address)).copied().collect();
        for address in &away {
            if let (Some(held), Some(groups), IpAddr::V6(v6)) = (self.held.remove(address), &self.groups, address) {
                held.ports.iter().for_each(|port| groups.leave(*port, *v6));
            }
        }
        self.rejoin();
        let local = self.links.local(OWNER).unwrap_or_default();
        for address in local.into_iter().filter(gone) {
            if let Err(error) = self.links.delete_local(OWNER, self.loopback, address)
                && !error.is_not_found()
            {
                tracing::warn!(%error, %address, "an address stays this machine's");
            }
        }
    }

    /// Addresses with the same end share a group: what one left is joined again for others.
    fn rejoin(&mut self) {
        for (address, held) in &self.held {
            self.join(*address, &held.ports);
        }
    }

    fn join(&self, address: IpAddr, ports: &[u32]) {
        let (IpAddr::V6(address), Some(groups)) = (address, &self.groups) else { return };
        for port in ports {
            if let Err(error) = groups.join(*port, address) {
                tracing::warn!(%error, %address, "questions for an address may not be heard");
            }
        }
    }

    /// Makes the kernel know what is this machine's.
    fn settle(&mut self, now: Instant) {
        let mut failed = None;
        for (address, held) in self.held.iter_mut().filter(|(_, held)| held.local != held.is_ours()) {
            let done = if held.is_ours() {
                self.links.add_local(OWNER, self.loopback, *address)
            } else {
                self.links.delete_local(OWNER, self.loopback, *address)
            };
            match done {
                Ok(()) => held.local = held.is_ours(),
                Err(error) if error.is_not_found() && !held.is_ours() => held.local = false,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => self.failed("an address cannot be made this machine's", &error, now),
            None => self.trouble.clear(),
        }
    }

    /// Reports why the rules that guard addresses are not in force, if that changed.
    fn report_guard(&self, unguarded: Option<String>) {
        self.says.unguarded.send_if_modified(|said| {
            let changed = *said != unguarded;
            *said = unguarded;
            changed
        });
    }

    fn failed(&mut self, what: &str, error: &Error, now: Instant) {
        let text = format!("{what}: {error}");
        if self.trouble != text {
            tracing::error!("{text}");
            self.trouble = text;
        }
        self.retry = Some(now + RETRY);
    }

    fn happened(&mut self, token: u64) {
        let now = Instant::now();
        match token {
            WAKE => self.waker.woken(),
            LINKS => match self.monitor.changed() {
                Ok(true) => self.look = self.look.min(now + GATHERED),
                Ok(false) => {}
                Err(error) => self.failed("changes of links are not heard", &error, now),
            },
            TABLES => match self.table.mend() {
                Ok(true) => tracing::warn!("somebody changed the tables of the load balancer: they are made anew"),
                Ok(false) => {}
                Err(error) => {
                    self.failed("the tables of the load balancer cannot be mended", &error, now);
                    self.carry_out(false);
                }
            },
            _ => {
                let protocol = if token.is_multiple_of(2) { Protocol::Arp } else { Protocol::Ndp };
                let index = u32::try_from((token - PORTS) / 2).unwrap_or(u32::MAX);
                self.hear(index, protocol, now);
            }
        }
    }

    fn hear(&mut self, index: u32, protocol: Protocol, now: Instant) {
        for _ in 0..TURN {
            let Some(port) = self.ports.get_mut(&index) else { return };
            self.window.1 += 1;
            match port.hear(protocol) {
                Ok(Some(Some(Heard::Asked(question)))) => {
                    let held = self.held.get(&question.address());
                    if held.is_some_and(|held| held.answers() && held.ports.contains(&index)) {
                        // It is lost like any packet: who asked asks again.
                        let _ = port.answer(&question);
                    }
                }
                Ok(Some(Some(Heard::Claimed(address, hardware)))) => self.claimed(address, hardware, now),
                Ok(Some(None)) => {}
                // A link that is down says so once; a notice says the rest.
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn claimed(&mut self, address: IpAddr, hardware: Hardware, now: Instant) {
        let own = self.attached.values().any(|one| one.hardware == hardware);
        let friend = self.orders.as_ref().is_some_and(|orders| orders.friends.contains(&hardware));
        let Some(held) = self.held.get_mut(&address).filter(|_| !own) else { return };
        let before = held.here();
        let reported = held.rival(hardware, friend, now);
        self.changed |= held.here() != before;
        if reported {
            // Who listens is behind: the next one says the same.
            let _ = self.says.rivals.try_send(Rival { address, hardware });
        }
    }

    /// Does what is due.
    fn act(&mut self, now: Instant) {
        if self.look <= now
            && let Err(error) = self.look()
        {
            self.look = now + RETRY;
            self.failed("links cannot be looked at", &error, now);
        }
        if self.retry.is_some_and(|retry| retry <= now) {
            self.carry_out(false);
        }
        let due: Vec<(IpAddr, Due)> =
            self.held.iter_mut().filter_map(|(address, held)| Some((*address, held.due(now)?))).collect();
        let gone: BTreeSet<IpAddr> = self.held.iter().filter(|(_, held)| held.is_gone()).map(|(one, _)| *one).collect();
        if !gone.is_empty() {
            self.changed = true;
            self.let_go(|address| gone.contains(address));
        }
        // Who hears of an address finds it.
        if !due.is_empty() {
            self.changed = true;
            self.settle(now);
        }
        due.into_iter().for_each(|(address, due)| self.send(address, due));
    }

    fn send(&self, address: IpAddr, due: Due) {
        let Some(held) = self.held.get(&address) else { return };
        for port in held.ports.iter().filter_map(|index| self.ports.get(index)) {
            let sent = match due {
                Due::Probe => port.probe(address),
                Due::Announce => port.announce(address),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, %address, "a frame is lost");
            }
        }
    }

    fn next(&self, now: Instant) -> Instant {
        let dates = self.held.values().filter_map(Held::next).chain(self.retry).chain([self.look]);
        dates.min().unwrap_or(now + LOOK)
    }

    /// Says how it is with what is held, if that changed.
    fn tell(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let here: BTreeMap<IpAddr, _> = self.held.iter().map(|(address, held)| (*address, held.here())).collect();
        self.says.here.send_if_modified(|said| {
            let changed = *said != here;
            *said = here;
            changed
        });
    }
}
