//! What the documents take for granted: Pods that carry a label and listen, clients in two namespaces, and a host outside the cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::Kubectl;
use fairlead_zone::Name;
use fairlead_zone::message::{self, Message, Record};
use serde_json::Value;

use crate::machine::{Machine, machine};

/// Where examples live, after the documents' own.
pub(crate) const NAMESPACE: &str = "my-ns";
/// Addresses that examples give to what is not in the cluster.
const ELSEWHERE: &[&str] = &["192.0.2.42", "1.2.3.4", "10.4.5.6", "10.1.2.3"];
/// Where cluster DNS is when Services have 10.0.0.0/16.
const DNS: &str = "10.0.0.10:53";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The cluster, and a host that is no part of it.
pub(crate) struct World {
    pub(crate) machine: Machine,
    outside: Namespace,
    /// `kubectl proxy`: looks at objects are many, and a kubectl for each takes long.
    proxy: Child,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    /// The Node itself.
    Node,
    /// A host outside the cluster.
    Outside,
    /// A Pod in the namespace of the examples.
    Pod,
    /// A Pod in another one.
    OtherPod,
}

/// The world with all its Pods, or nothing where there can be none.
pub(crate) fn world(test: &str, flags: &[&str]) -> Option<World> {
    let world = empty(test, flags)?;
    world.start_pods();
    Some(world)
}

/// The same without Pods.
pub(crate) fn empty(test: &str, flags: &[&str]) -> Option<World> {
    let range = ["--service-cluster-ip-range", "10.0.0.0/16"];
    let machine = machine(test, &[range.as_slice(), flags].concat())?;
    let outside = Namespace::unnamed().unwrap();
    connect(&machine, &outside);
    listen(&outside);
    machine.wait_ready();
    for namespace in [NAMESPACE, "other", "prod"] {
        machine.kubectl(&["create", "namespace", namespace]).fine();
    }
    machine.kubectl(&["config", "set-context", "--current", "--namespace", NAMESPACE]).fine();
    let proxy = start_proxy(&machine);
    let world = World { machine, outside, proxy };
    world.machine.wait("kubectl proxy answers", || !world.api("GET", "/version", "").is_null());
    Some(world)
}

/// Lays a cable between the two.
fn connect(machine: &Machine, outside: &Namespace) {
    let lay = || Links::open().unwrap().add_veth("outside", "uplink", Some(outside.as_fd())).unwrap();
    machine.namespace.run(lay).unwrap();
    let mut here = vec!["ip address add 203.0.113.1/24 dev outside".to_owned(), "ip link set outside up".into()];
    let mut there = vec!["ip link set lo up".to_owned(), "ip address add 203.0.113.2/24 dev uplink".into()];
    there.extend(["ip link set uplink up".into(), "ip route add default via 203.0.113.1".into()]);
    for address in ELSEWHERE {
        here.push(format!("ip route add {address}/32 via 203.0.113.2"));
        there.push(format!("ip address add {address}/32 dev lo"));
    }
    for (namespace, lines) in [(&machine.namespace, here), (outside, there)] {
        for line in lines {
            let done = namespace.run(|| Command::new("sh").args(["-c", &line]).status()).unwrap().unwrap();
            assert!(done.success(), "{line}");
        }
    }
}

/// Lets the host outside say at port 9376 which of its addresses was asked.
fn listen(outside: &Namespace) {
    let listener = outside.run(|| TcpListener::bind("0.0.0.0:9376")).unwrap().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            if let Ok(address) = stream.local_addr() {
                let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{address}\n").as_bytes());
            }
        }
    });
}

