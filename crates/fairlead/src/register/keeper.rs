//! Keeps the objects of a registration as they should be: writes them, renews the Lease, and makes again what somebody removed.
//! An API that is away is tried again; nothing here ends the registration.

use std::time::Duration;

use fairlead_api::view::EndpointConditions;
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::{Backoff, Cluster, Delete, Error, Patch, retry};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::flags::Wanted;
use super::{say, service, slice};

/// How long to wait after a write failed.
const AGAIN: Duration = Duration::from_secs(1);

/// What the slice says, and since which revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) conditions: EndpointConditions,
    pub(super) revision: u64,
}

pub(super) struct Keeper {
    cluster: Cluster,
    wanted: Wanted,
    identity: String,
    /// It was said that something does not work.
    told: bool,
}

impl Keeper {
    pub(super) fn new(cluster: Cluster, wanted: Wanted) -> Keeper {
        let identity = format!("{}_{}", host(), std::process::id());
        Keeper { cluster, wanted, identity, told: false }
    }

    /// Makes the Service if need be, and waits until nobody else keeps this endpoint.
    pub(super) async fn begin(&mut self) -> anyhow::Result<()> {
        let found = service::ensure(&self.cluster, &self.wanted).await?;
        let (is, ip) = (if found.new { "made" } else { "there" }, &found.cluster_ip);
        say(&self.wanted, &format!("the Service {}/{} is {is}, at {ip}", self.wanted.namespace, self.wanted.name));
        let mut told = false;
        while let Some(other) = self.other().await? {
            if !std::mem::replace(&mut told, true) {
                let endpoint = self.wanted.endpoint();
                say(&self.wanted, &format!("{endpoint} is kept by {other}; waiting until it ends or falls silent"));
            }
            sleep(AGAIN).await;
        }
        Ok(())
    }

    /// Who else keeps this endpoint. One of this machine whose process is gone does not.
    async fn other(&self) -> Result<Option<String>, Error> {
        let lease = self.cluster.get(&kinds::LEASE, &self.wanted.namespace, &slice::name(&self.wanted)).await;
        let lease = match lease {
            Err(Error::NotFound(_)) => return Ok(None),
            lease => lease?,
        };
        let spec = lease.at("spec");
        let holder = spec.text("holderIdentity");
        let until = spec.text("renewTime").parse::<Timestamp>().ok().and_then(|renewed| {
            renewed.checked_add(SignedDuration::from_secs(spec.int("leaseDurationSeconds").clamp(0, 86_400))).ok()
        });
        let silent = until.is_none_or(|until| until < Timestamp::now());
        let dead = holder.strip_prefix(&format!("{}_", host())).is_some_and(gone);
        let free = holder.is_empty() || holder == self.identity || silent || dead;
        Ok((!free).then(|| holder.to_owned()))
    }

    /// Keeps what is wished for until nobody wishes any more.
    pub(super) async fn run(
        mut self,
        mut wishes: watch::Receiver<EndpointConditions>,
        tell: watch::Sender<Option<Kept>>,
    ) -> Keeper {
        let renew = self.wanted.expires_after / 3;
        loop {
            let conditions = *wishes.borrow_and_update();
            let wait = match self.write(conditions).await {
                Ok(revision) => {
                    tell.send_replace(Some(Kept { conditions, revision }));
                    self.outcome(None);
                    renew
                }
                Err(error) => {
                    self.outcome(Some(error));
                    AGAIN
                }
            };
            tokio::select! {
                changed = wishes.changed() => if changed.is_err() { return self },
                () = sleep(wait) => {}
            }
        }
    }

    /// Trouble is told once, and its end too.
    fn outcome(&mut self, trouble: Option<anyhow::Error>) {
        match (&trouble, self.told) {
            (Some(error), false) => say(&self.wanted, &format!("cannot be kept up to date, trying again: {error:#}")),
            (None, true) => say(&self.wanted, "is up to date again"),
            _ => {}
        }
        self.told = trouble.is_some();
    }

    /// Writes all of it. What is as it should be already changes nothing at the API.
    async fn write(&self, conditions: EndpointConditions) -> anyhow::Result<u64> {
        let found = service::ensure(&self.cluster, &self.wanted).await?;
        // The Lease first: a slice without one would be nobody's.
        self.apply(&kinds::LEASE, slice::lease(&self.wanted, &self.identity, Timestamp::now())).await?;
        let slice = slice::slice(&self.wanted, &found.uid, &found.ports, conditions);
        let written = self.apply(&kinds::ENDPOINT_SLICE, slice).await?;
        Ok(written.at("metadata").text("resourceVersion").parse().unwrap_or_default())
    }

    async fn apply(&self, kind: &Kind, object: Value) -> Result<Value, Error> {
        let name = slice::name(&self.wanted);
        self.cluster.patch(kind, &self.wanted.namespace, &name, &Patch::Apply { object, force: true }).await
    }

    /// Removes slice, Lease, and the Service if we made it and nobody else uses it.
    pub(super) async fn remove(self) {
        let (namespace, name) = (&self.wanted.namespace, slice::name(&self.wanted));
        let gone = async || {
            for kind in [&kinds::ENDPOINT_SLICE, &kinds::LEASE] {
                match self.cluster.delete(kind, namespace, &name, &Delete::default()).await {
                    Ok(_) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            service::remove(&self.cluster, &self.wanted).await
        };
        match retry(Backoff::default(), Error::is_transient, gone).await {
            Ok(true) => say(
                &self.wanted,
                &format!("the Service {namespace}/{} is removed, as nobody else uses it", self.wanted.name),
            ),
            Ok(false) => {}
            Err(error) => say(&self.wanted, &format!("cannot be removed; a controller will do it: {error}")),
        }
    }
}

/// Whether there is no process of that number.
fn gone(pid: &str) -> bool {
    pid.parse::<u32>().is_ok_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}
