//! The network: a switch, at which the API server is, machines of Nodes, and a client that asks who has an address.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairlead_balancer::announce::Times;
use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::packet::arp::{Arp, Operation};
use fairlead_kernel::packet::ndp::{Ndp, Solicitation};
use fairlead_kernel::packet::{BROADCAST, Hardware, Protocol, Socket};
use tempfile::TempDir;

use crate::api::Api;
use crate::node::Process;

const API: &str = "192.0.2.254:8080";
const CLIENT: [&str; 2] = ["192.0.2.50", "fd00::50"];
/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);
/// For tests that ask what happens, not how soon: on a busy machine heartbeats are late, and that is not to look like the end of a Node.
pub(crate) const UNHURRIED: Times =
    Times { interval: Duration::from_millis(400), limit: Duration::from_millis(3300), alone: Duration::from_secs(20) };

pub(crate) struct Lab {
    pub(crate) api: Api,
    pub(crate) nodes: Vec<LabNode>,
    pub(crate) client: Namespace,
    pub(crate) switch: Namespace,
    home: TempDir,
    addresses: Vec<&'static str>,
    times: Times,
}

pub(crate) struct LabNode {
    pub(crate) name: String,
    pub(crate) machine: Namespace,
    pub(crate) process: Option<Process>,
}

pub(crate) fn shell(namespace: &Namespace, line: &str) -> String {
    let done = namespace.run(|| Command::new("sh").args(["-ec", line]).output()).unwrap().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A machine with addresses that end in a number, at a port of the switch.
fn plug(switch: &Namespace, number: u8) -> Namespace {
    let machine = Namespace::unnamed().unwrap();
    at_once(&machine);
    let port = format!("port{number}");
    switch.run(|| Links::open().unwrap().add_veth(&port, "way", Some(machine.as_fd()))).unwrap().unwrap();
    shell(switch, &format!("ip link set {port} master switch up"));
    let lines = format!(
        "ip link set lo up; ip link set way address 02:00:00:00:00:{number:02}; ip link set way up; \
         ip address add 192.0.2.{number}/24 dev way; ip address add fd00::{number}/64 dev way nodad"
    );
    shell(&machine, &lines);
    machine
}

/// Addresses work without asking around for a second first.
fn at_once(machine: &Namespace) {
    machine.run(|| std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap()).unwrap();
}

/// Three Nodes that are told of these addresses; none where that cannot be made.
pub(crate) fn lab(test: &str, addresses: &[&'static str]) -> Option<Lab> {
    lab_of(3, Times::default(), test, addresses)
}

/// So many Nodes, whose hearts beat like this.
pub(crate) fn lab_of(count: u8, times: Times, test: &str, addresses: &[&'static str]) -> Option<Lab> {
    if !["root", "ip", "nft"].iter().all(|what| fairlead_testkit::need(test, what)) {
        return None;
    }
    let switch = Namespace::unnamed().unwrap();
    at_once(&switch);
    let lines = "ip link set lo up; ip link add switch type bridge; ip link set switch up; \
                 ip address add 192.0.2.254/24 dev switch; ip address add fd00::fe/64 dev switch nodad";
    shell(&switch, lines);
    let client = plug(&switch, 50);
    let listener = switch.run(|| TcpListener::bind(API).unwrap()).unwrap();
    let api = Api::new(listener);
    api.add_service("web");
    let home = tempfile::tempdir().unwrap();
    let mut lab = Lab { api, nodes: Vec::new(), client, switch, home, addresses: addresses.to_vec(), times };
    (0..count).for_each(|_| lab.add_node());
    (0..lab.nodes.len()).for_each(|number| lab.start(number));
    Some(lab)
}

impl Lab {
    /// One more Node, which does not run yet.
    pub(crate) fn add_node(&mut self) {
        let number = u8::try_from(self.nodes.len()).unwrap() + 1;
        let name = format!("n{number}");
        self.api.add_node(&name);
        self.nodes.push(LabNode { name, machine: plug(&self.switch, number), process: None });
    }

    /// Starts a Node's process.
    pub(crate) fn start(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let log = self.home.path().join(&node.name);
        let api = format!("http://{API}");
        node.process = Some(Process::start(&node.machine, &node.name, &api, &self.addresses, self.times, log));
    }

    pub(crate) fn logs(&self) -> String {
        let log = |node: &LabNode| {
            format!("--- {}\n{}", node.name, node.process.as_ref().map_or_else(String::new, Process::log))
        };
        self.nodes.iter().map(log).collect()
    }

    /// Who says that it has an address, by number of its Node.
    pub(crate) fn answers(&self, address: &str) -> BTreeSet<u8> {
        let address: IpAddr = address.parse().unwrap();
        self.client.run(|| ask(address)).unwrap()
    }

    /// Sends frames of ARP about an address from the client, as fast as they go, for so long:
    /// claims to it from ever other machines, and questions. Returns how many there were.
    pub(crate) fn flood(&self, address: &str, time: Duration) -> usize {
        let address: std::net::Ipv4Addr = address.parse().unwrap();
        let send = || {
            let socket = Socket::open(Links::open().unwrap().index("way").unwrap(), Protocol::Arp).unwrap();
            let start = Instant::now();
            let mut sent = 0_usize;
            while start.elapsed() < time {
                let number = sent.to_be_bytes();
                let forged = [2, 0xff, number[4], number[5], number[6], number[7]];
                let frame = match sent % 3 {
                    0 => Arp::announcement(Operation::Reply, forged, address),
                    1 => Arp::announcement(Operation::Request, forged, address),
                    _ => Arp::probe(forged, address),
                };
                // A queue that is full loses it.
                let _ = socket.send(&frame.frame(BROADCAST));
                sent += 1;
            }
            sent
        };
        self.client.run(send).unwrap()
    }

    /// Waits until one Node alone answers for an address, and so for a while; its number among the Nodes.
    #[track_caller]
    pub(crate) fn owner(&self, address: &str) -> usize {
        let start = Instant::now();
        let mut last = BTreeSet::new();
        loop {
            let now = self.answers(address);
            if now.len() == 1 && now == last {
                return usize::from(*now.first().unwrap()) - 1;
            }
            last = now;
            assert!(start.elapsed() < PATIENCE, "{address} is answered for by {last:?}\n{}", self.logs());
        }
    }

    /// Waits until an address is answered for by this Node alone.
    #[track_caller]
    pub(crate) fn wait_for_owner(&self, address: &str, node: usize) {
        self.wait(&format!("n{} has {address}", node + 1), || self.owner(address) == node);
    }

    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "not in time: {what}\n{}", self.logs());
            sleep(Duration::from_millis(20));
        }
    }

    /// Which Node answers at port 80 of an address, if one does soon.
    pub(crate) fn connect(&self, address: &str, limit: Duration) -> Option<String> {
        let to = SocketAddr::new(address.parse().unwrap(), 80);
        self.client.run(|| connect(to, limit)).unwrap()
    }
}

