//! Requests at a time, in the spirit of kube-apiserver's priority and fairness (KEP-1040): a
//! request takes a seat while its answer is made, and waits in its user's queue where none is free.
//! Users take turns, so a user with hundreds of requests delays its own. Requests of
//! `system:masters` and of this process need no seat; watches and streams of Pods last long by
//! nature and have bounds of their own.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairlead_api::Failure;
use fairlead_api::value::json;
use foldhash::fast::RandomState;
use tokio::sync::oneshot;

use crate::auth::{ANONYMOUS, SERVICE_ACCOUNT_PREFIX, User, nodes};

#[cfg(test)]
mod tests;

/// Maximum numbers of requests whose answers are made at a time; 0 means no bound.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Requests that read (`--max-requests-inflight`).
    pub reading: usize,
    /// Requests that write (`--max-mutating-requests-inflight`).
    pub writing: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { reading: 400, writing: 200 }
    }
}

/// Clients that share seats. Each class is sure of its reserve; what is beyond all reserves belongs
/// to the first that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Controllers and other components of the cluster.
    System,
    /// Nodes.
    Nodes,
    /// Everyone else with credentials.
    Users,
    /// Clients without credentials.
    Strangers,
}

/// All classes, in the order in which they get a seat that is free, with their names in metrics and
/// the part of all seats, in percent, that others cannot take.
pub(crate) const CLASSES: [(Class, &str, usize); 4] = [
    (Class::System, "system", 15),
    (Class::Nodes, "nodes", 15),
    (Class::Users, "users", 50),
    (Class::Strangers, "strangers", 5),
];

/// The part of all seats that strangers have at most, in percent.
const STRANGERS_MOST: usize = 10;
/// Maximum number of waiting requests of one user.
const QUEUE: usize = 100;
/// Maximum number of waiting requests of one class.
const CLASS_QUEUE: usize = 1_000;
/// Time that a request waits for a seat, kube-apiserver's default: a quarter of its request
/// timeout.
const PATIENCE: Duration = Duration::from_secs(15);
/// Number of users whose entry is kept though they have no request, so that each request need not
/// make it anew.
const KEPT_FLOWS: usize = 512;

impl Class {
    /// Returns the class of a user; `None` for users who need no seat.
    pub(crate) fn of(user: &User) -> Option<Class> {
        let name = user.name.as_str();
        let account = name.strip_prefix(SERVICE_ACCOUNT_PREFIX);
        if user.is_master() {
            None
        } else if name == ANONYMOUS {
            Some(Class::Strangers)
        } else if nodes::node_of(user).is_some() {
            Some(Class::Nodes)
        } else if name.starts_with("system:kube-") || account.is_some_and(|rest| rest.starts_with("kube-system:")) {
            Some(Class::System)
        } else {
            Some(Class::Users)
        }
    }

    fn index(self) -> usize {
        CLASSES.iter().position(|(class, ..)| *class == self).unwrap_or_default()
    }
}

/// The seats for requests that read and for requests that write.
#[derive(Debug)]
pub(crate) struct Seats {
    reading: Option<Arc<Room>>,
    writing: Option<Arc<Room>>,
    refused: [AtomicU64; CLASSES.len()],
}

/// A number of seats and those who wait for one.
#[derive(Debug)]
struct Room {
    total: usize,
    classes: Mutex<[Queues; CLASSES.len()]>,
}

/// The users of one class.
#[derive(Debug, Default)]
struct Queues {
    seated: usize,
    waiting: usize,
    /// Number of users with a seat or a waiting request.
    active: usize,
    flows: HashMap<Arc<str>, Flow, RandomState>,
    /// Users with waiting requests, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    /// Mean time for which a seat is taken, in microseconds.
    mean: u64,
}

/// The requests of one user.
#[derive(Debug, Default)]
struct Flow {
    seated: usize,
    waiting: VecDeque<oneshot::Sender<Seat>>,
}

/// A seat, free again when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    room: Arc<Room>,
    class: Class,
    flow: Arc<str>,
    since: Instant,
}

/// A request that waits for its turn. Dropping it leaves the queue.
struct Turn<'a> {
    room: &'a Arc<Room>,
    class: Class,
    flow: Arc<str>,
    seat: Option<oneshot::Receiver<Seat>>,
}

