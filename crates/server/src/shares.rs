//! The shares of users in what the server has: seats for requests, watches, streams of Pods, bodies
//! under way.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fairlead_api::Failure;
use fairlead_runtime::{Account, Budget, BudgetMetrics, Limits, Permit, Sender};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::auth::User;
use crate::serve::in_flight::{self, Bounds, Class, Seat, Seats};

/// Maximum number of logs, commands, port-forwards and proxied requests, and the part of them that
/// one user may have.
const STREAMS: Limits = Limits { total: 1_000, per_sender: 250 };
/// Maximum number of watches of users, and of one user.
const WATCHES: Limits = Limits { total: 5_000, per_sender: 1_000 };
/// Maximum number of watches of administrators, Nodes and components of the cluster, and of one of
/// them.
const SYSTEM_WATCHES: Limits = Limits { total: 20_000, per_sender: 5_000 };
/// Bytes of request bodies under way, until their requests are answered, and the part of them that
/// one user may have: five bodies of the largest size.
const BODIES: Limits = Limits { total: 64 << 20, per_sender: 16 << 20 };
/// Bytes of a body that are not charged: most bodies are smaller, and so take no lock.
const UNCHARGED_BYTES: usize = 16 << 10;
/// Step in which bytes of a body are charged.
const CHARGE_STEP: u64 = 64 << 10;
/// Least progress of a body: so many bytes in [`SLOW_TIME`], about 1 KB/s.
const SLOW_BYTES: usize = 30 << 10;
/// Time in which [`SLOW_BYTES`] of a body must arrive, or its end.
const SLOW_TIME: Duration = Duration::from_secs(30);

/// Maximum numbers of watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchBounds {
    /// Watches of all users (`--max-watches`). Administrators, Nodes and components of the cluster
    /// have others.
    pub total: u64,
    /// Watches of one user (`--max-watches-per-user`).
    pub per_user: u64,
}

impl Default for WatchBounds {
    fn default() -> WatchBounds {
        WatchBounds { total: WATCHES.total, per_user: WATCHES.per_sender }
    }
}

/// The body of a request, with the permit for its bytes if it has more than [`UNCHARGED_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct CountedBody {
    pub(crate) bytes: Bytes,
    _permit: Option<Permit>,
}

/// Bounds that all requests of a server share.
#[derive(Debug)]
pub(crate) struct Shares {
    seats: Seats,
    watches: Budget,
    system_watches: Budget,
    streams: Budget,
    bodies: Budget,
    metrics: Registry,
}

impl Shares {
    pub(crate) fn new(bounds: Bounds, watches: WatchBounds, account: &Account) -> Shares {
        let mut metrics = Registry::default();
        metrics.register_collector(Box::new(BudgetMetrics::new(account.clone())));
        let watches = Limits { total: watches.total, per_sender: watches.per_user };
        Shares {
            seats: Seats::new(bounds),
            watches: account.budget("api watches", watches),
            system_watches: account.budget("api watches of the system", SYSTEM_WATCHES),
            streams: account.budget("api streams", STREAMS),
            bodies: account.budget("api request bodies", BODIES),
            metrics,
        }
    }

    /// Takes a seat for a request of a user. The user is the one whose credentials came with the
    /// request: acting as others gives nobody more seats.
    pub(crate) async fn seat(
        &self,
        user: &User,
        source: Option<&Sender>,
        reads: bool,
    ) -> Result<Option<Seat>, Failure> {
        match Class::of(user) {
            None => Ok(None),
            Some(Class::Strangers) => {
                let source = source.map(Sender::to_string).unwrap_or_default();
                self.seats.take(reads, Class::Strangers, &source).await
            }
            Some(class) => self.seats.take(reads, class, &user.name).await,
        }
    }

    /// Acquires a watch, or refuses it with 429.
    pub(crate) fn watch(&self, user: &User) -> Result<Permit, Failure> {
        let budget = match Class::of(user) {
            Some(Class::Users | Class::Strangers) => &self.watches,
            Some(Class::System | Class::Nodes) | None => &self.system_watches,
        };
        acquire(budget, user, "watches")
    }

    /// Acquires a log, a command, a port-forward or a proxied request, or refuses it with 429.
    pub(crate) fn stream(&self, user: &User) -> Result<Permit, Failure> {
        acquire(&self.streams, user, "logs, commands, port-forwards and proxied requests")
    }

