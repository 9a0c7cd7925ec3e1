//! The connections of the API's listeners: how many there may be, which of them give way to
//! newcomers, and which are cut.
//!
//! Every accepted connection has a `Link` in one table that all listeners of the process share. A
//! task visits the table several times a minute and cuts connections that do not finish their
//! handshake, have no request for a while, or do not take their answers. A newcomer that finds no
//! room displaces the connection that has been idle longest and on which no request was
//! authenticated.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use fairlead_runtime::{Account, Budget, Exceeded, Permit, Sender, budget};
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::in_flight::Class;
use crate::auth::User;

/// Parts of [`Limits::stall`] in which the age of unsent data is counted.
const STALL_PARTS: u64 = 4;
/// Number of age counters: those of the allowed ages, and as many again for data that is too old.
const AGES: usize = 2 * STALL_PARTS as usize;
/// Bytes of HTTP/2's connection preface and an empty SETTINGS frame (RFC 9113, 3.4 and 6.5).
const PREFACE_BYTES: usize = 24 + 9;
/// Answers under way on one connection, in bytes, that are not charged to the user: most
/// connections never hold more, and so take no lock.
const UNCHARGED_BYTES: u64 = 16 << 10;
/// Step in which answers under way are charged to the user, in bytes.
const CHARGE_STEP: u64 = 256 << 10;
/// Memory of an open HTTP/2 stream besides its answer, in bytes: its state, the task, the head of
/// the request.
const STREAM_BYTES: u64 = 8 << 10;
/// Time between two log lines about connections that were cut for the same reason.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The connections of all listeners of a server. Clones share the same table.
#[derive(Debug, Clone)]
pub struct Connections {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    limits: Limits,
    clock: Clock,
    links: Mutex<HashMap<u64, Arc<Link>>>,
    next_id: AtomicU64,
    /// All connections, those that still shake hands among them.
    places: Budget,
    /// Connections on which no request was authenticated yet.
    strangers: Budget,
    handshakes: Budget,
    /// Open requests on connections of strangers.
    strangers_requests: Budget,
    /// Bytes of answers that wait for their clients. Clients of one kind cannot use up what others
    /// have.
    answers: Budget,
    strangers_answers: Budget,
    system_answers: Budget,
    cuts: CutLog,
    /// Number of listeners that serve; the first one starts the task that visits the table.
    listeners: AtomicUsize,
}

/// Milliseconds since the table was made.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Instant,
    /// Milliseconds of one part of the stall limit.
    part: u64,
}

/// A connection, as the table, its requests and its answers see it.
#[derive(Debug)]
pub(crate) struct Link {
    id: u64,
    /// `None`: a loopback address, which is not bounded by itself.
    source: Option<Sender>,
    table: Weak<Table>,
    clock: Clock,
    began: u64,
    /// Time of the last request, or of the last part of an answer that was sent. Pings do not
    /// count.
    active: AtomicU64,
    /// True once the client has said something in the protocol it agreed on.
    greeted: AtomicBool,
    received: AtomicUsize,
    /// True once a request was authenticated.
    known: AtomicBool,
    user: OnceLock<KnownUser>,
    requests: AtomicU32,
    /// Pieces of answers that were handed to the protocol and are not sent, by age.
    queued: [AtomicU32; AGES],
    unsent: AtomicU64,
    permits: Mutex<LinkPermits>,
    /// Asks the connection to end in good order (GOAWAY), as one that is idle.
    leave: CancellationToken,
    cut: CancellationToken,
}

/// The user whose request was the first that was authenticated on a connection.
#[derive(Debug)]
struct KnownUser {
    sender: Sender,
    /// True for administrators, Nodes and components of the cluster.
    system: bool,
}

/// Amounts that a connection holds.
#[derive(Debug, Default)]
struct LinkPermits {
    _place: Option<Permit>,
    stranger: Option<Permit>,
    handshake: Option<Permit>,
    /// Open requests of a stranger.
    requests: Option<Permit>,
    answers: Option<Permit>,
}

