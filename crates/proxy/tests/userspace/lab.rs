//! A Node with a Pod, three endpoints and a neighbour, each where its packets really pass the Node's rules.
//!
//! ```text
//! client 10.50.1.5 ---+                          +--- outside 172.30.0.1
//!                     +--- node 172.30.0.11 -----+
//! backends 10.50.1.11, .12, .13 ---+    VIP 10.96.0.10, node port 30080
//! ```

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_kernel::netns::Namespace;
use fairlead_plan::{Change, LocalDetection, Node, NodePortAddresses, PlanChange, Planner};
use fairlead_proxy::Dataplane;
use fairlead_proxy::userspace::{Options, Userspace};
use serde_json::{Value, json};

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);
/// The Service's addresses.
pub(crate) const VIP: &str = "10.96.0.10:80";
pub(crate) const VIP6: &str = "[fd00:96::10]:80";
/// The last part of the addresses of endpoints.
pub(crate) const ENDPOINTS: [u8; 3] = [11, 12, 13];

pub(crate) struct Lab {
    pub(crate) node: Namespace,
    pub(crate) client: Namespace,
    pub(crate) outside: Namespace,
    pub(crate) backends: Namespace,
    pub(crate) planner: Planner,
    pub(crate) mode: Userspace,
}

/// A lab, or nothing where there can be none.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    lab_with(test, Options::default())
}

pub(crate) fn lab_with(test: &str, options: Options) -> Option<Lab> {
    if !fairlead_testkit::need(test, "ip") {
        return None;
    }
    let make = || Namespace::unnamed().ok();
    let (Some(node), Some(client), Some(outside), Some(backends)) = (make(), make(), make(), make()) else {
        fairlead_testkit::need::skip(test, "root");
        return None;
    };
    for namespace in [&node, &client, &outside, &backends] {
        set(namespace, "net/ipv6/conf/all/accept_dad", "0");
        set(namespace, "net/ipv6/conf/default/accept_dad", "0");
        ip(namespace, "link set lo up");
    }
    set(&node, "net/ipv4/ip_forward", "1");
    set(&node, "net/ipv6/conf/all/forwarding", "1");
    wire(&node, "flclient", &client, &["10.50.1.5", "fd50::5"]);
    let all = ENDPOINTS.map(|last| [format!("10.50.1.{last}"), format!("fd50::{last}")]).concat();
    wire(&node, "flbackends", &backends, &all.iter().map(String::as_str).collect::<Vec<_>>());
    wire_outside(&node, &outside);
    let planner = Planner::new(this_node());
    let mode = node.run(|| Userspace::open(options)).unwrap().unwrap();
    let mut lab = Lab { node, client, outside, backends, planner, mode };
    lab.change([]);
    Some(lab)
}

fn this_node() -> Node {
    let addresses = ["172.30.0.11", "fd30::11", "10.50.0.1", "fd50::1", "127.0.0.1", "::1"];
    let parse = |text: &str| text.parse::<IpAddr>().unwrap();
    Node {
        name: "n1".to_owned(),
        ips: vec![parse("172.30.0.11"), parse("fd30::11")],
        addresses: addresses.map(parse).into(),
        detection: LocalDetection::Ranges(vec!["10.50.0.0/16".parse().unwrap(), "fd50::/64".parse().unwrap()]),
        node_port_addresses: NodePortAddresses::Ranges(Vec::new()),
        localhost_node_ports: true,
        ..Node::default()
    }
}

/// Runs `ip` inside.
pub(crate) fn ip(namespace: &Namespace, words: &str) {
    run(namespace, "ip", words);
}

