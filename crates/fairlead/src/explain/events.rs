//! Findings as Events: a Service that stays broken gets a Warning that says why and what mends it, and a Normal one when it is
//! mended. Only what objects tell is looked at, and only the Services that a change concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Endpoints, Namespace, Node, Service, View};
use fairlead_cluster::{Changes, Cluster, Mirror, Recorder, Reference, Severity};
use fairlead_explain::{Cause, Change, Objects, Pod, Verdict, check};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// How long a Service must be broken for the same cause: what a rollout passes through is not worth an Event.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many Events at once, and then one in this time: a cluster that comes up whole is not to be drowned in them.
const BURST: u32 = 50;
const PACE: Duration = Duration::from_secs(1);
/// The reason of the Event when all is well again.
const MENDED: &str = "Mended";
/// The longest message an Event may have.
const LONGEST: usize = 1024;

/// Writes Events until told to stop. `domain` is that of the cluster's names.
pub(crate) async fn run(cluster: Cluster, host: &str, domain: &str, stop: CancellationToken) {
    let recorder = Recorder::new(&cluster, "fairlead-explain", host);
    let mut mirror = Mirror::builder(&cluster)
        .with::<Service>()
        .with::<Pod>()
        .with::<EndpointSlice>()
        .with::<Endpoints>()
        .with::<Node>()
        .with::<Namespace>()
        .build();
    let (mut desk, mut purse) = (Desk::default(), Purse { events: BURST, at: Instant::now() });
    desk.objects.set_domain(domain);
    loop {
        // Until all is listed, what is missing may only not have come yet.
        let due = desk.next_due().filter(|_| mirror.synced()).map(|due| purse.earliest(due));
        let wait = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => desk.take(&changes, Instant::now()),
            () = wait => {
                let now = Instant::now();
                if let Some((service, news)) = desk.judge_next(now) {
                    purse.spend(now);
                    recorder.record(Reference::of(&*service), news.severity, news.reason, news.message);
                }
            }
        }
    }
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
struct News {
    severity: Severity,
    reason: &'static str,
    message: String,
}

/// The Services that are to be looked at, and what is known of those that are broken.
#[derive(Default)]
struct Desk {
    objects: Objects,
    due: BTreeSet<(Instant, Key)>,
    /// When each is due.
    when: BTreeMap<Key, Instant>,
    broken: BTreeMap<Key, Broken>,
}

struct Broken {
    cause: Cause,
    since: Instant,
    told: Option<Cause>,
}

impl Desk {
    fn take(&mut self, changes: &Changes, now: Instant) {
        let mut all = Vec::new();
        collect(changes, &mut all, Change::Node);
        collect(changes, &mut all, Change::Namespace);
        collect(changes, &mut all, Change::Service);
        collect(changes, &mut all, Change::Pod);
        collect(changes, &mut all, Change::EndpointSlice);
        collect(changes, &mut all, Change::Endpoints);
        self.apply(all, now);
    }

    fn apply(&mut self, changes: Vec<Change>, now: Instant) {
        for key in self.objects.apply(changes) {
            self.put_off(key, now);
        }
    }

    /// Looks at a Service then, or sooner if that was the plan.
    fn put_off(&mut self, key: Key, until: Instant) {
        let due = self.when.get(&key).copied().unwrap_or(until).min(until);
        self.due.remove(&(self.when.get(&key).copied().unwrap_or(due), key.clone()));
        self.when.insert(key.clone(), due);
        self.due.insert((due, key));
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Looks at the next Service that is due.
    fn judge_next(&mut self, now: Instant) -> Option<(Arc<Service>, News)> {
        let (_, key) = self.due.first().filter(|(due, _)| *due <= now).cloned()?;
        let due = self.when.remove(&key)?;
        self.due.remove(&(due, key.clone()));
        let Some(service) = self.objects.service(&key).cloned() else {
            self.broken.remove(&key);
            return None;
        };
        self.judge(&key, now).map(|news| (service, news))
    }

    fn judge(&mut self, key: &Key, now: Instant) -> Option<News> {
        let report = check(key, &self.objects);
        let finding = report.first_finding().filter(|_| report.verdict == Verdict::Broken);
        let Some(finding) = finding.filter(|finding| !passes(finding.cause)) else {
            let told = self.broken.remove(key).and_then(|broken| broken.told);
            let mended = |cause: Cause| News {
                severity: Severity::Normal,
                reason: MENDED,
                message: format!("no longer so: {cause}"),
            };
            return told.filter(|_| report.verdict != Verdict::Broken).map(mended);
        };
        let fresh = Broken { cause: finding.cause, since: now, told: None };
        let broken = self.broken.entry(key.clone()).or_insert(fresh);
        if broken.cause != finding.cause {
            (broken.cause, broken.since) = (finding.cause, now);
        }
        let ripe = broken.since + PATIENCE;
        if broken.told == Some(finding.cause) {
            return None;
        }
        if now < ripe {
            self.put_off(key.clone(), ripe);
            return None;
        }
        broken.told = Some(finding.cause);
        let message = words(&finding.message, finding.remedy.first());
        Some(News { severity: Severity::Warning, reason: finding.cause.as_str(), message })
    }
}

/// What passes by itself, or is what somebody wants.
fn passes(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::PodStarting | Cause::InitContainerRunning | Cause::ServiceBeingDeleted | Cause::PodTerminating
    )
}

fn words(message: &str, remedy: Option<&String>) -> String {
    let mut words = remedy.map_or_else(|| message.to_owned(), |remedy| format!("{message}; try: {remedy}"));
    while words.len() > LONGEST {
        words.pop();
    }
    words
}

fn collect<T: View>(changes: &Changes, all: &mut Vec<Change>, make: fn(Key, Option<Arc<T>>) -> Change) {
    all.extend(changes.of::<T>().iter().map(|change| make(change.key.clone(), change.new.clone())));
}

/// How many Events may be written.
struct Purse {
    events: u32,
    at: Instant,
}

impl Purse {
    /// When something that is due may be told.
    fn earliest(&mut self, due: Instant) -> Instant {
        let now = Instant::now();
        let earned = u32::try_from(now.duration_since(self.at).as_secs() / PACE.as_secs()).unwrap_or(BURST);
        if earned > 0 {
            self.events = self.events.saturating_add(earned).min(BURST);
            self.at = now;
        }
        if self.events > 0 { due } else { due.max(self.at + PACE) }
    }

    fn spend(&mut self, now: Instant) {
        if self.events == BURST {
            self.at = now;
        }
        self.events = self.events.saturating_sub(1);
    }
}