/// An open request: from its head until the last byte of its answer is sent or dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    link: Arc<Link>,
    charged: AtomicU64,
    /// True if it was a stranger's when it began.
    counted: bool,
}

/// A piece of an answer between the server and the socket.
#[derive(Debug)]
pub(crate) struct QueuedPiece {
    request: Arc<OpenRequest>,
    age: usize,
}

/// Reason for which a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Handshake,
    Idle,
    Stalled,
    Displaced,
}

const CUTS: [(Cut, &str); 4] = [
    (Cut::Handshake, "did not finish the handshake in time"),
    (Cut::Idle, "had no request for too long"),
    (Cut::Stalled, "did not take their answers"),
    (Cut::Displaced, "gave way to newcomers"),
];

#[derive(Debug, Default)]
struct CutLog {
    counts: [AtomicU64; CUTS.len()],
    logged: Mutex<[Option<(Instant, u64)>; CUTS.len()]>,
}

impl Connections {
    /// Returns a table whose bounds are budgets of an account.
    pub fn new(limits: Limits, account: &Account) -> Connections {
        let total = count(limits.connections);
        let strangers = total.saturating_sub(count(limits.reserved)).max(1);
        let places = budget::Limits { total, per_sender: count(limits.per_address) };
        let shaking =
            budget::Limits { total: count(limits.handshakes), per_sender: (count(limits.handshakes) / 8).max(1) };
        let asking = budget::Limits {
            total: count(limits.strangers_requests),
            per_sender: (count(limits.strangers_requests) / 8).max(1),
        };
        let answers = budget::Limits { total: limits.answers, per_sender: limits.answers_per_user };
        let strangers_answers = budget::Limits { total: limits.answers / 4, per_sender: limits.answers_per_user / 4 };
        let part = u64::try_from(limits.stall.as_millis()).unwrap_or(u64::MAX) / STALL_PARTS;
        let table = Table {
            clock: Clock { start: Instant::now(), part: part.max(1) },
            links: Mutex::default(),
            next_id: AtomicU64::new(0),
            places: account.budget("api connections", places),
            strangers: account.budget("api connections without credentials", budget::Limits::total(strangers)),
            handshakes: account.budget("api handshakes", shaking),
            strangers_requests: account.budget("api requests without credentials", asking),
            answers: account.budget("api answers", answers),
            strangers_answers: account.budget("api answers without credentials", strangers_answers),
            system_answers: account.budget("api answers of the system", budget::Limits::total(limits.answers)),
            cuts: CutLog::default(),
            listeners: AtomicUsize::new(0),
            limits,
        };
        Connections { table: Arc::new(table) }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.table.limits
    }

    /// Returns the number of connections.
    pub fn count(&self) -> usize {
        lock(&self.table.links).len()
    }

    /// Enters an accepted connection. Others give way to it where a limit is reached; `None` if
    /// none can.
    pub(crate) fn admit(&self, peer: SocketAddr) -> Option<Arc<Link>> {
        let table = &self.table;
        let source = (!peer.ip().to_canonical().is_loopback()).then(|| Sender::from_address(peer.ip()));
        let any = |_: &Link| true;
        let permits = LinkPermits {
            handshake: Some(table.acquire(&table.handshakes, source.as_ref(), |link| !link.has_greeted())?),
            stranger: Some(table.acquire(&table.strangers, None, any)?),
            _place: Some(table.acquire(&table.places, source.as_ref(), any)?),
            requests: None,
            answers: None,
        };
        let now = table.clock.now();
        let link = Arc::new(Link {
            id: table.next_id.fetch_add(1, Ordering::Relaxed),
            source,
            table: Arc::downgrade(table),
            clock: table.clock,
            began: now,
            active: AtomicU64::new(now),
            greeted: AtomicBool::new(false),
            received: AtomicUsize::new(0),
            known: AtomicBool::new(false),
            user: OnceLock::new(),
            requests: AtomicU32::new(0),
            queued: Default::default(),
            unsent: AtomicU64::new(0),
            permits: Mutex::new(permits),
            leave: CancellationToken::new(),
            cut: CancellationToken::new(),
        });
        lock(&table.links).insert(link.id, link.clone());
        Some(link)
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, link: &Link) {
        lock(&self.table.links).remove(&link.id);
        link.give_up();
    }

