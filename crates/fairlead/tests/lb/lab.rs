//! A machine on which `fairlead up` runs, with clients on its LAN and backends behind it, each in a network namespace.
//!
//! ```text
//! client 192.0.2.200, 2001:db8::200 --- lan --- machine 192.0.2.100, 2001:db8::100 --- back --- backends 10.50.0.11, .12, fd50::11
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::https::Client;
use fairlead_testkit::{ADMIN_TOKEN, need};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test.
const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The address of the client.
pub(crate) const CLIENT: &str = "192.0.2.200";
/// The addresses of backends.
pub(crate) const BACKENDS: [&str; 3] = ["10.50.0.11", "10.50.0.12", "fd50::11"];

pub(crate) struct Lab {
    pub(crate) machine: Namespace,
    pub(crate) client: Namespace,
    pub(crate) backends: Namespace,
    home: TempDir,
    flags: Vec<String>,
    /// Words before the program, such as `env NAME=VALUE`; they end by becoming the program.
    through: Vec<String>,
    up: Option<Child>,
}

/// A lab, or nothing where there can be none. The flags are those of `fairlead up`, or begin with another command.
pub(crate) fn lab(test: &str, flags: &[&str]) -> Option<Lab> {
    lab_through(test, &[], flags)
}

/// A lab whose program is started through another one.
pub(crate) fn lab_through(test: &str, through: &[&str], flags: &[&str]) -> Option<Lab> {
    if !["root", "ip", "nft"].iter().all(|what| need::need(test, what)) {
        return None;
    }
    let [machine, client, backends] = [(); 3].map(|()| Namespace::unnamed().unwrap());
    for namespace in [&machine, &client, &backends] {
        tool(namespace, "ip link set lo up");
    }
    wire(&machine, "lan", &client, ["192.0.2.100/24", "2001:db8::100/64"], &["192.0.2.200/24", "2001:db8::200/64"]);
    let own = BACKENDS.map(|ip| if ip.contains(':') { format!("{ip}/64") } else { format!("{ip}/24") });
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    wire(&machine, "back", &backends, ["10.50.0.1/24", "fd50::1/64"], &own);
    tool(&backends, "ip route add default via 10.50.0.1");
    tool(&backends, "ip -6 route add default via fd50::1");
    for name in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
        machine.run(|| fs::write(format!("/proc/sys/{name}"), "1")).unwrap().unwrap();
    }
    BACKENDS.iter().for_each(|ip| serve(&backends, ip.parse().unwrap()));
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
    let [flags, through] = [flags, through].map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    let mut lab = Lab { machine, client, backends, home, flags, through, up: None };
    lab.start();
    Some(lab)
}

/// A link between the machine and others.
pub(crate) fn wire(machine: &Namespace, name: &str, others: &Namespace, near: [&str; 2], far: &[&str]) {
    machine.run(|| Links::open().unwrap().add_veth(name, "eth0", Some(others.as_fd()))).unwrap().unwrap();
    tool(machine, &format!("ip link set {name} up"));
    tool(others, "ip link set eth0 up");
    near.iter().for_each(|address| add(machine, name, address));
    far.iter().for_each(|address| add(others, "eth0", address));
}

fn add(namespace: &Namespace, link: &str, address: &str) {
    let nodad = if address.contains(':') { " nodad" } else { "" };
    tool(namespace, &format!("ip address add {address} dev {link}{nodad}"));
}

/// Runs a command inside, which must not fail, and returns what it prints.
pub(crate) fn tool(namespace: &Namespace, words: &str) -> String {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let output = namespace.run(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A backend: over TCP it says its address, who asks, and the first line it hears; over UDP the same.
pub(crate) fn serve(namespace: &Namespace, ip: IpAddr) {
    let (tcp, udp) =
        namespace.run(|| (TcpListener::bind((ip, 8080)).unwrap(), UdpSocket::bind((ip, 8080)).unwrap())).unwrap();
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            std::thread::spawn(move || answer(stream, ip));
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut buffer) {
            let heard = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let _ = udp.send_to(format!("{ip} hears {} say {heard}", from.ip()).as_bytes(), from);
        }
    });
}

fn answer(mut stream: TcpStream, ip: IpAddr) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let (mut heard, from) = (Vec::new(), stream.peer_addr().ok()?.ip());
    let mut byte = [0];
    while stream.read(&mut byte).ok()? == 1 && byte[0] != b'\n' {
        heard.push(byte[0]);
    }
    let heard = String::from_utf8_lossy(&heard).trim_end().to_owned();
    stream.write_all(format!("{ip} hears {from} say {heard}").as_bytes()).ok()?;
    // What is not read when a socket is closed makes it end with a reset, which may overtake the answer.
    stream.shutdown(Shutdown::Write).ok()?;
    stream.read_to_end(&mut Vec::new()).ok().map(drop)
}

