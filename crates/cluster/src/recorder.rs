//! Events: what happened to an object, for people who look at it. Written as client-go's recorder writes them, behind the
//! caller's back: a full queue or a slow API costs Events, never time.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, kinds};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{Backoff, Clock, Cluster, Error, Patch, retry};
use correlate::{Correlator, Decision};

mod correlate;

/// Events that wait to be written; client-go's bound. More are dropped.
const QUEUE: usize = 1000;
/// An API that is away for a minute loses the Events of that minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(10), tries: 10 };

/// Writes Events. Cheap to clone; when the last clone is gone, what is queued is still written.
#[derive(Debug, Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Report>,
}

/// The object an Event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    api_version: String,
    kind: &'static str,
    key: Key,
    uid: String,
    resource_version: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Something is wrong.
    Warning,
}

/// What happened.
#[derive(Debug, Clone)]
struct Report {
    about: Reference,
    severity: Severity,
    reason: &'static str,
    message: String,
}

impl Reference {
    /// The object with this metadata.
    pub fn to(kind: &'static Kind, meta: &Meta) -> Reference {
        Reference {
            api_version: kind.api_version(),
            kind: kind.kind,
            key: Key::new(meta.namespace.as_str(), meta.name.as_str()),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        }
    }

    /// The object of a view.
    pub fn of<T: View>(view: &T) -> Reference {
        Reference::to(T::KIND, view.meta())
    }

    fn to_json(&self) -> Value {
        let mut reference = json!({"kind": self.kind});
        let fields = [
            ("namespace", &*self.key.namespace),
            ("name", &*self.key.name),
            ("uid", &self.uid),
            ("apiVersion", &self.api_version),
            ("resourceVersion", &self.resource_version),
        ];
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            reference[name] = value.into();
        }
        reference
    }
}

impl Recorder {
    /// Writes in the name of a component on a host. Needs a tokio run time.
    pub fn new(cluster: &Cluster, component: &str, host: &str) -> Recorder {
        Recorder::with_clock(cluster, component, host, Arc::new(Timestamp::now))
    }

    /// The same with a clock of one's own.
    pub fn with_clock(cluster: &Cluster, component: &str, host: &str, clock: Clock) -> Recorder {
        let (queue, reports) = mpsc::channel(QUEUE);
        let (component, host) = (component.to_owned(), host.to_owned());
        let writer = Writer { cluster: cluster.managed_by(&component), component, host, clock };
        tokio::spawn(writer.run(reports));
        Recorder { queue }
    }

    /// Tells of something. `reason` is one word in CamelCase, `message` a sentence. Returns at once.
    pub fn record(&self, about: Reference, severity: Severity, reason: &'static str, message: impl Into<String>) {
        let report = Report { about, severity, reason, message: message.into() };
        if let Err(error) = self.queue.try_send(report) {
            tracing::debug!(%error, reason, "an Event is lost");
        }
    }
}

struct Writer {
    cluster: Cluster,
    component: String,
    host: String,
    clock: Clock,
}

impl Writer {
    async fn run(self, mut reports: mpsc::Receiver<Report>) {
        let mut correlator = Correlator::default();
        while let Some(report) = reports.recv().await {
            let now = (self.clock)();
            let decision = correlator.decide(&report, now);
            let written = match &decision {
                Decision::Drop => continue,
                Decision::Create(event) => self.create(&report, event).await,
                Decision::Count(event) => self.count(&report, event).await,
            };
            if let Err(error) = written {
                tracing::debug!(%error, about = %report.about.key, reason = report.reason, "an Event was not written");
            }
        }
    }

    async fn create(&self, report: &Report, event: &correlate::Event) -> Result<(), Error> {
        let object = self.object(report, event);
        retry(BACKOFF, Error::is_transient, || self.cluster.create(&kinds::EVENT, &object)).await.map(drop)
    }

    async fn count(&self, report: &Report, event: &correlate::Event) -> Result<(), Error> {
        let patch = Patch::Strategic(json!({
            "count": event.count,
            "lastTimestamp": seconds(event.last),
            "message": event.message,
        }));
        let namespace = namespace(&report.about);
        let patched =
            retry(BACKOFF, Error::is_transient, || self.cluster.patch(&kinds::EVENT, namespace, &event.name, &patch));
        match patched.await {
            // Events do not live for ever.
            Err(Error::NotFound(_)) => self.create(report, event).await,
            patched => patched.map(drop),
        }
    }

    fn object(&self, report: &Report, event: &correlate::Event) -> Value {
        let mut source = json!({"component": self.component});
        if !self.host.is_empty() {
            source["host"] = self.host.as_str().into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": event.name, "namespace": namespace(&report.about)},
            "involvedObject": report.about.to_json(),
            "reason": report.reason,
            "message": event.message,
            "source": source,
            "firstTimestamp": seconds(event.first),
            "lastTimestamp": seconds(event.last),
            "count": event.count,
            "type": format!("{:?}", report.severity),
            "reportingComponent": self.component,
            "reportingInstance": self.host,
        })
    }
}

/// Events about objects without a namespace are in the default one.
fn namespace(about: &Reference) -> &str {
    if about.key.namespace.is_empty() { "default" } else { &about.key.namespace }
}

fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
