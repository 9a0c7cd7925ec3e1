//! The Node of this machine in the API: it is there, says what it has and where it is, and renews its Lease while we live.
//!
//! The controllers take a Node whose Lease is not renewed for one that is gone.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Backoff, Cluster, Error, Patch, retry};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use machine::Machine;

mod machine;

/// Where agents keep their Leases.
const LEASES: &str = "kube-node-lease";
/// How often the Lease is renewed, and for how long it is good.
const RENEWAL: Duration = Duration::from_secs(10);
const DURATION: Duration = Duration::from_secs(40);
/// How often the status is written although nothing in it changed.
const REPORT: Duration = Duration::from_secs(300);
/// What fails is tried again until the Lease is due anyway.
const PATIENCE: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(2), tries: 5 };

/// What an agent says about its Node.
#[derive(Clone)]
pub struct Agent {
    /// The name of the Node.
    pub node: String,
    /// The addresses of the machine, as they are now.
    pub addresses: Arc<dyn Fn() -> Vec<IpAddr> + Send + Sync>,
    /// More labels than those every Node has.
    pub labels: Vec<(String, String)>,
    /// Where the API server reaches the agent over the network; `None`: it is in the same process.
    pub port: Option<u16>,
    /// How many Pods may run here.
    pub pods: u32,
}

/// Keeps the Node and its Lease until told to stop.
pub async fn run(cluster: Cluster, agent: Agent, stop: CancellationToken) {
    stop.run_until_cancelled(keep(cluster, agent)).await;
}

async fn keep(cluster: Cluster, agent: Agent) {
    let mut told = (Value::Null, Instant::now());
    let mut failing = String::new();
    loop {
        let done = report(&cluster, &agent, &mut told).await;
        let failure = done.err().map(|error| error.to_string()).unwrap_or_default();
        if !failure.is_empty() && failure != failing {
            tracing::warn!(node = agent.node, error = failure, "the Node cannot be reported");
        }
        failing = failure;
        sleep(RENEWAL).await;
    }
}

/// Writes what is to be written: the Lease always, the Node if it is missing or has changed.
async fn report(cluster: &Cluster, agent: &Agent, told: &mut (Value, Instant)) -> Result<(), Error> {
    let status = agent.status();
    if told.0 != status || told.1.elapsed() > REPORT {
        retry(PATIENCE, Error::is_transient, || agent.write(cluster, &status)).await?;
        *told = (status, Instant::now());
    }
    let renewed = retry(PATIENCE, Error::is_transient, || renew(cluster, &agent.node)).await;
    if renewed.is_err() {
        // The Node may be gone, and its Lease with it.
        told.0 = Value::Null;
    }
    renewed
}

impl Agent {
    /// Makes the Node, or brings it up to date.
    async fn write(&self, cluster: &Cluster, status: &Value) -> Result<(), Error> {
        let labels: Map<String, Value> = self.labels().into_iter().map(|(key, value)| (key, value.into())).collect();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node, "labels": labels}});
        let there = match cluster.create(&kinds::NODE, &node).await {
            Err(Error::AlreadyExists(_)) => {
                let labels = Patch::Merge(json!({"metadata": {"labels": node["metadata"]["labels"]}}));
                cluster.patch(&kinds::NODE, "", &self.node, &labels).await?
            }
            other => other?,
        };
        let mut status = status.clone();
        status["conditions"] = conditions(&there, Timestamp::now()).into();
        // Addresses are merged by their type, and a machine with both families has two of one type: these are all.
        if let Some(addresses) = status["addresses"].as_array_mut() {
            addresses.push(json!({"$patch": "replace"}));
        }
        cluster.patch_status(&kinds::NODE, "", &self.node, &Patch::Strategic(json!({"status": status}))).await.map(drop)
    }

    fn labels(&self) -> Vec<(String, String)> {
        let usual = [
            ("kubernetes.io/hostname", self.node.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", machine::architecture()),
        ];
        let usual = usual.map(|(key, value)| (key.to_owned(), value.to_owned()));
        usual.into_iter().chain(self.labels.iter().cloned()).collect()
    }

    /// The status but for its conditions.
    fn status(&self) -> Value {
        let machine = Machine::read();
        let internal =
            (self.addresses)().into_iter().map(|ip| json!({"type": "InternalIP", "address": ip.to_string()}));
        let hostname = json!({"type": "Hostname", "address": self.node});
        let has = json!({
            "cpu": machine.processors.to_string(),
            "memory": format!("{}Ki", machine.memory_kib),
            "pods": self.pods.to_string(),
        });
        let mut status = json!({
            "addresses": internal.chain([hostname]).collect::<Vec<_>>(),
            "capacity": has,
            "allocatable": has,
            "nodeInfo": machine.info(),
        });
        if let Some(port) = self.port {
            status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": port}});
        }
        status
    }
}

/// The conditions a Node has, each since when it is so.
fn conditions(node: &Value, now: Timestamp) -> Vec<Value> {
    const PRESSURES: [(&str, &str, &str); 3] = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "Pods run without a limit of the Node's"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "Pods run without a limit of the Node's"),
        ("PIDPressure", "KubeletHasSufficientPID", "Pods run without a limit of the Node's"),
    ];
    let ready = ("Ready", "True", "KubeletReady", "fairlead runs Pods here");
    let pressures = PRESSURES.map(|(kind, reason, message)| (kind, "False", reason, message));
    let since = |kind: &str, status: &str| {
        let conditions = node.at("status").list("conditions").iter();
        let same = |condition: &&Value| condition.text("type") == kind && condition.text("status") == status;
        conditions.filter(same).map(|condition| condition.at("lastTransitionTime").clone()).next()
    };
    let now = seconds(now);
    let all = pressures.into_iter().chain([ready]).map(|(kind, status, reason, message)| {
        let since = since(kind, status).unwrap_or_else(|| now.as_str().into());
        json!({"type": kind, "status": status, "reason": reason, "message": message,
               "lastHeartbeatTime": now, "lastTransitionTime": since})
    });
    all.collect()
}

/// Renews the Lease, or makes it.
async fn renew(cluster: &Cluster, node: &str) -> Result<(), Error> {
    let now = micros(Timestamp::now());
    let patch = Patch::Merge(json!({"spec": {"renewTime": now}}));
    match cluster.patch(&kinds::LEASE, LEASES, node, &patch).await {
        Err(Error::NotFound(_)) => {}
        other => return other.map(drop),
    }
    let owner = cluster.get(&kinds::NODE, "", node).await?;
    let uid = owner.at("metadata").text("uid");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node,
            "namespace": LEASES,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
        },
        "spec": {"holderIdentity": node, "leaseDurationSeconds": DURATION.as_secs(), "renewTime": now},
    });
    cluster.create(&kinds::LEASE, &lease).await.map(drop)
}

fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn micros(now: Timestamp) -> String {
    let mut text = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    // A String takes whatever it is given.
    let _ = write!(text, ".{:06}Z", now.subsec_nanosecond() / 1_000);
    text
}