/// Runs a program inside, and returns what it prints.
pub(crate) fn run(namespace: &Namespace, program: &str, words: &str) -> String {
    let output = namespace.run(|| Command::new(program).args(words.split(' ')).output()).unwrap().unwrap();
    assert!(output.status.success(), "{program} {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn set(namespace: &Namespace, name: &str, value: &str) {
    namespace.run(|| std::fs::write(format!("/proc/sys/{name}"), value)).unwrap().unwrap();
}

/// A routed link between the Node and Pods.
fn wire(node: &Namespace, name: &str, pod: &Namespace, addresses: &[&str]) {
    use std::os::fd::AsFd;
    node.run(|| fairlead_kernel::link::Links::open().unwrap().add_veth(name, "eth0", Some(pod.as_fd())))
        .unwrap()
        .unwrap();
    ip(node, &format!("link set {name} up"));
    ip(node, &format!("address replace 10.50.0.1/32 dev {name}"));
    ip(node, &format!("-6 address replace fd50::1/128 dev {name}"));
    ip(pod, "link set eth0 up");
    for address in addresses {
        let (length, gateway, flag) =
            if address.contains(':') { (128, "fd50::1", "-6") } else { (32, "10.50.0.1", "-4") };
        ip(pod, &format!("{flag} address add {address}/{length} dev eth0"));
        ip(pod, &format!("{flag} route replace {gateway} dev eth0"));
        ip(pod, &format!("{flag} route replace default via {gateway} dev eth0"));
        ip(node, &format!("{flag} route add {address}/{length} dev {name}"));
    }
}

fn wire_outside(node: &Namespace, outside: &Namespace) {
    use std::os::fd::AsFd;
    node.run(|| fairlead_kernel::link::Links::open().unwrap().add_veth("eth0", "eth0", Some(outside.as_fd())))
        .unwrap()
        .unwrap();
    for (namespace, last, other) in [(node, 11, 1), (outside, 1, 11)] {
        ip(namespace, "link set eth0 up");
        ip(namespace, &format!("address add 172.30.0.{last}/24 dev eth0"));
        ip(namespace, &format!("-6 address add fd30::{last}/64 dev eth0"));
        ip(namespace, &format!("route add default via 172.30.0.{other}"));
        ip(namespace, &format!("-6 route add default via fd30::{other}"));
    }
}

impl Lab {
    /// Takes changes of the cluster.
    pub(crate) fn change(&mut self, changes: impl IntoIterator<Item = Change>) -> PlanChange {
        let change = self.planner.apply(changes);
        let (mode, plan) = (&mut self.mode, self.planner.plan());
        self.node.run(|| mode.apply(plan, &change)).unwrap().unwrap();
        change
    }

    /// Everything anew.
    pub(crate) fn load(&mut self) {
        let (mode, plan) = (&mut self.mode, self.planner.plan());
        self.node.run(|| mode.load(plan)).unwrap().unwrap();
    }

    /// The Service `web` on both families, with endpoints by the last part of their addresses.
    pub(crate) fn web(&mut self, spec: Value, endpoints: &[u8]) {
        self.change([service(spec)]);
        self.endpoints(endpoints);
    }

    /// Other endpoints.
    pub(crate) fn endpoints(&mut self, endpoints: &[u8]) {
        self.change([slice("10.50.1.", endpoints), slice("fd50::", endpoints)]);
    }

    /// A connection of the Pod.
    pub(crate) fn connect(&self, to: &str) -> TcpStream {
        connect(&self.client, to).unwrap()
    }

    /// Who answers new connections of the Pod.
    pub(crate) fn who(&self, to: &str, times: usize) -> Vec<u8> {
        (0..times).map(|_| who(self.connect(to))).collect()
    }

    /// Waits for something that another thread does.
    pub(crate) fn wait(&self, what: &str, mut done: impl FnMut(&Userspace) -> bool) {
        let end = Instant::now() + LIMIT;
        while !done(&self.mode) {
            assert!(Instant::now() < end, "{what}: {:?}", self.mode.carried());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A connection from somewhere.
pub(crate) fn connect(from: &Namespace, to: &str) -> std::io::Result<TcpStream> {
    let to: SocketAddr = to.parse().unwrap();
    let stream = from.run(|| TcpStream::connect_timeout(&to, LIMIT)).unwrap()?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    Ok(stream)
}

/// What an endpoint says at once is the last part of its address.
pub(crate) fn who(mut stream: TcpStream) -> u8 {
    let mut name = [0];
    stream.read_exact(&mut name).unwrap();
    name[0]
}

/// A Service with TCP port 80 and UDP port 53; what is said of its spec comes on top.
pub(crate) fn service(spec: Value) -> Change {
    let mut all = json!({
        "type": "NodePort",
        "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00:96::10"],
        "ipFamilies": ["IPv4", "IPv6"],
        "ports": [
            {"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"},
            {"name": "dns", "port": 53, "nodePort": 30053, "protocol": "UDP"},
        ],
    });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "web", "namespace": "default"}, "spec": all});
    let object = serde_json::from_value(object).unwrap();
    Change::Service(Key::new("default", "web"), Some(Arc::new(object)))
}

fn slice(prefix: &str, endpoints: &[u8]) -> Change {
    let family = if prefix.contains(':') { "IPv6" } else { "IPv4" };
    let endpoints: Vec<Value> =
        endpoints.iter().map(|last| json!({"addresses": [format!("{prefix}{last}")], "nodeName": "n1"})).collect();
    let object = json!({
        "metadata": {
            "name": format!("web-{family}"), "namespace": "default",
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": family,
        "ports": [
            {"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "dns", "port": 5353, "protocol": "UDP"},
        ],
        "endpoints": endpoints,
    });
    let object = serde_json::from_value(object).unwrap();
    Change::Slice(Key::new("default", format!("web-{family}")), Some(Arc::new(object)))
}

/// Endpoints that say who they are, then send back what they get until its end.
pub(crate) fn serve(lab: &Lab, endpoints: &[u8]) {
    for last in endpoints.iter().copied() {
        for at in [format!("10.50.1.{last}:8080"), format!("[fd50::{last}]:8080")] {
            let listener = lab.backends.run(|| TcpListener::bind(at)).unwrap().unwrap();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    std::thread::spawn(move || echo(stream, last));
                }
            });
        }
        for at in [format!("10.50.1.{last}:5353"), format!("[fd50::{last}]:5353")] {
            let socket = lab.backends.run(|| UdpSocket::bind(at)).unwrap().unwrap();
            std::thread::spawn(move || answer(&socket, last));
        }
    }
}

fn echo(mut stream: TcpStream, name: u8) -> Option<()> {
    stream.write_all(&[name]).ok()?;
    let mut buffer = [0; 64 << 10];
    loop {
        let read = stream.read(&mut buffer).ok()?;
        if read == 0 {
            return None;
        }
        stream.write_all(&buffer[..read]).ok()?;
    }
}

/// Says who it is, and repeats.
fn answer(socket: &UdpSocket, name: u8) {
    let mut buffer = [0; 64 << 10];
    while let Ok((length, from)) = socket.recv_from(&mut buffer[1..]) {
        buffer[0] = name;
        let _ = socket.send_to(&buffer[..=length], from);
    }
}

/// How many descriptors this process has. Tests that count run alone.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
