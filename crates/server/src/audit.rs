//! The audit log: one line of JSON for each request, `audit.k8s.io/v1` Events of level Metadata.
//!
//! Requests never wait for the disk: events go through a bounded queue to a thread that writes, and are counted when
//! there is no room.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fairlead_api::golang;
use fairlead_api::value::{Map, Value, json};
use jiff::Timestamp;

use crate::auth::User;
use file::Log;

mod file;
#[cfg(test)]
mod tests;

/// Events that may wait to be written: a second or so of a busy server.
const QUEUE: usize = 10_000;

/// Maximum length in bytes of the URI in an event. With the bounds below an event has about 10 KiB,
/// and the queue 100 MiB when the disk does not keep up.
const MAX_URI: usize = 4 << 10;
/// Maximum length in bytes of the message of a failure in an event.
const MAX_MESSAGE: usize = 2 << 10;
/// Maximum length in bytes of the user agent and of each name in an event.
const MAX_TEXT: usize = 512;

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `--audit-log-path`; `-` is standard output.
    pub path: PathBuf,
    /// `--audit-log-maxsize` in bytes; 0 means that files are never changed.
    pub max_size: u64,
    /// `--audit-log-maxbackup`: how many old files to keep; 0 means all.
    pub max_backup: usize,
}

/// Writes the audit log. Cheap to clone; the last one to go waits until all is written.
#[derive(Debug, Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Option<SyncSender<Value>>>,
    dropped: AtomicU64,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// A request that was answered.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// One for each request.
    pub id: &'a str,
    /// Path and query.
    pub uri: &'a str,
    /// `list`, `create`.
    pub verb: &'a str,
    /// Who sent it.
    pub user: &'a User,
    /// Whom they acted as.
    pub impersonated: Option<&'a User>,
    /// From which address.
    pub source: Option<std::net::IpAddr>,
    /// With which program.
    pub user_agent: &'a str,
    /// The object: resource, namespace, name, uid, apiGroup, apiVersion, subresource; null for paths.
    pub object: Value,
    /// The answer's code.
    pub code: u16,
    /// Why it failed: reason and message of the Status.
    pub failure: Option<(&'a str, &'a str)>,
    /// `authorization.k8s.io/decision` and the like.
    pub annotations: &'a [(&'a str, &'a str)],
    /// When it came.
    pub received: Timestamp,
    /// When it was answered.
    pub answered: Timestamp,
}

impl Audit {
    /// Opens the log; tells when that is not possible.
    pub fn open(options: Options) -> std::io::Result<Audit> {
        let log = Log::open(options)?;
        let (queue, events) = sync_channel(QUEUE);
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn(move || write(log, &events))?;
        let shared =
            Shared { queue: Mutex::new(Some(queue)), dropped: AtomicU64::new(0), writer: Mutex::new(Some(writer)) };
        Ok(Audit { shared: Arc::new(shared) })
    }

    /// Logs a request; never waits.
    pub fn log(&self, event: &Event<'_>) {
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = queue.as_ref().map(|queue| queue.try_send(event.json()));
        if !matches!(sent, Some(Ok(()))) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(Err(TrySendError::Disconnected(_))) = sent {
            tracing::error!("the audit log is no longer written");
        }
    }

    /// How many events were not logged.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = writer.join();
        }
    }
}

impl Event<'_> {
    /// The event as the log has it.
    pub fn json(&self) -> Value {
        let short = |text: &str, max: usize| golang::shorten(text, max).into_owned();
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.id,
            "stage": "ResponseComplete",
            "requestURI": short(self.uri, MAX_URI),
            "verb": self.verb,
            "user": self.user.info(),
        });
        if let Some(user) = self.impersonated {
            event["impersonatedUser"] = user.info();
        }
        if let Some(source) = self.source {
            event["sourceIPs"] = json!([source.to_string()]);
        }
        if !self.user_agent.is_empty() {
            event["userAgent"] = short(self.user_agent, MAX_TEXT).into();
        }
        if self.object.is_object() {
            let fields = self.object.as_object().into_iter().flatten();
            let shortened =
                fields.map(|(name, text)| (name.clone(), short(text.as_str().unwrap_or_default(), MAX_TEXT)));
            event["objectRef"] = shortened.map(|(name, text)| (name, text.into())).collect::<Map>().into();
        }
        event["responseStatus"] = match self.failure {
            Some((reason, message)) => {
                json!({"metadata": {}, "status": "Failure", "message": short(message, MAX_MESSAGE), "reason": reason, "code": self.code})
            }
            None => json!({"metadata": {}, "code": self.code}),
        };
        event["requestReceivedTimestamp"] = micros(self.received).into();
        event["stageTimestamp"] = micros(self.answered).into();
        if !self.annotations.is_empty() {
            event["annotations"] =
                self.annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        }
        event
    }
}

fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn write(mut log: Log, events: &Receiver<Value>) {
    let mut failing = false;
    while let Ok(event) = events.recv() {
        match log.write(&event) {
            Ok(()) => failing = false,
            Err(error) if !failing => {
                tracing::error!(%error, "cannot write the audit log");
                failing = true;
            }
            Err(_) => {}
        }
    }
}