fn start_proxy(machine: &Machine) -> Child {
    let mut command = Command::new(Kubectl::find().expect("it was there before").path);
    command.args(["proxy", "--port", "8001"]).env("KUBECONFIG", machine.path("data/admin.kubeconfig"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    machine.namespace.run(|| command.spawn()).unwrap().unwrap()
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

impl World {
    /// Three replicas of the application, and two Pods to ask from.
    fn start_pods(&self) {
        let script = self.machine.path("backend.py");
        fs::write(&script, include_str!("../backend.py")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
        let script = script.display().to_string();
        for name in ["web-1", "web-2", "web-3"] {
            let labels = "app=MyApp,app.kubernetes.io/name=MyApp,subset=three";
            let line =
                ["run", "-d", "-n", NAMESPACE, "--name", name, "--labels", labels, "-p", "9376", "--ready", "tcp"];
            let command = ["--", "python3", &script, "MyApp", "80", "9376", "9377", "49152"];
            self.machine.fairlead(&[line.as_slice(), &command].concat()).fine();
        }
        for namespace in [NAMESPACE, "other"] {
            self.machine.fairlead(&["run", "-d", "-n", namespace, "--name", "client", "--", "sleep", "1000"]).fine();
            let wait = ["wait", "--for=condition=Ready", "--timeout=30s", "-n", namespace, "pod", "--all"];
            self.machine.kubectl(&wait).fine();
        }
    }

    /// What is said at `HOST:PORT/PATH`; nothing if nobody answers. Pods know hosts by their names.
    pub(crate) fn get(&self, from: From, at: &str) -> String {
        match from {
            From::Node => self.machine.namespace.run(|| get(at)).unwrap(),
            From::Outside => self.outside.run(|| get(at)).unwrap(),
            From::Pod => self.curl(NAMESPACE, at),
            From::OtherPod => self.curl("other", at),
        }
    }

    fn curl(&self, namespace: &str, at: &str) -> String {
        let url = format!("http://{at}");
        let line = ["exec", "-n", namespace, "client", "--", "curl", "-s", "-m", "3", &url];
        self.machine.fairlead(&line).out.trim_end().to_owned()
    }

    /// What cluster DNS says of a name, in order.
    pub(crate) fn resolve(&self, rtype: &str, name: &str) -> Vec<String> {
        let number = match rtype {
            "A" => 1,
            "CNAME" => 5,
            "SRV" => 33,
            other => panic!("no number for {other}"),
        };
        let message = self.machine.namespace.run(|| ask(name, number)).unwrap();
        let mut said: Vec<String> = message.iter().flat_map(|message| &message.answer).map(record).collect();
        said.sort();
        said
    }

    /// Runs kubectl with a few words, which must end well.
    #[track_caller]
    pub(crate) fn kubectl(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        self.machine.kubectl(&words).fine();
    }

    /// What the API answers, with short paths as in [`World::field`]; null if it does not.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> Value {
        let send = || request(method, "127.0.0.1:8001", &full(path), body);
        let answer = self.machine.namespace.run(send).unwrap();
        serde_json::from_str(&answer).unwrap_or_default()
    }

    /// The Node's address.
    pub(crate) fn node(&self) -> String {
        self.field("/api/v1/nodes", "/items/0/status/addresses/0/address")
    }

    /// What an object has at some pointers, with blanks between; `*` stands for every item. Paths without a slash are short for those
    /// of the namespace of the examples.
    pub(crate) fn field(&self, path: &str, pointers: &str) -> String {
        let object = self.api("GET", path, "");
        let mut found = Vec::new();
        for pointer in pointers.split(' ') {
            select(&object, pointer, &mut found);
        }
        found.join(" ")
    }

    /// Makes an object.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, object: &str) {
        let answer = self.api("POST", path, object);
        assert!(answer["metadata"]["uid"].is_string(), "{object}: {answer}");
    }

    /// Deletes an object, or all that are there.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        let answer = self.api("DELETE", path, "");
        assert!(!answer.is_null() && answer["code"].is_null(), "{path}: {answer}");
    }
}

fn full(path: &str) -> String {
    match path.split_once('/').unwrap_or((path, "")) {
        ("", _) => path.to_owned(),
        ("endpointslices", _) => format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/{path}"),
        _ => format!("/api/v1/namespaces/{NAMESPACE}/{path}"),
    }
}

/// Values as text, as `kubectl get -o jsonpath` shows them.
fn select(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match (pointer.split_once("/*"), value.pointer(pointer)) {
        (Some((list, rest)), _) => {
            let items = value.pointer(list).and_then(Value::as_array);
            items.into_iter().flatten().for_each(|item| select(item, rest, found));
        }
        (None, Some(Value::String(text))) => found.push(text.clone()),
        (None, Some(other)) => found.push(other.to_string()),
        (None, None) => {}
    }
}

fn get(at: &str) -> String {
    let (host, path) = at.split_once('/').unwrap_or((at, ""));
    request("GET", host, &format!("/{path}"), "")
}

fn request(method: &str, host: &str, path: &str, body: &str) -> String {
    let Ok(address) = host.parse::<SocketAddr>() else { return format!("no address: {host}") };
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PATIENCE) else { return String::new() };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    let kind = if method == "PATCH" { "merge-patch+json" } else { "json" };
    let head = format!("Host: localhost\r\nContent-Type: application/{kind}\r\nContent-Length: {}", body.len());
    let asked = stream.write_all(format!("{method} {path} HTTP/1.0\r\n{head}\r\n\r\n{body}").as_bytes());
    let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
    answer.split_once("\r\n\r\n").map(|(_, body)| body.trim_end().to_owned()).unwrap_or_default()
}

fn ask(name: &str, rtype: u16) -> Option<Message> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(DNS).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let name: Name = name.parse().expect("a name");
    socket.send(&message::query(7, &name, rtype, None)).ok()?;
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer).ok()?;
    Message::parse(&buffer[..length]).ok()
}

/// A record as people write it, without the name it is of.
fn record(record: &Record) -> String {
    let number = |at: usize| u16::from_be_bytes([record.rdata[at], record.rdata[at + 1]]);
    let target = |at: usize| name(&record.rdata[at..]);
    match record.rtype {
        1 => <[u8; 4]>::try_from(&*record.rdata).map(|bytes| Ipv4Addr::from(bytes).to_string()).unwrap(),
        33 => format!("{} {} {} {}", number(0), number(2), number(4), target(6)),
        _ => target(0),
    }
}

/// A name as messages carry it, uncompressed.
fn name(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while let [length @ 1..=63, rest @ ..] = bytes {
        let (label, more) = rest.split_at(usize::from(*length));
        text += &format!("{}.", String::from_utf8_lossy(label));
        bytes = more;
    }
    text
}
