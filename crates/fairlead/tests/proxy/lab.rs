//! A Node with clients and endpoints beside it, each where its packets really pass the Node's rules.
//!
//! ```text
//! clients 10.50.1.100 and up ---+--- node 172.30.0.11 ---+--- endpoints 10.50.1.11 and up
//!              Service web 10.96.0.10:80, sticky 10.96.0.11:80 (a client stays)
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::need;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test.
pub(crate) const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
pub(crate) const WEB: &str = "10.96.0.10:80";
pub(crate) const STICKY: &str = "10.96.0.11:80";
/// The last part of the addresses of endpoints, which is the name each of them says.
pub(crate) const ENDPOINTS: [u8; 8] = [11, 12, 13, 14, 15, 16, 17, 18];
/// The last part of the addresses of clients.
pub(crate) const CLIENTS: [u8; 8] = [100, 101, 102, 103, 104, 105, 106, 107];

pub(crate) struct Lab {
    pub(crate) node: Namespace,
    pub(crate) clients: Namespace,
    endpoints: Namespace,
    pub(crate) home: TempDir,
    /// Where the proxy finds programs, if not where everybody does.
    programs: Option<PathBuf>,
}

/// A lab, or nothing where there can be none.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    if !["root", "ip", "nft", "iptables", "conntrack"].iter().all(|what| need::need(test, what)) {
        return None;
    }
    let [node, clients, endpoints] = [(); 3].map(|()| Namespace::unnamed().unwrap());
    for namespace in [&node, &clients, &endpoints] {
        for name in ["all", "default"] {
            set(namespace, &format!("net/ipv6/conf/{name}/accept_dad"), "0");
        }
        tool(namespace, "ip link set lo up");
    }
    set(&node, "net/ipv4/ip_forward", "1");
    set(&node, "net/ipv6/conf/all/forwarding", "1");
    tool(&node, "ip address add 172.30.0.11/32 dev lo");
    wire(&node, "flclients", &clients, &CLIENTS);
    wire(&node, "flendpoints", &endpoints, &ENDPOINTS);
    let lab = Lab { node, clients, endpoints, home: tempfile::tempdir().unwrap(), programs: None };
    ENDPOINTS.iter().for_each(|last| lab.serve(*last));
    lab.write_objects(&ENDPOINTS[..3]);
    Some(lab)
}

/// A routed link between the Node and others.
fn wire(node: &Namespace, name: &str, others: &Namespace, addresses: &[u8]) {
    node.run(|| Links::open().unwrap().add_veth(name, "eth0", Some(others.as_fd()))).unwrap().unwrap();
    tool(node, &format!("ip link set {name} up"));
    tool(node, &format!("ip address replace 10.50.0.1/32 dev {name}"));
    tool(others, "ip link set eth0 up");
    for last in addresses {
        tool(others, &format!("ip address add 10.50.1.{last}/32 dev eth0"));
        tool(node, &format!("ip route add 10.50.1.{last}/32 dev {name}"));
    }
    tool(others, "ip route add 10.50.0.1 dev eth0");
    tool(others, "ip route add default via 10.50.0.1 dev eth0");
}

fn set(namespace: &Namespace, name: &str, value: &str) {
    namespace.run(|| fs::write(format!("/proc/sys/{name}"), value)).unwrap().unwrap();
}

/// Runs a command inside, which must not fail, and returns what it prints.
pub(crate) fn tool(namespace: &Namespace, words: &str) -> String {
    let (fine, text) = try_tool(namespace, words);
    assert!(fine, "{words}: {text}");
    text
}