    /// Makes room when the system has no descriptors left: cuts the idlest connections without
    /// credentials.
    pub(crate) fn make_room(&self) {
        self.table.displace(&|_: &Link| true);
    }

    /// Cuts connections that are past their time, for as long as it is polled. Only the first call
    /// does so, and the others return.
    pub(crate) async fn watch(&self) {
        if self.table.listeners.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let limits = &self.table.limits;
        let shortest = limits.handshake.min(limits.idle).min(limits.stall) / 8;
        let mut ticks = tokio::time::interval(shortest.clamp(Duration::from_millis(5), Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.table.sweep();
        }
    }
}

impl Default for Connections {
    fn default() -> Connections {
        Limits::default().into()
    }
}

/// Connections with budgets of their own, as tests use them.
impl From<Limits> for Connections {
    fn from(limits: Limits) -> Connections {
        Connections::new(limits, &Account::default())
    }
}

impl Table {
    /// Acquires one unit for a newcomer. At a limit, a stranger's connection gives way: of those
    /// that `may_go`, the one without activity for longest, from the same address if the limit of
    /// the address is reached.
    fn acquire(&self, of: &Budget, source: Option<&Sender>, may_go: impl Fn(&Link) -> bool) -> Option<Permit> {
        let attempt = || match source {
            Some(source) => of.acquire(source, 1),
            None => of.acquire_unattributed(1),
        };
        let exceeded = match attempt() {
            Ok(permit) => return Some(permit),
            Err(exceeded) => exceeded,
        };
        match exceeded {
            Exceeded::Sender => self.displace(&|link| may_go(link) && link.source.as_ref() == source),
            Exceeded::Total => self.displace(&may_go),
        }
        attempt().ok()
    }

    /// Cuts the connections that were idle for longest: of those without credentials, or of those
    /// without an open request if there are no others. A hundredth at once, so that a full table is
    /// not searched for every newcomer.
    fn displace(&self, may_go: &dyn Fn(&Link) -> bool) {
        let links = lock(&self.links);
        let candidates = |known: bool| {
            let of_kind = move |link: &&Arc<Link>| link.is_known() == known && (!known || !link.is_busy());
            let idle_since = |link: &Arc<Link>| (link.active.load(Ordering::Relaxed), link.clone());
            links.values().filter(of_kind).filter(|link| may_go(link)).map(idle_since).collect::<Vec<_>>()
        };
        let mut chosen = candidates(false);
        if chosen.is_empty() {
            chosen = candidates(true);
        }
        drop(links);
        let number = (chosen.len() / 100).max(1);
        if chosen.len() > number {
            chosen.select_nth_unstable_by_key(number - 1, |(active, _)| *active);
        }
        for (_, link) in chosen.into_iter().take(number) {
            self.cut(&link, Cut::Displaced);
        }
    }

