//! A Node, Pods and clients in namespaces of the guest, all of them threads of the test.
//!
//! ```text
//! out  172.30.0.100 fd30::100 --- eth0 172.30.0.11 fd30::11 [node] 10.50.1.1 -- p1 10.50.1.11, p2 10.50.1.12   of Node n1
//! far  172.31.0.200           --- eth1 172.31.0.11                           -- p3 10.50.2.13                  of Node n2
//! ```
//!
//! Every Pod answers on port 8080 with its name and who it sees: TCP, then line by line what it gets; UDP; see `sctp` too.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use fairlead_kernel::link::{Links, Prefix, Route};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::sysctl;

/// How long a client waits for an answer that should come: the guest is slow, and may be one of many.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long it waits for one that should not.
const IMPATIENCE: Duration = Duration::from_secs(2);

pub(crate) const NODE: [&str; 2] = ["172.30.0.11", "fd30::11"];
/// The names of Pods, with their addresses.
pub(crate) const PODS: [(&str, &str, &str); 3] = [
    ("p1", "10.50.1.11", "fd50:0:0:1::11"),
    ("p2", "10.50.1.12", "fd50:0:0:1::12"),
    ("p3", "10.50.2.13", "fd50:0:0:2::13"),
];
const CLIENTS: [(&str, [&str; 2], [&str; 2]); 2] =
    [("out", ["172.30.0.100", "fd30::100"], NODE), ("far", ["172.31.0.200", "fd31::200"], ["172.31.0.11", "fd31::11"])];

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip(address), port)
}

/// All of it.
pub(crate) struct Lab {
    pub(crate) node: Arc<Namespace>,
    others: Vec<(&'static str, Arc<Namespace>)>,
}

/// What came of an attempt: an answer, or how it was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// Who answered, and whom that saw.
    Answer {
        from: String,
        sees: IpAddr,
    },
    Refused,
    Nothing,
}

impl Came {
    pub(crate) fn from(&self) -> &str {
        match self {
            Came::Answer { from, .. } => from,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(crate) fn sees(&self) -> IpAddr {
        match self {
            Came::Answer { sees, .. } => *sees,
            other => panic!("no answer: {other:?}"),
        }
    }

    fn read(line: &str) -> Came {
        let Some((from, sees)) = line.trim().split_once(' ') else { return Came::Nothing };
        let sees: IpAddr = sees.parse().unwrap();
        Came::Answer { from: from.to_owned(), sees: sees.to_canonical() }
    }

    fn denied(error: &std::io::Error) -> Came {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Came::Refused,
            _ => Came::Nothing,
        }
    }
}

/// A connection that stays open.
pub(crate) struct Open {
    stream: BufReader<TcpStream>,
    pub(crate) from: String,
}

impl Open {
    /// Whether what is sent comes back.
    pub(crate) fn is_alive(&mut self) -> bool {
        let sent = self.stream.get_mut().write_all(b"still there?\n");
        let mut line = String::new();
        sent.is_ok() && self.stream.read_line(&mut line).is_ok() && line == "still there?\n"
    }

