//! What does the history cost? Makes and changes Services on a server with an embedded store, in this process, without a
//! history and with one, in turn, and prints the processor time of each write, and how much of it the history's own thread took: on
//! a machine with other work to do the difference of the two says little.
//!
//! cargo run --release -p fairlead-history --example writes -- [WRITES]

#![allow(clippy::print_stdout)] // the table is what it is for

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::{Settings, kinds};
use fairlead_cluster::{Cluster, Patch};
use fairlead_history::{Bounds, History};
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Local, Options, Server};
use fairlead_store::Embedded;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Requests at a time.
const CLIENTS: usize = 16;
/// How often each is measured.
const ROUNDS: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let writes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5000);
    println!("{writes} Services made by {CLIENTS} clients, then each changed; microseconds of processor time a write");
    for _ in 0..ROUNDS {
        for history in [false, true] {
            let ([made, changed], seconds) = measured(writes, history).await;
            let with = if history { "with a history   " } else { "without a history" };
            let cost = |cost: Cost| format!("{:6.1} (of it the history {:4.1})", cost.all, cost.history);
            println!("{with}  create {}  change {}  in {seconds:.1} s", cost(made), cost(changed));
        }
    }
}

/// Microseconds of processor time a write.
#[derive(Debug, Clone, Copy)]
struct Cost {
    all: f64,
    history: f64,
}

/// What a create and a change cost, and how long all took.
async fn measured(writes: usize, history: bool) -> ([Cost; 2], f64) {
    let dir = tempfile::tempdir().expect("a directory");
    let stop = CancellationToken::new();
    let store = Arc::new(Embedded::open(dir.path()).expect("a store"));
    let server = Server::new(store, options(), Authenticator::default(), None, stop.clone()).await.expect("a server");
    let keeper = history.then(|| keep(&server, dir.path(), &stop));
    let cluster = Cluster::new(local(&server), Arc::new(local(&server)));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    let mut costs = [Cost { all: 0.0, history: 0.0 }; 2];
    for (cost, change) in costs.iter_mut().zip([false, true]) {
        let (before, history_before) = (processor_time(), history_time());
        let clients = (0..CLIENTS).map(|client| tokio::spawn(write(cluster.clone(), client, writes / CLIENTS, change)));
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("it ends");
        }
        if history {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let each = |time: Duration| time.as_secs_f64() * 1e6 / writes as f64;
        *cost = Cost { all: each(processor_time() - before), history: each(history_time() - history_before) };
    }
    let took = began.elapsed().as_secs_f64();
    stop.cancel();
    if let Some(keeper) = keeper {
        keeper.join().expect("it ends");
    }
    (costs, took)
}

async fn write(cluster: Cluster, client: usize, writes: usize, change: bool) {
    for at in 0..writes {
        let name = format!("web-{client}-{at}");
        if change {
            let patch = Patch::Merge(json!({"spec": {"sessionAffinity": "ClientIP"}}));
            cluster.patch(&kinds::SERVICE, "default", &name, &patch).await.expect("patched");
            continue;
        }
        let ports = json!([{"name": "http", "port": 80, "targetPort": 9376}]);
        let spec = json!({"selector": {"app": "web"}, "ports": ports});
        let service =
            json!({"metadata": {"namespace": "default", "name": name, "labels": {"app": "web"}}, "spec": spec});
        cluster.create(&kinds::SERVICE, &service).await.expect("made");
    }
}

fn keep(server: &Server, dir: &std::path::Path, stop: &CancellationToken) -> std::thread::JoinHandle<()> {
    let bounds = Bounds { size: 64 << 20, age: Duration::from_secs(86400) };
    let who = server.clone();
    let history = History::new(bounds, Arc::new(Timestamp::now), Some(Arc::new(move |revision| who.writer(revision))));
    let cluster = Cluster::new(local(server), Arc::new(local(server)));
    history.keep(&dir.join("history"), cluster, stop.clone())
}

fn local(server: &Server) -> Local {
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    server.local(User { name: "admin".to_owned(), groups, ..User::default() })
}

/// Of this process, in user and system mode: fields 14 and 15 of its line in /proc, in hundredths of a second.
fn processor_time() -> Duration {
    let line = std::fs::read_to_string("/proc/self/stat").expect("it is there");
    let fields: Vec<&str> = line.rsplit(')').next().expect("a name ends").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// Of the thread that keeps the history: the first number of its schedstat, in nanoseconds.
fn history_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("it is there").flatten().map(|thread| thread.path());
    let ours = |path: &std::path::PathBuf| std::fs::read(path.join("comm")).is_ok_and(|name| name == b"history\n");
    let times = threads.filter(ours).filter_map(|path| std::fs::read_to_string(path.join("schedstat")).ok());
    times.filter_map(|line| line.split_whitespace().next()?.parse().ok()).map(Duration::from_nanos).sum()
}

fn options() -> Options {
    Options {
        settings: Settings {
            service_ranges: vec!["10.0.0.0/12".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        },
        extra_kinds: Vec::new(),
        admission: Admission::default(),
        advertise: SocketAddr::from(([127, 0, 0, 1], 6443)),
        authorization: Authorization::Rbac,
        request_timeout: Duration::from_secs(60),
        backup: None,
    }
}
