//! One of several acts at a time: whoever holds the Lease. Works as client-go's leader election does, so that both can contend
//! for the same Lease.
//!
//! ```text
//! wait --nobody holds it, or the holder was silent for the lease duration--> lead
//!   ^------------ not renewed within the renew deadline, or another holds it ----'
//! ```
//! Other holders' clocks are not trusted: their silence is measured here.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{Clock, Cluster, Error};

/// What is contended for, and how.
#[derive(Clone)]
pub struct Config {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who we are; no two contenders may share it.
    pub identity: String,
    /// Others wait so long for a silent holder.
    pub lease_duration: Duration,
    /// A holder that could not renew for so long stops. Shorter than the lease duration by what stopping may take.
    pub renew_deadline: Duration,
    /// How often to try.
    pub retry_period: Duration,
    /// What time it is, for people who read the Lease.
    pub clock: Clock,
}

impl Config {
    /// The usual times: 15 s, 10 s and 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Config {
        Config {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            clock: Arc::new(Timestamp::now),
        }
    }
}

/// Calls `lead` whenever we hold the Lease, and tells it by its token to stop when we do not any more; if it has not stopped when
/// another may begin, it is dropped. Ends, and gives the Lease back, when told to stop or when `lead` is done.
pub async fn run<F>(cluster: Cluster, config: Config, stop: CancellationToken, lead: impl Fn(CancellationToken) -> F)
where
    F: Future<Output = ()>,
{
    let mut contender = Contender { cluster, config, seen: None };
    while !stop.is_cancelled() {
        if stop.run_until_cancelled(contender.acquire()).await.is_none() {
            return;
        }
        tracing::info!(lease = contender.config.name, identity = contender.config.identity, "leading");
        match contender.lead(&stop, &lead).await {
            Ended::Done => {
                contender.release().await;
                return;
            }
            Ended::Lost => tracing::warn!(lease = contender.config.name, "no longer leading"),
        }
    }
}

struct Contender {
    cluster: Cluster,
    config: Config,
    /// The Lease as last seen, and when it changed last, by our own clock.
    seen: Option<(Value, Instant)>,
}

enum Ended {
    Done,
    Lost,
}

/// How an attempt went.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    /// It is ours.
    Held,
    /// Another holds it.
    Taken,
}

impl Contender {
    async fn acquire(&mut self) {
        let mut holder = String::new();
        loop {
            match self.attempt().await {
                Ok(Attempt::Held) => return,
                Ok(Attempt::Taken) => {
                    let now = self.holder().to_owned();
                    if now != holder {
                        tracing::info!(lease = self.config.name, holder = now, "waiting for the leader to go");
                        holder = now;
                    }
                }
                Err(error) => tracing::debug!(lease = self.config.name, %error, "cannot acquire the lease"),
            }
            // Not all contenders at the same moment.
            sleep(self.config.retry_period.mul_f64(1.0 + fastrand::f64() * 0.2)).await;
        }
    }

    /// Leads until done or until the lease is lost.
    async fn lead<F>(&mut self, stop: &CancellationToken, lead: &impl Fn(CancellationToken) -> F) -> Ended
    where
        F: Future<Output = ()>,
    {
        let leading = stop.child_token();
        let mut work = std::pin::pin!(lead(leading.clone()));
        let renewed = tokio::select! {
            () = &mut work => return Ended::Done,
            renewed = self.renew() => renewed,
        };
        leading.cancel();
        // Until then nobody else leads.
        let _ = timeout_at(renewed + self.config.lease_duration, work).await;
        if stop.is_cancelled() { Ended::Done } else { Ended::Lost }
    }

