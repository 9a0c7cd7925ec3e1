//! How long is a change on its way, and where? Follows writes of Services and their endpoints from the request until each Node's
//! kernel has them, and sends what it saw as traces to a collector of OpenTelemetry.
//!
//! Parts tell of a change by events of `tracing` with one target. A revision says which change is meant, in every process of a
//! cluster, so nothing has to be handed on: the trace's identity is made from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

pub(crate) use endpoint::Endpoint;
use passage::{Passages, Seen, Stage};
use span::Span;

mod endpoint;
mod export;
mod passage;
mod span;

/// The target of events about changes on their way.
pub(crate) const TARGET: &str = "fairlead_path";
/// Spans that wait to be sent; beyond that they are dropped, and counted.
const WAITING: usize = 8192;

/// Turns events into spans and hands them to the sender.
pub(crate) struct Follower {
    passages: Passages,
    spans: SyncSender<Span>,
    dropped: Arc<AtomicU64>,
}

/// Begins to follow changes; what is seen goes to the collector.
pub(crate) fn follow(endpoint: Endpoint) -> Follower {
    let (spans, waiting) = sync_channel(WAITING);
    let dropped = Arc::new(AtomicU64::new(0));
    let passages = Passages::new(&endpoint.cluster, fastrand::u64(..));
    export::start(endpoint, waiting, dropped.clone());
    Follower { passages, spans, dropped }
}

impl<S: Subscriber> Layer<S> for Follower {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(seen) = fields.seen(now()) else { return };
        for span in self.passages.take(&seen) {
            if self.spans.try_send(span).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Nanoseconds of the epoch.
fn now() -> u64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

/// What an event says.
#[derive(Debug, Default)]
struct Fields {
    stage: String,
    key: String,
    revision: u64,
    request: u64,
    took: u64,
}

impl Fields {
    fn seen(self, at: u64) -> Option<Seen> {
        let stage = match self.stage.as_str() {
            "committed" => Stage::Committed { key: self.key },
            "programmed" => Stage::Programmed,
            _ => return None,
        };
        Some(Seen { stage, revision: self.revision, at, since_us: self.request, took_us: self.took })
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "revision" => self.revision = value,
            "request_us" => self.request = value,
            "took_us" => self.took = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "stage" => value.clone_into(&mut self.stage),
            "key" => value.clone_into(&mut self.key),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
