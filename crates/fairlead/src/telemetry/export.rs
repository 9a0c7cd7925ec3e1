//! Sends spans to a collector: OTLP over HTTP, as JSON. A thread of its own, so that nothing waits for a collector; what it cannot
//! send is dropped, and said once a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::endpoint::Endpoint;
use super::span::{Span, request};
use crate::page;

/// So many spans go into a request.
const MOST: usize = 512;
/// So long they are gathered.
const GATHERED: Duration = Duration::from_secs(1);
/// How often it is said that something is lost.
const SAID: Duration = Duration::from_secs(60);

/// Begins to send what comes.
pub(super) fn start(endpoint: Endpoint, spans: Receiver<Span>, dropped: Arc<AtomicU64>) {
    let work = move || {
        // Without a runtime of its own there is nothing to send with.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let mut said: Option<Instant> = None;
        while let Some(batch) = gather(&spans) {
            let body = request(&batch, &endpoint.cluster, &host).to_string();
            let sent = runtime.block_on(page::post(&endpoint.authority, &endpoint.path, body));
            if let Err(error) = &sent {
                dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                tracing::debug!("traces cannot be sent to {endpoint}: {error:#}");
            }
            let lost = dropped.load(Ordering::Relaxed);
            if lost > 0 && said.is_none_or(|said| said.elapsed() > SAID) {
                said = Some(Instant::now());
                let why = sent.err().map(|error| format!(": {error:#}")).unwrap_or_default();
                tracing::warn!("{} spans were not sent to {endpoint}{why}", dropped.swap(0, Ordering::Relaxed));
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("telemetry".to_owned()).spawn(work) {
        tracing::warn!(%error, "no thread to send traces");
    }
}

/// What came in a while; `None`: nothing will come any more.
fn gather(spans: &Receiver<Span>) -> Option<Vec<Span>> {
    let mut batch = vec![spans.recv().ok()?];
    let end = Instant::now() + GATHERED;
    while batch.len() < MOST {
        match spans.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    Some(batch)
}