/// Runs a command inside.
pub(crate) fn try_tool(namespace: &Namespace, words: &str) -> (bool, String) {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let output = namespace.run(|| command.output()).unwrap();
    match output {
        Ok(output) if output.status.success() => (true, String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => (false, String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => (false, error.to_string()),
    }
}

impl Lab {
    /// An endpoint that says its name, then sends back what it gets until its end.
    fn serve(&self, name: u8) {
        let listener = self.endpoints.run(|| TcpListener::bind(format!("10.50.1.{name}:8080"))).unwrap().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::Builder::new().stack_size(64 << 10).spawn(move || echo(stream, name)).unwrap();
            }
        });
    }

    /// Lets the proxy find the old variant of iptables under its usual name.
    pub(crate) fn use_legacy_iptables(&mut self) {
        let folder = self.home.path().join("programs");
        fs::create_dir(&folder).unwrap();
        for (tool, verb) in
            [("iptables", "save"), ("iptables", "restore"), ("ip6tables", "save"), ("ip6tables", "restore")]
        {
            let legacy = need::program(&format!("{tool}-legacy-{verb}")).unwrap();
            std::os::unix::fs::symlink(legacy, folder.join(format!("{tool}-{verb}"))).unwrap();
        }
        self.programs = Some(folder);
    }

    /// The file with the objects of the cluster.
    pub(crate) fn objects(&self) -> PathBuf {
        self.home.path().join("objects.json")
    }

    /// Writes the objects, with these endpoints for both Services.
    pub(crate) fn write_objects(&self, endpoints: &[u8]) {
        let items = [&objects()[..], &[slice("web", endpoints), slice("sticky", endpoints)]].concat();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(self.objects(), list.to_string()).unwrap();
    }

    /// Starts the proxy with the objects of the file and waits until the Service answers.
    pub(crate) fn start(&self, mode: &str, flags: &[&str]) -> Running {
        let objects = self.objects().display().to_string();
        let running = self.spawn(mode, &[&["--manifests", &objects], flags].concat());
        running.wait("the Service answers", || self.who(WEB, CLIENTS[0]).is_ok());
        // Also what comes after the first rules: other modes are removed, health is told.
        running.wait("health is told", || self.healthy());
        running
    }

    /// Starts the proxy.
    pub(crate) fn spawn(&self, mode: &str, flags: &[&str]) -> Running {
        let log = self.home.path().join("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(FAIRLEAD);
        command.args(["proxy", "--proxy-mode", mode, "--hostname-override", "n1", "--bind-address", "172.30.0.11"]);
        command.args(["--cluster-cidr", "10.50.0.0/16"]).args(flags);
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        if let Some(folder) = &self.programs {
            let usual = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{usual}", folder.display()));
        }
        Running { child: self.node.run(|| command.spawn()).unwrap().unwrap(), log }
    }

    /// Whether `/healthz` says that all is well.
    fn healthy(&self) -> bool {
        self.ask(10256, "/healthz").is_ok_and(|answer| answer.contains(" 200 "))
    }

    /// How often the proxy has changed the rules for one family.
    pub(crate) fn syncs(&self) -> usize {
        let text = self.ask(10249, "/metrics").unwrap();
        let line = |line: &str| {
            let rest = line.strip_prefix("kubeproxy_sync_proxy_rules_duration_seconds_count")?;
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        };
        text.lines().filter_map(line).fold(0.0, f64::max) as usize
    }

    /// What the proxy answers on a port of its own.
    fn ask(&self, port: u16, path: &str) -> io::Result<String> {
        let ask = || {
            let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        self.node.run(ask).unwrap()
    }

    /// A connection of a client.
    pub(crate) fn connect(&self, to: &str, client: u8) -> io::Result<TcpStream> {
        self.clients.run(|| connect(to, client)).unwrap()
    }

    /// Which endpoint answers a new connection of a client.
    pub(crate) fn who(&self, to: &str, client: u8) -> io::Result<u8> {
        self.connect(to, client).and_then(|mut stream| name(&mut stream))
    }

    /// What the proxy said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// The rules of nftables, without what they counted.
    pub(crate) fn ruleset(&self) -> String {
        tool(&self.node, "nft -s list ruleset")
    }
}

/// A connection from an address of this thread's namespace. It ends without a trace, so that ports do not run out.
pub(crate) fn connect(to: &str, client: u8) -> io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([10, 50, 1, client], 0)).into())?;
    socket.set_linger(Some(Duration::ZERO))?;
    let to: SocketAddr = to.parse().unwrap();
    socket.connect_timeout(&to.into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What an endpoint says first.
pub(crate) fn name(stream: &mut TcpStream) -> io::Result<u8> {
    let mut name = [0];
    stream.read_exact(&mut name).map(|()| name[0])
}

/// Whether a connection still carries bytes both ways.
pub(crate) fn alive(stream: &mut TcpStream) -> bool {
    let mut back = [0; 4];
    stream.write_all(b"ping").and_then(|()| stream.read_exact(&mut back)).is_ok() && back == *b"ping"
}

fn echo(mut stream: TcpStream, name: u8) -> Option<()> {
    stream.write_all(&[name]).ok()?;
    let mut buffer = [0; 4 << 10];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        stream.write_all(&buffer[..read]).ok()?;
    }
}

/// A proxy that runs. It is ended with this value, as by a crash.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Waits for something that it does.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + LIMIT;
        while !done() {
            assert!(Instant::now() < end, "not within {LIMIT:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as an administrator would; it must end well.
    pub(crate) fn stop(mut self) {
        let done = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{ended}\n{}", self.log());
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Node and the Services.
pub(crate) fn objects() -> Vec<Value> {
    let service = |name: &str, ip: &str, node_port: u16, affinity: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "type": "NodePort", "clusterIP": ip, "clusterIPs": [ip], "sessionAffinity": affinity,
                "ports": [{"name": "http", "port": 80, "nodePort": node_port, "protocol": "TCP"}],
            },
        })
    };
    let address: IpAddr = [172, 30, 0, 11].into();
    vec![
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"addresses": [{"type": "InternalIP", "address": address.to_string()}]},
        }),
        service("web", "10.96.0.10", 30080, "None"),
        service("sticky", "10.96.0.11", 30081, "ClientIP"),
    ]
}

/// The endpoints of a Service.
pub(crate) fn slice(service: &str, endpoints: &[u8]) -> Value {
    let endpoint = |last: &u8| json!({"addresses": [format!("10.50.1.{last}")], "nodeName": "n1"});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-1"), "namespace": "default", "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    })
}