impl Seats {
    /// Returns free seats.
    pub(crate) fn new(bounds: Bounds) -> Seats {
        let room = |total: usize| (total > 0).then(|| Arc::new(Room { total, classes: Mutex::default() }));
        Seats { reading: room(bounds.reading), writing: room(bounds.writing), refused: Default::default() }
    }

    /// Takes a seat, or waits for one. `None` if none is needed; 429 if the user's queue is full or
    /// the wait too long.
    pub(crate) async fn take(&self, reads: bool, class: Class, flow: &str) -> Result<Option<Seat>, Failure> {
        let room = if reads { &self.reading } else { &self.writing };
        let Some(room) = room else { return Ok(None) };
        let taken = match room.enter(class, flow) {
            Ok(Entered::Seated(seat)) => return Ok(Some(seat)),
            Ok(Entered::Waits(mut turn)) => match turn.seat.as_mut() {
                Some(seat) => tokio::time::timeout(PATIENCE, seat).await.ok().and_then(Result::ok),
                None => None,
            },
            Err(Full) => None,
        };
        taken.map(Some).ok_or_else(|| {
            self.refused[class.index()].fetch_add(1, Ordering::Relaxed);
            too_many(room.retry_after(class))
        })
    }

    /// Returns the number of refused requests of each class.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        CLASSES.iter().zip(&self.refused).map(|((_, name, _), count)| (*name, count.load(Ordering::Relaxed)))
    }
}

enum Entered<'a> {
    Seated(Seat),
    Waits(Turn<'a>),
}

/// The user's queue, or the class's, is full.
struct Full;