impl Lab {
    /// Connects again and again until the right Node answers, and a little longer: the longest time in which none did.
    #[track_caller]
    pub(crate) fn longest_gap(&self, address: &str, right: impl Fn(&String) -> bool) -> Duration {
        let (start, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
        let mut since = None;
        while since.is_none_or(|since: Instant| since.elapsed() < Duration::from_millis(500)) {
            assert!(start.elapsed() < PATIENCE, "the right Node does not answer\n{}", self.logs());
            let Some(name) = self.connect(address, Duration::from_millis(20)) else { continue };
            longest = longest.max(last.elapsed());
            last = Instant::now();
            since = if right(&name) { since.or(Some(last)) } else { None };
        }
        longest
    }
}

fn connect(to: SocketAddr, limit: Duration) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&to, limit).ok()?;
    stream.set_read_timeout(Some(limit)).unwrap();
    let mut name = String::new();
    stream.read_to_string(&mut name).ok().map(|_| name)
}

/// Asks everybody, as `arping` does, and hears for a moment who answers.
fn ask(address: IpAddr) -> BTreeSet<u8> {
    let mut links = Links::open().unwrap();
    let link = links.find("way").unwrap().unwrap();
    let protocol = if address.is_ipv4() { Protocol::Arp } else { Protocol::Ndp };
    let mut socket = Socket::open(link.index, protocol).unwrap();
    socket.send(&question(address, link.hardware)).unwrap();
    // One who is busy takes longer; whoever else answers does so soon after.
    let mut end = Instant::now() + Duration::from_secs(1);
    let mut found = BTreeSet::new();
    while Instant::now() < end {
        match socket.receive().unwrap().map(|frame| answer(frame, address)) {
            Some(Some(hardware)) => {
                found.insert(hardware[5]);
                end = end.min(Instant::now() + Duration::from_millis(100));
            }
            Some(None) => {}
            None => sleep(Duration::from_millis(2)),
        }
    }
    found
}

fn question(address: IpAddr, ours: Hardware) -> Vec<u8> {
    match address {
        IpAddr::V4(target) => {
            let (operation, sender) = (Operation::Request, CLIENT[0].parse().unwrap());
            Arp { operation, hardware: ours, sender, target_hardware: [0; 6], target }.frame(BROADCAST)
        }
        IpAddr::V6(target) => Solicitation { hardware: ours, source: CLIENT[1].parse().unwrap(), target }.frame(),
    }
}

/// Who answers us; announcements to everybody are none.
fn answer(frame: &[u8], address: IpAddr) -> Option<Hardware> {
    match address {
        IpAddr::V4(address) => Arp::read(frame)
            .filter(|arp| arp.sender == address && arp.target == CLIENT[0].parse::<std::net::Ipv4Addr>().unwrap())
            .map(|arp| arp.hardware),
        IpAddr::V6(address) => match Ndp::read(frame)? {
            Ndp::Advertisement(said) if said.target == address && said.solicited => Some(said.hardware),
            _ => None,
        },
    }
}