    /// Ends a connection. What it holds is free at once, its socket as soon as its task runs.
    fn cut(&self, link: &Link, why: Cut) {
        lock(&self.links).remove(&link.id);
        link.give_up();
        link.cut.cancel();
        if let Some(at) = CUTS.iter().position(|(cut, _)| *cut == why) {
            self.cuts.counts[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sweep(&self) {
        let now = self.clock.now();
        let limits = &self.limits;
        let late = |link: &Arc<Link>| -> Option<(Arc<Link>, Cut)> {
            let why = if !link.has_greeted() && now.saturating_sub(link.began) > milliseconds(limits.handshake) {
                Cut::Handshake
            } else if link.is_stalled(now) {
                Cut::Stalled
            } else {
                let idle = now.saturating_sub(link.active.load(Ordering::Relaxed));
                if !link.has_greeted() || link.is_busy() || idle <= milliseconds(limits.idle) {
                    return None;
                }
                // A client may be about to send a request: GOAWAY tells it that a new connection is
                // needed (RFC 9113, 6.8).
                link.leave.cancel();
                if idle <= milliseconds(limits.idle + limits.handshake) {
                    return None;
                }
                Cut::Idle
            };
            Some((link.clone(), why))
        };
        let due: Vec<_> = lock(&self.links).values().filter_map(late).collect();
        for (link, why) in due {
            self.cut(&link, why);
        }
        self.cuts.log();
    }
}

impl CutLog {
    /// Logs connections that were cut, once a minute and reason. Idle ones are usual and not worth
    /// a line.
    fn log(&self) {
        let mut logged = lock(&self.logged);
        for (at, (why, words)) in CUTS.iter().enumerate() {
            let count = self.counts[at].load(Ordering::Relaxed);
            let before = logged[at].map_or(0, |(_, count)| count);
            let due = logged[at].is_none_or(|(when, _)| when.elapsed() >= LOG_INTERVAL);
            if *why == Cut::Idle || count == before || !due {
                continue;
            }
            logged[at] = Some((Instant::now(), count));
            tracing::warn!("api: closed {} connections that {words}", count - before);
        }
    }
}

impl Clock {
    fn now(&self) -> u64 {
        milliseconds(self.start.elapsed())
    }

    /// Returns the counter for data that is queued at a time.
    fn age_counter(&self, now: u64) -> usize {
        (now / self.part) as usize % AGES
    }
}

impl Link {
    /// Returns a link outside of any table, as tests use it.
    pub(crate) fn detached(peer: SocketAddr) -> Arc<Link> {
        Connections::default().admit(peer).expect("an empty table has room")
    }

    /// Waits until the connection has to end.
    pub(crate) async fn cut(&self) {
        self.cut.cancelled().await;
    }

    /// Waits until the connection is asked to end in good order.
    pub(crate) async fn leave(&self) {
        self.leave.cancelled().await;
    }

    /// Counts bytes that came in through TLS, until the client has greeted.
    pub(crate) fn received(&self, bytes: usize) {
        if bytes > 0
            && !self.has_greeted()
            && self.received.fetch_add(bytes, Ordering::Relaxed) + bytes >= PREFACE_BYTES
        {
            self.greet();
        }
    }

    /// Records that the client speaks the protocol it agreed on.
    pub(crate) fn greet(&self) {
        self.greeted.store(true, Ordering::Relaxed);
        drop(lock(&self.permits).handshake.take());
    }

    pub(crate) fn has_greeted(&self) -> bool {
        self.greeted.load(Ordering::Relaxed)
    }

    /// Records that a request of this user was authenticated: the connection is no stranger's any
    /// more.
    pub(crate) fn vouch(&self, user: &User) {
        if self.is_known() {
            return;
        }
        let system = !matches!(Class::of(user), Some(Class::Users | Class::Strangers));
        let _ = self.user.set(KnownUser { sender: Sender::User(user.name.as_str().into()), system });
        self.known.store(true, Ordering::Release);
        let mut permits = lock(&self.permits);
        permits.stranger = None;
        permits.requests = None;
        // From now on the user's.
        permits.answers = None;
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// Begins a request. `None` if strangers have too many open requests and none of them can give
    /// way.
    pub(crate) fn open(self: &Arc<Link>) -> Option<Arc<OpenRequest>> {
        self.touch();
        let counted = !self.is_known();
        if counted && let Some(table) = self.table.upgrade() {
            let other = |link: &Link| link.id != self.id && link.is_busy();
            // Not while its own permits are locked: two connections may displace each other.
            if let Err(exceeded) = self.count_request(&table) {
                match exceeded {
                    Exceeded::Sender => table.displace(&|link| other(link) && link.source == self.source),
                    Exceeded::Total => table.displace(&other),
                }
                self.count_request(&table).ok()?;
            }
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        Some(Arc::new(OpenRequest { link: self.clone(), charged: AtomicU64::new(0), counted }))
    }

    /// Counts an open request of a stranger.
    fn count_request(&self, table: &Table) -> Result<(), Exceeded> {
        let mut permits = lock(&self.permits);
        match &mut permits.requests {
            Some(permit) => permit.resize(permit.amount() + 1),
            None => {
                let budget = &table.strangers_requests;
                permits.requests = Some(match &self.source {
                    Some(source) => budget.acquire(source, 1)?,
                    None => budget.acquire_unattributed(1)?,
                });
                Ok(())
            }
        }
    }

    /// True if a request is open or an answer is not sent.
    fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// True if a piece of an answer waits longer than [`Limits::stall`].
    fn is_stalled(&self, now: u64) -> bool {
        let current = now / self.clock.part;
        let too_old = STALL_PARTS + 1..AGES as u64;
        too_old
            .filter(|age| *age <= current)
            .any(|age| self.queued[((current - age) as usize) % AGES].load(Ordering::Relaxed) > 0)
    }

    fn touch(&self) {
        self.active.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Charges bytes of an answer. Beyond a small allowance they are charged to the user, or to the
    /// source of a stranger.
    fn charge(&self, bytes: u64) -> Result<(), Exceeded> {
        let unsent = self.unsent.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unsent <= UNCHARGED_BYTES {
            return Ok(());
        }
        let charged = self.settle();
        if charged.is_err() {
            self.unsent.fetch_sub(bytes, Ordering::Relaxed);
        }
        charged
    }

    fn discharge(&self, bytes: u64) {
        let before = self.unsent.fetch_sub(bytes, Ordering::Relaxed);
        if before > UNCHARGED_BYTES {
            // Less than before never exceeds a limit.
            let _ = self.settle();
        }
    }

    /// Makes the amount charged to the user fit the bytes that are not sent, in steps.
    fn settle(&self) -> Result<(), Exceeded> {
        let mut permits = lock(&self.permits);
        let unsent = self.unsent.load(Ordering::Relaxed);
        let wanted = if unsent <= UNCHARGED_BYTES { 0 } else { unsent.div_ceil(CHARGE_STEP) * CHARGE_STEP };
        // A connection that was cut holds nothing any more.
        if self.cut.is_cancelled() {
            return Ok(());
        }
        match &mut permits.answers {
            Some(permit) => permit.resize(wanted),
            None if wanted == 0 => Ok(()),
            None => {
                let Some(table) = self.table.upgrade() else { return Ok(()) };
                let permit = match (self.user.get(), &self.source) {
                    (Some(user), _) if user.system => table.system_answers.acquire(&user.sender, wanted)?,
                    (Some(user), _) => table.answers.acquire(&user.sender, wanted)?,
                    (None, Some(source)) => table.strangers_answers.acquire(source, wanted)?,
                    (None, None) => table.strangers_answers.acquire_unattributed(wanted)?,
                };
                permits.answers = Some(permit);
                Ok(())
            }
        }
    }

    /// Returns everything that the connection holds.
    fn give_up(&self) {
        let permits = std::mem::take(&mut *lock(&self.permits));
        drop(permits);
    }
}

impl OpenRequest {
    /// Charges an answer, its stream included.
    pub(crate) fn charge(&self, bytes: u64) -> Result<(), Exceeded> {
        let bytes = bytes.saturating_add(STREAM_BYTES);
        self.link.charge(bytes)?;
        self.charged.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Registers a piece of the answer that is handed to the protocol.
    pub(crate) fn queue(self: &Arc<OpenRequest>) -> QueuedPiece {
        let age = self.link.clock.age_counter(self.link.clock.now());
        self.link.queued[age].fetch_add(1, Ordering::Relaxed);
        QueuedPiece { request: self.clone(), age }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let charged = *self.charged.get_mut();
        if charged > 0 {
            self.link.discharge(charged);
        }
        if self.counted && !self.link.is_known() {
            let mut permits = lock(&self.link.permits);
            if let Some(permit) = &mut permits.requests {
                // Less than before never exceeds a limit.
                let _ = permit.resize(permit.amount().saturating_sub(1));
            }
        }
        self.link.touch();
        self.link.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for QueuedPiece {
    fn drop(&mut self) {
        self.request.link.queued[self.age].fetch_sub(1, Ordering::Relaxed);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a number of connections as a budget counts them.
fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Locks even after a panic in another thread: nothing is left half done between two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
