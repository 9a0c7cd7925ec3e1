//! For tests: a Node and a client of it in network namespaces of their own, with two endpoints that count what they get, and
//! what a proxy does to it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_kernel::conntrack::{Conntrack, Entry, Filter};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::Connection;
use fairlead_plan::{Change, LocalDetection, Node, Plan, Planner};
use fairlead_program::nft::{Nft, Options};
use serde_json::{Value, json};

use crate::Counters;
use crate::conntrack::{Reconciled, Reconciler};
use crate::nftables::{convert, counters};

/// The two endpoints.
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
/// Their addresses.
pub(crate) const ENDPOINTS: [[&str; 2]; 2] = [["10.244.1.1", "fd00:244::1"], ["10.244.1.2", "fd00:244::2"]];
/// The port of both.
pub(crate) const PORT: u16 = 5353;
/// Long enough for a packet that is under way.
pub(crate) const SETTLED: Duration = Duration::from_millis(100);

pub(crate) struct Lab {
    planner: Planner,
    nft: Nft,
    kernel: Connection,
    reconciler: Reconciler,
    tally: counters::Tally,
    client: Namespace,
    /// By endpoint, for both families.
    sockets: Vec<[UdpSocket; 2]>,
    /// Below those that are given out by themselves.
    next_port: AtomicU16,
    /// Whether endpoints answer.
    pub(crate) answers: bool,
    /// How often the kernel's table was read.
    pub(crate) looks: usize,
}

/// Runs `work` on a Node with a client; skips it where that cannot be made.
pub(crate) fn in_lab(test: &str, work: impl FnOnce(&mut Lab) + Send) {
    if !["ip", "conntrack"].iter().all(|program| fairlead_testkit::need(test, program)) {
        return;
    }
    let (Ok(node), Ok(client)) = (Namespace::unnamed(), Namespace::unnamed()) else {
        fairlead_testkit::need::skip(test, "root");
        return;
    };
    node.run(|| work(&mut Lab::new(client))).unwrap();
}

