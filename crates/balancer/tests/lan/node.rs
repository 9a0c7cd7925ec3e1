//! A Node: this test program called anew, with an announcer in it and something that answers at every address.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fairlead_api::source::Selection;
use fairlead_api::view::{Node, Protocol, Service, View};
use fairlead_balancer::announce::{Announcer, Input, Settings, Times};
use fairlead_balancer::guard::{Frontend, Guard};
use fairlead_balancer::owner::Wanted;
use fairlead_cluster::{Cluster, Reference, Watched};
use fairlead_kernel::netns::Namespace;
use tokio_util::sync::CancellationToken;

const NAME: &str = "FAIRLEAD_LAN_NODE";
const API: &str = "FAIRLEAD_LAN_API";
const ADDRESSES: &str = "FAIRLEAD_LAN_ADDRESSES";
/// The times of heartbeats in milliseconds, with commas between them.
const TIMES: &str = "FAIRLEAD_LAN_TIMES";

/// A running Node.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts one on a machine.
    pub(crate) fn start(
        on: &Namespace,
        name: &str,
        api: &str,
        addresses: &[&str],
        times: Times,
        log: PathBuf,
    ) -> Process {
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "node::a_node_runs_until_it_is_killed", "--nocapture", "--test-threads=1"]);
        command.env(NAME, name).env(API, api).env(ADDRESSES, addresses.join(","));
        let times = [times.interval, times.limit, times.alone].map(|time| time.as_millis().to_string());
        command.env(TIMES, times.join(","));
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let child = on.run(|| command.spawn()).unwrap().unwrap();
        Process { child, log }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap();
    }

    /// The time that processors worked for it.
    pub(crate) fn worked(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may hold anything: fields 14 and 15 of proc_pid_stat(5), in
        // hundredths of a second.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_node_runs_until_it_is_killed() {
    let Ok(name) = std::env::var(NAME) else { return };
    serve(&name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(node(name));
}

async fn node(name: String) {
    let api = std::env::var(API).unwrap();
    let addresses = std::env::var(ADDRESSES).unwrap();
    let cluster = Cluster::connect_at(None, Some(&api)).await.unwrap();
    let (announcer, task) = Announcer::new(Settings { node: name, times: times() });
    let stop = CancellationToken::new();
    let ends = stop.clone();
    let mut owners = announcer.owners();
    tokio::spawn(async move {
        while owners.changed().await.is_ok() {
            say(&format!("{:?}\n", owners.borrow_and_update()));
        }
    });
    let follow = follow(cluster.clone(), announcer, addresses);
    let ended = async {
        let mut signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        signal.recv().await;
        ends.cancel();
        tokio::time::sleep(Duration::from_secs(10)).await;
    };
    tokio::select! {
        done = task.run(cluster, stop) => done.unwrap(),
        () = follow => {}
        () = ended => panic!("it does not end"),
    }
}

fn times() -> Times {
    let times = std::env::var(TIMES).unwrap();
    let mut times = times.split(',').map(|text| Duration::from_millis(text.parse().unwrap()));
    let mut next = || times.next().unwrap();
    Times { interval: next(), limit: next(), alone: next() }
}

/// Tells the announcer of the Nodes there are; the addresses stay the same.
async fn follow(cluster: Cluster, announcer: Announcer, addresses: String) {
    let services = cluster.list(&Selection::all(Service::KIND)).await.unwrap();
    let service = services.objects.iter().find(|object| &*object.key.name == "web").unwrap();
    let service: Service = serde_json::from_slice(&service.json).unwrap();
    let mut nodes = Watched::<Node>::new(&cluster, Selection::all(Node::KIND));
    let mut known = std::collections::BTreeMap::new();
    loop {
        for (key, node) in nodes.next().await {
            match node {
                Some(node) => known.insert(key, node),
                None => known.remove(&key),
            };
        }
        if !nodes.listed() {
            continue;
        }
        let mut input = Input { nodes: known.values().cloned().collect(), ..Input::default() };
        let mut guard = Guard::default();
        for address in addresses.split_terminator(',').map(|text| text.parse().unwrap()) {
            input.wanted.push(Wanted { services: vec![Reference::of(&service)], ..Wanted::new(address) });
            guard.listeners.insert(Frontend { address, protocol: Protocol::Tcp, port: 80 });
        }
        announcer.tell(Input { guard, ..input });
    }
}

/// Says who it is.
fn serve(name: &str) {
    let listener = TcpListener::bind("[::]:80").unwrap();
    let name = name.to_owned();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(name.as_bytes());
        }
    });
}

fn say(text: &str) {
    std::io::stdout().lock().write_all(text.as_bytes()).unwrap();
}