impl Room {
    fn enter<'a>(self: &'a Arc<Room>, class: Class, flow: &str) -> Result<Entered<'a>, Full> {
        let mut classes = self.lock();
        let queues = &mut classes[class.index()];
        if !queues.flows.contains_key(flow) {
            if queues.flows.len() >= KEPT_FLOWS {
                queues.flows.retain(|_, flow| !flow.is_idle());
            }
            queues.flows.insert(flow.into(), Flow::default());
        }
        let (name, entry) = queues.flows.get_key_value(flow).expect("it was inserted above");
        let name = name.clone();
        let newly_active = entry.is_idle();
        let queue = entry.waiting.len();
        queues.active += usize::from(newly_active);
        if queue == 0 && self.has_room(&classes, class, &name) {
            let seat = self.seat(&mut classes[class.index()], class, name);
            return Ok(Entered::Seated(seat));
        }
        let queues = &mut classes[class.index()];
        if queue >= QUEUE || queues.waiting >= CLASS_QUEUE {
            queues.active -= usize::from(newly_active);
            return Err(Full);
        }
        let (sender, receiver) = oneshot::channel();
        if queue == 0 {
            queues.turns.push_back(name.clone());
        }
        queues.waiting += 1;
        if let Some(entry) = queues.flows.get_mut(&name) {
            entry.waiting.push_back(sender);
        }
        Ok(Entered::Waits(Turn { room: self, class, flow: name, seat: Some(receiver) }))
    }

    /// True if a user may have another seat.
    fn has_room(&self, classes: &[Queues; CLASSES.len()], class: Class, flow: &str) -> bool {
        let own = &classes[class.index()];
        let mut spoken_for = 0;
        let mut reserved = 0;
        for (at, queues) in classes.iter().enumerate() {
            if at != class.index() {
                reserved += self.reserve(at);
                spoken_for += queues.seated.max(self.reserve(at));
            }
        }
        let most = match class {
            Class::Strangers => (self.total * STRANGERS_MOST / 100).max(1),
            _ => self.total,
        };
        let capacity = self.total.saturating_sub(reserved).min(most).max(1);
        // A user alone leaves a quarter, so that another one never has to wait for requests that
        // hang.
        let share = match own.active {
            0 | 1 => (capacity * 3).div_ceil(4),
            active => capacity.div_ceil(active.min(4)),
        };
        let seated = own.flows.get(flow).map_or(0, |flow| flow.seated);
        seated < share && own.seated < most && own.seated + spoken_for < self.total
    }

    fn reserve(&self, class: usize) -> usize {
        self.total * CLASSES[class].2 / 100
    }

    fn seat(self: &Arc<Room>, queues: &mut Queues, class: Class, flow: Arc<str>) -> Seat {
        queues.seated += 1;
        if let Some(entry) = queues.flows.get_mut(&flow) {
            entry.seated += 1;
        }
        Seat { room: self.clone(), class, flow, since: Instant::now() }
    }

    /// Takes a seat back and gives free seats to those whose turn it is.
    fn leave(self: &Arc<Room>, class: Class, flow: &str, held: Duration) {
        let mut classes = self.lock();
        let queues = &mut classes[class.index()];
        queues.seated -= 1;
        let micros = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        queues.mean = queues.mean - queues.mean / 16 + micros / 16;
        if let Some(entry) = queues.flows.get_mut(flow) {
            entry.seated -= 1;
            queues.active -= usize::from(entry.is_idle());
        }
        let granted = self.grant(&mut classes);
        drop(classes);
        // A seat whose request has gone meanwhile comes back, and is dropped here.
        granted.into_iter().for_each(|(waiter, seat)| drop(waiter.send(seat)));
    }

    fn grant(self: &Arc<Room>, classes: &mut [Queues; CLASSES.len()]) -> Vec<(oneshot::Sender<Seat>, Seat)> {
        let mut granted = Vec::new();
        for (class, ..) in CLASSES {
            // Every user with a turn is asked once: one at its share lets the next go first.
            let mut asked = 0;
            while asked < classes[class.index()].turns.len() {
                let Some(flow) = classes[class.index()].turns.pop_front() else { break };
                if !self.has_room(classes, class, &flow) {
                    classes[class.index()].turns.push_back(flow);
                    asked += 1;
                    continue;
                }
                let queues = &mut classes[class.index()];
                let waiter = queues.flows.get_mut(&flow).and_then(|entry| entry.waiting.pop_front());
                let more = queues.flows.get(&flow).is_some_and(|entry| !entry.waiting.is_empty());
                if more {
                    queues.turns.push_back(flow.clone());
                }
                if let Some(waiter) = waiter {
                    queues.waiting -= 1;
                    granted.push((waiter, self.seat(queues, class, flow)));
                    asked = 0;
                }
            }
        }
        granted
    }

    /// Removes requests that gave up from a user's queue.
    fn give_up(&self, class: Class, flow: &str) {
        let mut classes = self.lock();
        let queues = &mut classes[class.index()];
        let Some(entry) = queues.flows.get_mut(flow) else { return };
        let before = entry.waiting.len();
        entry.waiting.retain(|waiter| !waiter.is_closed());
        let gone = before - entry.waiting.len();
        queues.waiting -= gone;
        if gone > 0 && entry.waiting.is_empty() {
            queues.active -= usize::from(entry.is_idle());
            queues.turns.retain(|waiting| **waiting != *flow);
        }
    }

    /// Returns the seconds after which the requests that wait now have probably had their turns.
    fn retry_after(&self, class: Class) -> u64 {
        let classes = self.lock();
        let queues = &classes[class.index()];
        let ahead = u64::try_from(queues.waiting + 1).unwrap_or(u64::MAX);
        let seats = u64::try_from(queues.seated.max(1)).unwrap_or(u64::MAX);
        (queues.mean.saturating_mul(ahead) / seats).div_ceil(1_000_000).clamp(1, PATIENCE.as_secs())
    }

    /// Locks even after a panic in another thread: nothing is left half done between two
    /// statements.
    fn lock(&self) -> MutexGuard<'_, [Queues; CLASSES.len()]> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flow {
    fn is_idle(&self) -> bool {
        self.seated == 0 && self.waiting.is_empty()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.leave(self.class, &self.flow, self.since.elapsed());
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A seat that came too late is given back by its own drop.
        drop(self.seat.take());
        self.room.give_up(self.class, &self.flow);
    }
}

/// Returns the 429 of a client that has too many requests, with a time after which it may try
/// again.
pub(crate) fn too_many(seconds: u64) -> Failure {
    let mut failure = Failure::new(429, "TooManyRequests", "Too many requests, please try again later.");
    failure.details = Some(json!({"retryAfterSeconds": seconds}));
    failure
}