impl Lab {
    /// Starts `fairlead up`, and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.spawn();
        self.wait("the API answers", || {
            fs::read(self.home.path().join("data/pki/ca.crt")).is_ok() && self.try_api("GET", "/readyz", "").is_some()
        });
    }

    /// Starts `fairlead up`, and does not wait.
    pub(crate) fn spawn(&mut self) {
        let log = File::options().create(true).append(true).open(self.home.path().join("log")).unwrap();
        let words: Vec<&str> = self.through.iter().map(String::as_str).chain([FAIRLEAD]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let role = if self.flags.first().is_some_and(|flag| flag == "server") { &[][..] } else { &["up"] };
        command.args(role).args(&self.flags);
        command.args(["--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="]);
        command.arg("--token-auth-file").arg(self.home.path().join("tokens.csv"));
        command.arg("--data-dir").arg(self.home.path().join("data"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.up = Some(self.machine.run(|| command.spawn()).unwrap().unwrap());
    }

    /// How `fairlead up` has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.up.as_mut().and_then(|up| up.try_wait().unwrap())
    }

    /// Process number of `fairlead up`.
    pub(crate) fn pid(&self) -> u32 {
        self.up.as_ref().unwrap().id()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut up) = self.up.take() {
            up.kill().unwrap();
            up.wait().unwrap();
        }
    }

    /// A path in a directory of the lab's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Status and body of an answer of the API; `None`: there was no answer.
    pub(crate) fn try_api(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let authority = fs::read(self.path("data/pki/ca.crt")).ok()?;
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], 6443)), &authority, ADMIN_TOKEN);
        let answer = self.machine.run(|| client.request(method, path, body)).unwrap().ok()?;
        Some((answer.status, answer.body))
    }

    /// Asks the API, which must not refuse.
    #[track_caller]
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.try_api(method, path, &body).unwrap_or_else(|| panic!("no answer:\n{}", self.log()));
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What the API says to a new Service.
    #[track_caller]
    pub(crate) fn post(&self, service: &Value) -> (u16, String) {
        self.try_api("POST", SERVICES, &service.to_string()).unwrap_or_else(|| panic!("no answer:\n{}", self.log()))
    }

    /// Makes a Service of type LoadBalancer without a selector, with a port 80 and some fields replaced.
    #[track_caller]
    pub(crate) fn create(&self, name: &str, more: &Value) -> Value {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "targetPort": 8080}]},
        });
        merge(&mut service, more);
        self.api("POST", SERVICES, &service)
    }

    /// Changes a Service.
    #[track_caller]
    pub(crate) fn change(&self, name: &str, more: &Value) {
        loop {
            let mut service = self.service(name);
            merge(&mut service, more);
            let path = format!("{SERVICES}/{name}");
            match self.try_api("PUT", &path, &service.to_string()) {
                // Somebody was faster.
                Some((409, _)) => {}
                Some((200, _)) => return,
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    /// A Service as it is.
    #[track_caller]
    pub(crate) fn service(&self, name: &str) -> Value {
        self.api("GET", &format!("{SERVICES}/{name}"), &Value::Null)
    }

    /// `192.0.2.1/VIP`, with commas between.
    #[track_caller]
    pub(crate) fn ingress(&self, name: &str) -> String {
        let service = self.service(name);
        let all = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        let text = |one: &Value, field: &str| one[field].as_str().unwrap_or("-").to_owned();
        all.iter().map(|one| format!("{}/{}", text(one, "ip"), text(one, "ipMode"))).collect::<Vec<_>>().join(",")
    }

    /// Waits until a Service has these addresses.
    #[track_caller]
    pub(crate) fn becomes(&self, name: &str, expected: &str) {
        let mut last = String::new();
        self.wait_or(
            || format!("{name} should become {expected:?}, not {:?}", self.ingress(name)),
            || {
                last = self.ingress(name);
                last == expected
            },
        );
    }

    /// Gives a Service backends.
    #[track_caller]
    pub(crate) fn back(&self, name: &str, port: &str, backends: &[&str]) {
        for (family, kind) in [(false, "IPv4"), (true, "IPv6")] {
            let own: Vec<&&str> = backends.iter().filter(|ip| ip.contains(':') == family).collect();
            if own.is_empty() {
                continue;
            }
            let endpoint = |ip: &&&str| json!({"addresses": [ip], "nodeName": "here", "conditions": {"ready": true}});
            let protocols = if port == "both" { vec!["TCP", "UDP"] } else { vec!["TCP"] };
            let named = |protocol: &&str| {
                let name = if port == "both" { protocol.to_lowercase() } else { port.to_owned() };
                json!({"name": name, "port": 8080, "protocol": protocol})
            };
            let slice = json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind,
                "metadata": {"generateName": format!("{name}-"), "labels": {"kubernetes.io/service-name": name}},
                "endpoints": own.iter().map(endpoint).collect::<Vec<_>>(),
                "ports": protocols.iter().map(named).collect::<Vec<_>>(),
            });
            self.api("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice);
        }
    }

    /// What a backend says to the client over TCP; `None`: nobody answers.
    pub(crate) fn ask(&self, to: &str) -> Option<String> {
        let to: SocketAddr = to.parse().unwrap();
        self.client.run(|| ask(to).ok()).unwrap()
    }

    /// Asks from the machine itself what a backend says over TCP; `None`: no answer.
    pub(crate) fn ask_here(&self, to: &str) -> Option<String> {
        let to: SocketAddr = to.parse().unwrap();
        self.machine.run(|| ask(to).ok()).unwrap()
    }

    /// Returns what the page of the balancer shows at a path.
    pub(crate) fn page(&self, path: &str) -> String {
        let page = || -> io::Result<String> {
            let mut stream = TcpStream::connect("127.0.0.1:10253")?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: page\r\nconnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text).map(|_| text)
        };
        self.machine.run(page).unwrap().unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The same over UDP.
    pub(crate) fn ask_udp(&self, to: &str) -> Option<String> {
        let to: SocketAddr = to.parse().unwrap();
        let asked = || -> io::Result<String> {
            let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.send_to(b"hello", to)?;
            let mut buffer = [0; 512];
            let length = socket.recv(&mut buffer)?;
            Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        self.client.run(|| asked().ok()).unwrap()
    }

    /// Waits until a backend answers so.
    #[track_caller]
    pub(crate) fn answers(&self, to: &str, expected: &str) {
        let mut last = None;
        self.wait_or(
            || format!("{to} should answer {expected:?}, not {:?}", self.ask(to)),
            || {
                last = self.ask(to);
                last.as_ref().is_some_and(|answer| answer.contains(expected))
            },
        );
    }

    /// Messages of Events of a Service with a reason.
    pub(crate) fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let fields = format!("involvedObject.name%3D{name},reason%3D{reason}");
        let list = self.api("GET", &format!("/api/v1/namespaces/default/events?fieldSelector={fields}"), &Value::Null);
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until an Event says so.
    #[track_caller]
    pub(crate) fn told(&self, name: &str, reason: &str, message: &str) {
        self.wait_or(
            || format!("{name}: {message:?} is not in {:?}", self.events(name, reason)),
            || self.events(name, reason).iter().any(|event| event.contains(message)),
        );
    }

    /// What `fairlead` prints on the machine.
    pub(crate) fn fairlead(&self, words: &[&str]) -> String {
        let mut command = Command::new(FAIRLEAD);
        command.args(words).env("KUBECONFIG", self.path("data/admin.kubeconfig")).current_dir("/");
        let output = self.machine.run(|| command.output()).unwrap().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// Starts `fairlead balancer` on the machine.
    pub(crate) fn balancer(&self, node: &str, flags: &[&str]) -> Child {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = Command::new(FAIRLEAD);
        command.args(["balancer", "--node-name", node, "--balancer-bind-address="]).args(flags);
        command.arg("--kubeconfig").arg(self.path("data/admin.kubeconfig"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.machine.run(|| command.spawn()).unwrap().unwrap()
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        self.wait_or(|| what.to_owned(), holds);
    }

    /// The same, and says what is instead.
    #[track_caller]
    pub(crate) fn wait_or(&self, what: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + LIMIT;
        while !holds() {
            assert!(Instant::now() < until, "not within {LIMIT:?}: {}\n{}", what(), self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What `fairlead up` has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Services of the default namespace.
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";

/// An annotation.
pub(crate) fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

/// Puts fields into others; null removes.
pub(crate) fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert_with(|| json!({})), value);
                }
            }
        }
        (into, more) => *into = more.clone(),
    }
}

fn ask(to: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"hello\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
}