    /// Reads a body whole, up to a limit. A body that comes too slowly is given up. Without a user
    /// its bytes are not charged.
    pub(crate) async fn body<B>(&self, body: B, most: usize, user: Option<&User>) -> Result<CountedBody, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut body = std::pin::pin!(body);
        if body.size_hint().lower() > most as u64 {
            return Err(too_large(most));
        }
        let mut permit: Option<Permit> = None;
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        let mut due = Instant::now() + SLOW_TIME;
        let mut since_due = 0;
        while !body.is_end_stream() {
            let frame = tokio::time::timeout_at(due, body.frame()).await.map_err(|_| too_slow())?;
            let Some(frame) = frame else { break };
            let unreadable = |error: B::Error| {
                let error: Box<dyn std::error::Error + Send + Sync> = error.into();
                Failure::bad_request(format!("the body could not be read: {error}"))
            };
            let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
            let length = first.len() + rest.len() + data.len();
            if length > most {
                return Err(too_large(most));
            }
            since_due += data.len();
            if since_due >= SLOW_BYTES {
                since_due = 0;
                due = Instant::now() + SLOW_TIME;
            }
            if length > UNCHARGED_BYTES {
                self.charge(&mut permit, user, length)?;
            }
            if first.is_empty() {
                first = data;
            } else {
                rest.extend_from_slice(&data);
            }
        }
        if rest.is_empty() {
            return Ok(CountedBody { bytes: first, _permit: permit });
        }
        let mut whole = BytesMut::with_capacity(first.len() + rest.len());
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&rest);
        Ok(CountedBody { bytes: whole.freeze(), _permit: permit })
    }

    fn charge(&self, permit: &mut Option<Permit>, user: Option<&User>, length: usize) -> Result<(), Failure> {
        let Some(user) = user else { return Ok(()) };
        let wanted = (length as u64).next_multiple_of(CHARGE_STEP);
        let charged = match permit {
            Some(permit) if permit.amount() >= wanted => Ok(()),
            Some(permit) => permit.resize(wanted),
            None => {
                let sender = Sender::User(user.name.as_str().into());
                self.bodies.acquire(&sender, wanted).map(|acquired| *permit = Some(acquired))
            }
        };
        charged.map_err(|_| in_flight::too_many(1))
    }

    /// Returns metrics of budgets and seats as text for Prometheus.
    pub(crate) fn measured(&self) -> String {
        let mut text = fairlead_monitor::write(&self.metrics, fairlead_monitor::Format::Prometheus);
        let name = "apiserver_flowcontrol_rejected_requests_total";
        text.push_str(&format!(
            "# HELP {name} Requests refused with 429, by class of their clients.\n# TYPE {name} counter\n"
        ));
        for (class, count) in self.seats.refused() {
            text.push_str(&format!("{name}{{priority_level=\"{class}\"}} {count}\n"));
        }
        text
    }
}

fn acquire(budget: &Budget, user: &User, things: &str) -> Result<Permit, Failure> {
    budget.acquire(&Sender::User(user.name.as_str().into()), 1).map_err(|exceeded| {
        let mut failure = in_flight::too_many(RETRY_SECONDS);
        failure.message = format!("too many {things} at a time ({exceeded}), please try again later");
        failure
    })
}

/// Seconds after which a client may try again for something that others keep for long.
const RETRY_SECONDS: u64 = 10;

fn too_large(most: usize) -> Failure {
    Failure::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {most}"))
}

fn too_slow() -> Failure {
    let seconds = SLOW_TIME.as_secs();
    Failure::new(408, "Timeout", format!("the body came too slowly: less than {SLOW_BYTES} bytes in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;
    use crate::body::MAX_BODY;

    fn user(name: &str) -> User {
        User { name: name.to_owned(), ..User::default() }
    }

    fn body(size: usize) -> Full<Bytes> {
        Full::new(vec![b' '; size].into())
    }

    #[tokio::test]
    async fn bodies_are_charged_to_their_user_until_they_are_dropped() {
        let shares = Shares::new(Bounds::default(), WatchBounds::default(), &Account::default());
        let (ann, bob) = (user("ann"), user("bob"));
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(shares.body(body(MAX_BODY), MAX_BODY, Some(&ann)).await.expect("there is room"));
        }
        assert_eq!(shares.body(body(MAX_BODY), MAX_BODY, Some(&ann)).await.unwrap_err().code, 429);
        let small = shares.body(body(UNCHARGED_BYTES), MAX_BODY, Some(&ann)).await.expect("a small one");
        assert_eq!(small.bytes.len(), UNCHARGED_BYTES);
        held.push(shares.body(body(MAX_BODY), MAX_BODY, Some(&bob)).await.expect("another user"));
        held.push(shares.body(body(MAX_BODY), MAX_BODY, None).await.expect("a component of this process"));
        held.clear();
        assert_eq!(shares.bodies.in_use(), 0);
        assert!(shares.body(body(MAX_BODY), MAX_BODY, Some(&ann)).await.is_ok());
        assert_eq!(shares.body(body(MAX_BODY + 1), MAX_BODY, Some(&ann)).await.unwrap_err().code, 413);
    }
}