    /// Ends the connection the hard way: what comes in unread makes the kernel reset it.
    pub(crate) fn abort(mut self) {
        let _ = self.stream.get_mut().write_all(b"bye\n");
        std::thread::sleep(Duration::from_millis(300));
    }
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let node = Arc::new(Namespace::create("node").unwrap());
        let lo = || {
            let mut links = Links::open().unwrap();
            let lo = links.index("lo").unwrap();
            links.set_up(lo).unwrap();
        };
        node.run(|| {
            lo();
            for parameter in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
                sysctl::write(parameter, "1").unwrap();
            }
            // Every refusal is to be seen.
            sysctl::write("net.ipv4.icmp_ratelimit", "0").unwrap();
            sysctl::write("net.ipv6.icmp.ratelimit", "0").unwrap();
        })
        .unwrap();
        let mut lab = Lab { node, others: Vec::new() };
        for (name, addresses, gateways) in CLIENTS {
            let outer = if name == "out" { "eth0" } else { "eth1" };
            lab.join(name, outer, addresses, gateways, (24, 64));
        }
        lab.tool("ip route add default via 172.30.0.100; ip -6 route add default via fd30::100");
        for (name, v4, v6) in PODS {
            lab.join(name, &format!("fl{name}"), [v4, v6], ["10.50.1.1", "fd50:0:0:1::1"], (32, 128));
            lab.run(name, move || serve(name));
        }
        lab
    }

    /// Adds a namespace that reaches all others through the Node.
    fn join(&mut self, name: &'static str, outer: &str, addresses: [&str; 2], gateways: [&str; 2], lengths: (u8, u8)) {
        let namespace = Arc::new(Namespace::create(name).unwrap());
        let prefix = |text: &str| {
            let address = ip(text);
            Prefix { address, length: if address.is_ipv4() { lengths.0 } else { lengths.1 } }
        };
        self.node
            .run(|| {
                let mut links = Links::open().unwrap();
                links.add_veth(outer, "eth0p", Some(namespace.as_fd())).unwrap();
                let index = links.index(outer).unwrap();
                links.set_up(index).unwrap();
                for (gateway, address) in gateways.into_iter().zip(addresses) {
                    links.add_address(index, prefix(gateway)).unwrap();
                    if lengths.0 == 32 {
                        let destination = Prefix::host(ip(address));
                        links
                            .add_route(&Route { destination, gateway: None, link: Some(index), source: None })
                            .unwrap();
                    }
                }
            })
            .unwrap();
        namespace
            .run(|| {
                let mut links = Links::open().unwrap();
                for link in ["lo", "eth0p"] {
                    let index = links.index(link).unwrap();
                    links.set_up(index).unwrap();
                }
                let index = links.index("eth0p").unwrap();
                for (gateway, address) in gateways.into_iter().zip(addresses) {
                    links.add_address(index, prefix(address)).unwrap();
                    let route = |destination, gateway| Route { destination, gateway, link: Some(index), source: None };
                    if lengths.0 == 32 {
                        links.add_route(&route(Prefix::host(ip(gateway)), None)).unwrap();
                    }
                    let any = if ip(gateway).is_ipv4() { ip("0.0.0.0") } else { ip("::") };
                    links.add_route(&route(Prefix { address: any, length: 0 }, Some(ip(gateway)))).unwrap();
                }
            })
            .unwrap();
        self.others.push((name, namespace));
    }

    pub(crate) fn namespace(&self, name: &str) -> &Arc<Namespace> {
        let found = self.others.iter().find(|(other, _)| *other == name).map(|(_, namespace)| namespace);
        found.unwrap_or(&self.node)
    }

    /// Runs something in a namespace, for as long as it runs.
    fn run(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        let namespace = self.namespace(name).clone();
        std::thread::spawn(move || {
            namespace.enter().unwrap();
            work();
        });
    }

    /// Starts a program in a namespace.
    pub(crate) fn spawn(&self, name: &str, command: &mut Command) -> Child {
        self.namespace(name).run(|| command.spawn().unwrap()).unwrap()
    }

    /// Runs a program on the Node and returns what it prints.
    pub(crate) fn tool(&self, line: &str) -> String {
        self.tool_in("node", line)
    }

    pub(crate) fn tool_in(&self, name: &str, line: &str) -> String {
        let output = self.namespace(name).run(|| Command::new("sh").args(["-c", line]).output().unwrap()).unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{line}: {text}");
        text
    }

    /// One connection, or one datagram with its answer.
    pub(crate) fn tcp(&self, from: &str, to: SocketAddr) -> Came {
        self.namespace(from).run(|| tcp(to, PATIENCE).map_or_else(|came| came, |open| open.1)).unwrap()
    }

    /// Whether a connection finds nothing, not even a refusal.
    pub(crate) fn is_lost(&self, from: &str, to: SocketAddr) -> bool {
        self.namespace(from).run(|| matches!(tcp(to, IMPATIENCE), Err(Came::Nothing))).unwrap()
    }

    pub(crate) fn open(&self, from: &str, to: SocketAddr) -> Open {
        self.namespace(from)
            .run(|| tcp(to, PATIENCE).unwrap_or_else(|came| panic!("no connection: {came:?}")).0)
            .unwrap()
    }

    pub(crate) fn udp(&self, from: &str, to: SocketAddr) -> Came {
        self.namespace(from).run(|| udp(&udp_socket(to), PATIENCE)).unwrap()
    }

    /// How often each answered, of so many connections one after the other.
    pub(crate) fn spread(&self, from: &str, to: SocketAddr, count: usize) -> Vec<(String, usize)> {
        count_each((0..count).map(|_| self.tcp(from, to).from().to_owned()))
    }

    /// Everything in the kernel of the Node that could be ours, as text.
    pub(crate) fn inventory(&self) -> String {
        ["ip -o link", "ip -o addr", "ip route show table all", "ip rule", "nft list tables", "ipvsadm -Ln"]
            .map(|line| self.tool(line))
            .join("\n")
    }

    /// What is in the kernel, for people who look at a check that failed.
    pub(crate) fn state(&self) -> String {
        [
            "ip -o addr show dev fl-ipvs0 || true",
            "ipvsadm -Ln",
            "ipvsadm -Lcn",
            "nft list ruleset",
            "conntrack -L || true",
        ]
        .map(|line| self.tool(line))
        .join("\n")
    }

    /// Takes away what a check may have left.
    pub(crate) fn clean(&self) {
        self.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap();
        self.tool("ipvsadm -C; conntrack -F 2>/dev/null");
    }
}