/// Runs a program.
pub(crate) fn tool(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn ip(line: &str) {
    tool("ip", &line.split(' ').collect::<Vec<_>>());
}

impl Lab {
    /// In the namespace of the Node.
    fn new(client: Namespace) -> Lab {
        connect(&client);
        let addresses = ["192.168.7.1", "fd00:7::1"].map(|ip| ip.parse().unwrap());
        let node = Node {
            name: "n1".to_owned(),
            ips: addresses.to_vec(),
            addresses: addresses.into(),
            detection: LocalDetection::Ranges(vec!["10.244.0.0/16".parse().unwrap()]),
            ..Node::default()
        };
        let planner = Planner::new(node);
        let (nft, ops) = Nft::new(planner.plan(), Options::default());
        let mut kernel = Connection::open().unwrap();
        kernel.commit(convert::batch(&ops), None).unwrap();
        let bind = |ip: &str| {
            let socket = UdpSocket::bind(SocketAddr::new(ip.parse().unwrap(), PORT)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let sockets = ENDPOINTS.iter().map(|both| both.map(bind)).collect();
        Lab {
            planner,
            nft,
            kernel,
            reconciler: Reconciler::new(),
            tally: counters::Tally::default(),
            client,
            sockets,
            next_port: AtomicU16::new(10_000),
            answers: false,
            looks: 0,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.planner.plan()
    }

    /// What a proxy does with changes.
    fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        let change = self.planner.apply(changes);
        let before = counters::numbers(&self.nft, &change);
        let ops = self.nft.apply(self.planner.plan(), &change);
        self.tally.commit(&mut self.kernel, convert::batch(&ops), &before).unwrap();
        let done = self.reconciler.change(self.planner.plan(), &change).unwrap();
        self.note(&done);
    }

    fn note(&mut self, done: &Reconciled) -> u64 {
        self.looks += usize::from(done.took.is_some());
        done.deleted.values().sum()
    }

    pub(crate) fn service(&mut self, name: &str, service: Option<Value>) {
        self.apply([change(name, service)]);
    }

    pub(crate) fn replace_service(&mut self, old: &str, new: &str, service: Value) {
        self.apply([change(old, None), change(new, Some(service))]);
    }

    /// `A leaving,B`: both endpoints, the first on its way out.
    pub(crate) fn endpoints(&mut self, service: &str, endpoints: &str) {
        self.apply([slice(service, endpoints, 0), slice(service, endpoints, 1)]);
    }

    /// The network namespace of the client, as a path.
    pub(crate) fn client(&self) -> String {
        path(&self.client)
    }

    /// What was counted.
    pub(crate) fn counters(&mut self) -> Counters {
        self.tally.counters(&mut self.kernel, &self.nft, self.planner.plan()).unwrap()
    }

    /// Makes everything anew, as a proxy does when a map is full.
    pub(crate) fn load(&mut self) {
        self.tally.keep(&mut self.kernel, &self.nft, self.planner.plan()).unwrap();
        let (nft, program) = Nft::new(self.planner.plan(), Options::default());
        let ops = [fairlead_program::nft::clear(), program].concat();
        self.kernel.commit(convert::batch(&ops), None).unwrap();
        self.nft = nft;
    }

    /// A packet from each of so many ports of the client, none of which was used before.
    pub(crate) fn send_from_ports(&self, address: &str, count: u16) {
        let to: SocketAddr = address.parse().unwrap();
        let from: IpAddr = if to.is_ipv4() { "192.168.7.2" } else { "fd00:7::2" }.parse().unwrap();
        let first = self.next_port.fetch_add(count, Ordering::Relaxed);
        let send = |port| {
            UdpSocket::bind((from, port)).unwrap().send_to(b"x", to).unwrap();
        };
        self.client.run(|| (first..first + count).for_each(send)).unwrap();
    }

    /// Looks as often as it should; returns how many flows were forgotten.
    pub(crate) fn look_until_done(&mut self) -> u64 {
        let mut deleted = 0;
        while let Some(wait) = self.reconciler.next_look() {
            thread::sleep(wait);
            let done = self.reconciler.look(self.planner.plan()).unwrap();
            deleted += self.note(&done);
        }
        deleted
    }

    pub(crate) fn full(&mut self) {
        self.reconciler.full(self.planner.plan()).unwrap();
    }

    /// Sends a packet every other millisecond from one port until it is dropped. Nothing comes back.
    pub(crate) fn send_to(&self, address: &str) -> Sender {
        let to: SocketAddr = address.parse().unwrap();
        let from = if to.is_ipv4() { "192.168.7.2:0" } else { "[fd00:7::2]:0" };
        let socket = self.client.run(|| UdpSocket::bind(from).unwrap()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let _ = socket.send_to(b"x", to);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Sender { stop, thread: Some(thread) }
    }

    /// Waits until an endpoint gets a packet, and looks meanwhile as often as it should.
    pub(crate) fn wait_for(&mut self, endpoint: usize, limit: Duration) -> Option<Duration> {
        self.drain(endpoint);
        let start = Instant::now();
        while start.elapsed() < limit {
            if self.drain(endpoint) > 0 {
                return Some(start.elapsed());
            }
            self.look_if_due();
            thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Whether an endpoint got a packet.
    pub(crate) fn got(&mut self, endpoint: usize) -> bool {
        self.drain(endpoint) > 0
    }

    fn look_if_due(&mut self) {
        if self.reconciler.next_look() == Some(Duration::ZERO) {
            let done = self.reconciler.look(self.planner.plan()).unwrap();
            self.note(&done);
        }
    }

    /// Whether an endpoint gets nothing any more, once a change had time to take effect.
    pub(crate) fn is_left_alone(&mut self, endpoint: usize, limit: Duration) -> bool {
        let start = Instant::now();
        let mut quiet = start;
        while start.elapsed() < limit && quiet.elapsed() < SETTLED {
            if self.drain(endpoint) > 0 {
                quiet = Instant::now();
            }
            self.look_if_due();
            thread::sleep(Duration::from_millis(1));
        }
        quiet.elapsed() >= SETTLED
    }

    /// Takes what an endpoint got, and answers it if endpoints do.
    fn drain(&self, endpoint: usize) -> usize {
        let mut count = 0;
        for socket in &self.sockets[endpoint] {
            while let Ok((_, from)) = socket.recv_from(&mut [0; 8]) {
                count += 1;
                if self.answers {
                    let _ = socket.send_to(b"y", from);
                }
            }
        }
        count
    }

    fn entries(&self) -> Vec<Entry> {
        Conntrack::open().unwrap().entries(Filter::default()).unwrap()
    }

    /// Every flow the kernel remembers, as numbers.
    pub(crate) fn flows(&self) -> Vec<u32> {
        let mut flows: Vec<u32> = self.entries().iter().map(|entry| entry.id).collect();
        flows.sort_unstable();
        flows
    }

    pub(crate) fn flows_to(&self, address: &str) -> usize {
        let to: SocketAddr = address.parse().unwrap();
        let is = |entry: &&Entry| (entry.original.destination, entry.original.destination_port) == (to.ip(), to.port());
        self.entries().iter().filter(is).count()
    }

    pub(crate) fn forget_all(&self) {
        tool("conntrack", &["-F"]);
    }

    /// Puts a flow into the kernel's memory.
    pub(crate) fn insert(&self, flow: &[&str]) {
        tool("conntrack", &[&["-I", "-t", "60"], flow].concat());
    }

    /// The same for one that is translated to an endpoint.
    pub(crate) fn insert_flow(&self, flow: &[&str], endpoint: usize) {
        let to = format!("{}:{PORT}", ENDPOINTS[endpoint][0]);
        self.insert(&[flow, &["--dst-nat", &to]].concat());
    }

    /// Flows of so many clients to the cluster IP.
    pub(crate) fn many_flows(&self, count: u32) {
        self.client
            .run(|| {
                for i in 0..count {
                    if i % 250 == 0 {
                        let _ = Command::new("ip").args(["addr", "add", &source(i), "dev", "v1"]).output();
                    }
                }
                for i in 0..count {
                    let from = source(i / 250 * 250);
                    let port = u16::try_from(1024 + i % 250).unwrap();
                    let socket = UdpSocket::bind((from.trim_end_matches("/16"), port)).unwrap();
                    socket.send_to(b"x", "10.96.0.10:53").unwrap();
                }
            })
            .unwrap();
    }

    #[allow(clippy::print_stdout, reason = "what was measured is for people")]
    pub(crate) fn say(&self, what: &str) {
        println!("{what}");
    }
}

fn source(i: u32) -> String {
    format!("192.168.{}.{}/16", 8 + i / 250 / 250, 1 + i / 250 % 250)
}

/// Stops when it is dropped.
pub(crate) struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn path(namespace: &Namespace) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd())
}

fn connect(client: &Namespace) {
    let there = path(client);
    ip("link set lo up");
    tool("ip", &["link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", &there]);
    ip("addr add 192.168.7.1/16 dev v0");
    ip("addr add fd00:7::1/64 dev v0 nodad");
    for endpoint in ENDPOINTS.as_flattened() {
        ip(&format!("addr add {endpoint} dev lo"));
    }
    ip("link set v0 up");
    // What nobody serves must go somewhere to be remembered.
    for (path, value) in [("/proc/sys/net/ipv4/ip_forward", "1"), ("/proc/sys/net/ipv6/conf/all/forwarding", "1")] {
        std::fs::write(path, value).unwrap();
    }
    let setup = || {
        ip("link set lo up");
        ip("addr add 192.168.7.2/16 dev v1");
        ip("addr add fd00:7::2/64 dev v1 nodad");
        ip("link set v1 up");
        ip("route add default via 192.168.7.1");
        ip("-6 route add default via fd00:7::1");
    };
    client.run(setup).unwrap();
    ip("link add hole type veth peer name hole1");
    ip("link set hole up");
    ip("link set hole1 up");
    ip("route add default dev hole");
    ip("-6 route add default dev hole");
}

fn change(name: &str, service: Option<Value>) -> Change {
    let service = service.map(|mut service| {
        service["metadata"] = json!({"name": name, "namespace": "default"});
        Arc::new(serde_json::from_value(service).unwrap())
    });
    Change::Service(Key::new("default", name), service)
}

fn slice(service: &str, endpoints: &str, family: usize) -> Change {
    let name = format!("{service}-{family}");
    let endpoints: Vec<Value> =
        endpoints.split(',').filter(|it| !it.is_empty()).map(|it| endpoint(it, family)).collect();
    let slice = json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": service}},
        "addressType": if family == 0 { "IPv4" } else { "IPv6" },
        "ports": [
            {"name": "dns", "port": PORT, "protocol": "UDP"}, {"name": "dns", "port": PORT, "protocol": "TCP"}
        ],
        "endpoints": endpoints,
    });
    Change::Slice(Key::new("default", &*name), Some(Arc::new(serde_json::from_value(slice).unwrap())))
}

fn endpoint(text: &str, family: usize) -> Value {
    let (name, state) = text.split_once(' ').unwrap_or((text, ""));
    let which = if name == "A" { A } else { B };
    let (ready, serving) = match state {
        "" => (true, true),
        "leaving" => (false, true),
        _ => (false, false),
    };
    json!({
        "addresses": [ENDPOINTS[which][family]], "nodeName": "n2",
        "conditions": {"ready": ready, "serving": serving, "terminating": !ready},
    })
}
