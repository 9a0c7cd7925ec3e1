//! Which server block is asked, and what is told about the answer. One router serves one address.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_zone::Name;
use fairlead_zone::message::{Query, Rcode, Reading, read};
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::ask::{Ask, Reply, Transport};
use crate::chain::{Chain, Quick};
use crate::log::{Logger, Told};
use crate::metrics::{Counts, Metrics, Seen};
use crate::names::Held;

/// Maximum time that a question waits for others. Search paths and aliases ask several times for
/// one question, and resolvers do not wait longer (resolv.conf(5): `timeout` 5 s, `attempts` 2).
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The server blocks of an address.
#[derive(Debug)]
pub(crate) struct Router {
    /// Zones, the longest first.
    served: Vec<Served>,
    /// Questions of nobody.
    dropped: Arc<Counts>,
    metrics: Metrics,
    logger: Logger,
}

/// A zone of a server block.
#[derive(Debug)]
struct Served {
    zone: Name,
    chain: Arc<Chain>,
    /// Where questions are counted, if they are.
    counts: Option<Arc<Counts>>,
}

/// A message that came, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) from: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) at: Instant,
}

/// What is done with a message at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// The reply is written.
    Answered,
    /// Others must be asked first.
    Later,
    /// It is no question, or none that gets an answer.
    Ignored,
}

impl Router {
    /// A router of zones and their blocks.
    pub(crate) fn new(
        server: &str,
        blocks: impl IntoIterator<Item = (Name, Arc<Chain>)>,
        metrics: &Metrics,
        logger: &Logger,
    ) -> Router {
        let mut served: Vec<Served> = blocks
            .into_iter()
            .map(|(zone, chain)| {
                let counts = chain.is_counted().then(|| metrics.counts(server, &zone.to_string()));
                Served { zone: zone.to_lower(), chain, counts }
            })
            .collect();
        served.sort_by_key(|served| std::cmp::Reverse(served.zone.label_count()));
        let dropped = metrics.counts(server, "dropped");
        Router { served, dropped, metrics: metrics.clone(), logger: logger.clone() }
    }

    /// Answers what can be answered without asking anybody.
    pub(crate) fn now<'a>(&'a self, came: &Came<'_>, turn: u32, held: &mut Held<'a>, out: &mut Vec<u8>) -> Now {
        out.clear();
        let query = match read(came.bytes) {
            Reading::Query(query) => query,
            Reading::Rejected(rejection) => {
                rejection.write(out);
                return Now::Answered;
            }
            Reading::Ignored => return Now::Ignored,
        };
        let Some(served) = self.served(query.question.lower()) else {
            Reply::failed(Rcode::REFUSED).write(&query, came.transport.limit(&query), out);
            self.dropped.seen(&seen(came, &query, "", out));
            return Now::Answered;
        };
        match served.chain.quick(&query, came, turn, held, out) {
            Quick::Answered(plugin) => {
                if let Some(counts) = &served.counts {
                    counts.seen(&seen(came, &query, plugin, out));
                }
                Now::Answered
            }
            Quick::Later => Now::Later,
        }
    }

    /// Answers a query, whoever must be asked. After [`LONGEST_WAIT`], or once `evicted` is
    /// cancelled, with SERVFAIL.
    pub(crate) async fn later(&self, came: &Came<'_>, turn: u32, evicted: &CancellationToken, out: &mut Vec<u8>) {
        // A defect answers one question wrong, and is counted.
        let answered = AssertUnwindSafe(self.asked(came, turn, out)).catch_unwind();
        match tokio::time::timeout(LONGEST_WAIT, evicted.run_until_cancelled(answered)).await {
            Ok(Some(Ok(()))) => {}
            Ok(Some(Err(_))) => {
                self.metrics.panicked();
                self.refuse(came, out);
            }
            Ok(None) => {
                self.metrics.full();
                self.refuse(came, out);
            }
            Err(_) => self.refuse(came, out),
        }
    }

    async fn asked(&self, came: &Came<'_>, turn: u32, out: &mut Vec<u8>) {
        let Reading::Query(query) = read(came.bytes) else { return };
        let Some(served) = self.served(query.question.lower()) else { return };
        let ask = Ask::of(&query, came.from.ip(), came.transport);
        let mut reply = served.chain.answer(self, &ask).await;
        if served.chain.is_balanced() {
            reply.rotate(turn);
        }
        reply.write(&query, came.transport.limit(&query), out);
        let seen = seen(came, &query, reply.plugin, out);
        if let Some(counts) = &served.counts {
            counts.seen(&seen);
        }
        served.chain.tell(&self.logger, &Told { came, query: &query, reply: &reply, bytes: out, took: seen.took });
    }

    /// Says that something went wrong here.
    pub(crate) fn refuse(&self, came: &Came<'_>, out: &mut Vec<u8>) {
        out.clear();
        let Reading::Query(query) = read(came.bytes) else { return };
        Reply::failed(Rcode::SERV_FAIL).write(&query, came.transport.limit(&query), out);
        let counts = self.served(query.question.lower()).and_then(|served| served.counts.as_ref());
        counts.unwrap_or(&self.dropped).seen(&seen(came, &query, "", out));
    }

    /// Asks the block a name belongs to, as an alias of another block may need.
    pub(crate) async fn resolve(&self, ask: &Ask) -> Reply {
        match self.served(ask.name.to_lower().wire()) {
            Some(served) => Box::pin(served.chain.answer(self, ask)).await,
            None => Reply::failed(Rcode::REFUSED),
        }
    }

    /// Asks the block a name belongs to, or the one that asks if it is its own.
    pub(crate) async fn find_through(&self, chain: &Arc<Chain>, ask: &Ask) -> Reply {
        match self.served(ask.name.to_lower().wire()) {
            Some(served) if Arc::ptr_eq(&served.chain, chain) => chain.find(self, ask).await,
            Some(served) => Box::pin(served.chain.answer(self, ask)).await,
            None => Reply::failed(Rcode::REFUSED),
        }
    }

    /// Tells an error of a question.
    pub(crate) fn error(&self, chain: &Chain, ask: &Ask, rcode: Rcode, why: &str) {
        if let Some(errors) = chain.errors() {
            self.logger.error(errors, ask, rcode, why);
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The block with the longest zone a name, in wire form and lower case, is in.
    fn served(&self, lower: &[u8]) -> Option<&Served> {
        self.served.iter().find(|served| is_under(lower, served.zone.wire()))
    }
}

fn seen(came: &Came<'_>, query: &Query<'_>, plugin: &'static str, out: &[u8]) -> Seen {
    Seen {
        transport: came.transport,
        ipv6: came.from.is_ipv6(),
        rtype: query.question.rtype,
        dnssec_ok: query.edns.is_some_and(|edns| edns.dnssec_ok),
        rcode: Rcode(out.get(3).map_or(0, |flags| u16::from(flags & 15))),
        plugin,
        request: came.bytes.len(),
        response: out.len(),
        took: came.at.elapsed(),
    }
}

/// Whether a name is a zone or below it, both in wire form and lower case.
fn is_under(name: &[u8], zone: &[u8]) -> bool {
    let mut rest = name;
    while rest.len() > zone.len() {
        let Some(after) = rest.first().and_then(|length| rest.get(1 + usize::from(*length)..)) else { return false };
        rest = after;
    }
    rest == zone
}