    /// Keeps the lease; returns when it was last known to be ours, once it cannot be kept.
    async fn renew(&mut self) -> Instant {
        let mut renewed = Instant::now();
        loop {
            sleep(self.config.retry_period).await;
            loop {
                let began = Instant::now();
                let deadline = renewed + self.config.renew_deadline;
                match timeout_at(deadline, self.attempt()).await {
                    Ok(Ok(Attempt::Held)) => {
                        renewed = began;
                        break;
                    }
                    Ok(Ok(Attempt::Taken)) => return renewed,
                    Ok(Err(error)) => tracing::debug!(lease = self.config.name, %error, "cannot renew the lease"),
                    Err(_) => return renewed,
                }
                if Instant::now() + self.config.retry_period >= deadline {
                    return renewed;
                }
                sleep(self.config.retry_period).await;
            }
        }
    }

    /// Takes the lease, or keeps it, if that is allowed.
    async fn attempt(&mut self) -> Result<Attempt, Error> {
        let Config { namespace, name, .. } = &self.config;
        let now = (self.config.clock)();
        let mut lease = match self.cluster.get(&kinds::LEASE, namespace, name).await {
            Err(Error::NotFound(_)) => return self.create(now).await,
            lease => lease?,
        };
        self.observe(&lease);
        let ours = self.holder() == self.config.identity;
        if !ours && !self.holder().is_empty() && !self.silent() {
            return Ok(Attempt::Taken);
        }
        let spec = lease.map_mut("spec");
        let transitions = spec.get("leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let acquired = spec.get("acquireTime").filter(|time| ours && !time.is_null()).cloned();
        let transitions = transitions + i64::from(!ours);
        *spec = self.spec(now, acquired, transitions);
        let written = self.cluster.update(&kinds::LEASE, &lease).await?;
        self.observe(&written);
        Ok(Attempt::Held)
    }

    async fn create(&mut self, now: Timestamp) -> Result<Attempt, Error> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self.config.namespace, "name": self.config.name},
            "spec": self.spec(now, None, 0),
        });
        let written = self.cluster.create(&kinds::LEASE, &lease).await?;
        self.observe(&written);
        Ok(Attempt::Held)
    }

    fn spec(&self, now: Timestamp, acquired: Option<Value>, transitions: i64) -> serde_json::Map<String, Value> {
        let now = Value::from(micro_time(now));
        let fields = [
            ("holderIdentity", self.config.identity.as_str().into()),
            ("leaseDurationSeconds", self.config.lease_duration.as_secs().max(1).into()),
            ("acquireTime", acquired.unwrap_or_else(|| now.clone())),
            ("renewTime", now),
            ("leaseTransitions", transitions.into()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn observe(&mut self, lease: &Value) {
        let known = self.seen.as_ref().is_some_and(|(seen, _)| seen.at("spec") == lease.at("spec"));
        if !known {
            self.seen = Some((lease.clone(), Instant::now()));
        }
    }

    fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(lease, _)| lease.at("spec").text("holderIdentity"))
    }

    /// Whether the holder has not renewed for as long as it promised to.
    fn silent(&self) -> bool {
        self.seen.as_ref().is_none_or(|(_, since)| since.elapsed() >= self.config.lease_duration)
    }

    /// Lets others take the lease at once.
    async fn release(&mut self) {
        if self.holder() != self.config.identity {
            return;
        }
        let Some((mut lease, _)) = self.seen.take() else { return };
        let now = micro_time((self.config.clock)());
        let spec = lease.map_mut("spec");
        spec.insert("holderIdentity".to_owned(), "".into());
        spec.insert("leaseDurationSeconds".to_owned(), 1.into());
        spec.insert("acquireTime".to_owned(), now.as_str().into());
        spec.insert("renewTime".to_owned(), now.into());
        let written = timeout(self.config.renew_deadline, self.cluster.update(&kinds::LEASE, &lease)).await;
        if !matches!(written, Ok(Ok(_))) {
            tracing::debug!(lease = self.config.name, "the lease was not given back; it will run out");
        }
    }
}

/// As Kubernetes writes a `MicroTime`.
fn micro_time(now: Timestamp) -> String {
    format!("{now:.6}")
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lease = format!("{}/{}", self.namespace, self.name);
        f.debug_struct("Config").field("lease", &lease).field("identity", &self.identity).finish_non_exhaustive()
    }
}