/// How often each is there, in order.
pub(crate) fn count_each(names: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().collect()
}

/// The names and numbers of a spread.
pub(crate) fn each(counts: &[(&str, usize)]) -> Vec<(String, usize)> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Answers for a Pod.
fn serve(name: &'static str) {
    let udp = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 8080)).unwrap();
    let tcp = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 8080)).unwrap();
    let namespace = Namespace::current().unwrap();
    std::thread::spawn(move || {
        namespace.enter().unwrap();
        let mut buffer = [0; 64];
        while let Ok((_, from)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(format!("{name} {}\n", from.ip()).as_bytes(), from);
        }
    });
    for stream in tcp.incoming() {
        std::thread::spawn(move || talk(name, stream.unwrap()));
    }
}

fn talk(name: &str, mut stream: TcpStream) {
    let Ok(peer) = stream.peer_addr() else { return };
    let _ = stream.write_all(format!("{name} {}\n", peer.ip()).as_bytes());
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
        let _ = stream.write_all(line.as_bytes());
        line.clear();
    }
}

fn tcp(to: SocketAddr, patience: Duration) -> Result<(Open, Came), Came> {
    let stream = TcpStream::connect_timeout(&to, patience).map_err(|error| Came::denied(&error))?;
    stream.set_read_timeout(Some(patience)).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).map_err(|error| Came::denied(&error))?;
    let came = Came::read(&line);
    let from = if let Came::Answer { from, .. } = &came { from.clone() } else { String::new() };
    Ok((Open { stream, from }, came))
}

pub(crate) fn udp_socket(to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv4() { ip("0.0.0.0") } else { ip("::") };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect(to).unwrap();
    socket
}

/// A datagram by a socket that may have sent others.
pub(crate) fn udp(socket: &UdpSocket, patience: Duration) -> Came {
    socket.set_read_timeout(Some(patience)).unwrap();
    let mut buffer = [0; 64];
    if let Err(error) = socket.send(b"hello") {
        return Came::denied(&error);
    }
    match socket.recv(&mut buffer) {
        Ok(length) => Came::read(&String::from_utf8_lossy(&buffer[..length])),
        Err(error) => Came::denied(&error),
    }
}
