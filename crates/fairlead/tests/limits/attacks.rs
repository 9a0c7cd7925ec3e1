//! Attacks of the size that an outside test used, on a machine with a limited number of descriptors. Clients beside them must be
//! answered, and memory stays within its bound. Times are printed: a busy machine proves nothing with them.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_zone::message::{self, Builder, Head, Reading, Record};
use serde_json::json;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::alone_in_long_run;
use crate::lab::{Lab, lab_through, tool};
use crate::polite::{self, Busy, DNS, Kind, PATIENCE, assert_answered};

/// Bytes that the process may grow by, whatever clients do (docs/security.md, "Resource limits").
const MOST_GROWTH: u64 = 256 << 20;
/// Requests of each kind beside an attack.
const REQUESTS: usize = 1_000;
/// Address of attackers on the LAN. Other clients there have 192.0.2.200.
const STRANGER: [u8; 4] = [192, 0, 2, 210];
/// Address of attackers behind the machine, where Pods would be. Others there have 10.50.0.11.
const POD: [u8; 4] = [10, 50, 0, 12];
const API: SocketAddr = address([192, 0, 2, 100], 6443);
const API_AT_LOOPBACK: SocketAddr = address([127, 0, 0, 1], 6443);
const HTTP: SocketAddr = address([192, 0, 2, 1], 80);
const HTTPS: SocketAddr = address([192, 0, 2, 1], 443);
const EVIL: SocketAddr = address([192, 0, 2, 2], 80);

/// The annotation for the protocol of a load balancer.
pub(crate) const SPEAKS: &str = "service.beta.kubernetes.io/aws-load-balancer-backend-protocol";
const ANNOTATION: &str = "service.beta.kubernetes.io/aws-load-balancer-";

const fn address(ip: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])), port)
}

/// A machine that serves everything: API, load balancers with and without TLS, cluster DNS that forwards.
struct World {
    lab: Lab,
    certificate: String,
    idle: u64,
}

impl World {
    fn new(test: &str, descriptors: u32) -> Option<World> {
        let limit = format!("ulimit -n {descriptors} && exec \"$@\"");
        let flags = [
            ["--pool", "192.0.2.0/28"],
            ["--bind-address", "0.0.0.0"],
            ["--advertise-address", "192.0.2.100"],
            ["--tls-san", "192.0.2.100"],
            ["--dns-upstream", "10.50.0.11"],
        ];
        let lab = lab_through(test, &["sh", "-c", &limit, "sh"], flags.as_flattened())?;
        fairlead_kernel::relay::raise_descriptor_limit().unwrap();
        tool(&lab.client, "ip address add 192.0.2.210/24 dev eth0");
        let made = rcgen::generate_simple_self_signed(["192.0.2.1".to_owned()]).unwrap();
        let certificate = made.cert.pem();
        use base64::Engine as _;
        let text = |pem: &str| base64::engine::general_purpose::STANDARD.encode(pem);
        let data = json!({"tls.crt": text(&certificate), "tls.key": text(&made.signing_key.serialize_pem())});
        let secret = json!({"metadata": {"name": "web"}, "type": "kubernetes.io/tls", "data": data});
        lab.api("POST", "/api/v1/namespaces/default/secrets", &secret);
        serve(&lab, 8090, Backend::Honest);
        serve(&lab, 8091, Backend::EndlessInterims);
        forwarded_names(&lab.backends);
        let annotations = json!({
            SPEAKS: "http",
            format!("{ANNOTATION}ssl-cert"): "web",
            format!("{ANNOTATION}ssl-ports"): "443",
        });
        balance(&lab, "web", &annotations, &[80, 443], 8090);
        lab.becomes("web", "192.0.2.1/Proxy");
        balance(&lab, "evil", &json!({SPEAKS: "http"}), &[80], 8091);
        lab.becomes("evil", "192.0.2.2/Proxy");
        let mut world = World { lab, certificate, idle: 0 };
        for mut kind in world.kinds() {
            world.lab.wait(kind.name, || kind.at.run(|| (kind.request)(0).is_ok()).unwrap());
        }
        let quiet = polite::ask(world.kinds(), 100, || ());
        assert_answered("quiet", &quiet, || world.lab.log());
        world.idle = world.memory();
        Some(world)
    }

    /// All kinds of requests that clients make who are not the attacker.
    fn kinds(&self) -> Vec<Kind<'_>> {
        let lab = &self.lab;
        let kind = |name, at, request| Kind { name, at, request };
        vec![
            kind("API from the LAN", &lab.client, polite::api(lab, API)),
            kind("API from the machine", &lab.machine, polite::api(lab, API_AT_LOOPBACK)),
            kind("HTTP", &lab.client, polite::http(HTTP)),
            kind("HTTPS", &lab.client, polite::https(HTTPS, &self.certificate)),
            kind("names of the cluster", &lab.backends, polite::dns(|_| "web.default.svc.cluster.local".to_owned())),
            kind(
                "forwarded names",
                &lab.backends,
                polite::dns(|number| format!("n{number}-{}.well.example", fastrand::u32(..))),
            ),
            kind("names by TCP", &lab.backends, polite::dns_tcp("web.default.svc.cluster.local")),
        ]
    }

    /// Resident memory of the program in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.lab.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Fails unless everybody is answered while an attack goes on, with memory within its bound.
    #[allow(clippy::print_stdout, reason = "the figures are worth knowing")]
    fn assert_bears(&self, what: &str) {
        let mut most = self.memory();
        let outcomes = polite::ask(self.kinds(), REQUESTS, || most = most.max(self.memory()));
        println!("{what}: memory {} MiB, at most {} MiB", self.idle >> 20, most >> 20);
        assert_answered(what, &outcomes, || self.lab.log());
        assert!(most < self.idle + MOST_GROWTH, "{what}: {} MiB became {} MiB", self.idle >> 20, most >> 20);
        assert!(!self.lab.log().contains("panicked"), "{}", self.lab.log());
    }

    /// The value of a metric of the program's budgets.
    fn in_use(&self, budget: &str) -> u64 {
        let (_, metrics) = self.lab.try_api("GET", "/metrics", "").unwrap();
        let start = format!("fairlead_budget_in_use{{budget=\"{budget}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {start}in\n{metrics}")).parse().unwrap()
    }
}

/// Makes a load balancer whose ports all lead to one port of a backend.
pub(crate) fn balance(lab: &Lab, name: &str, annotations: &serde_json::Value, ports: &[u16], backend: u16) {
    let port = |port: &u16| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP", "targetPort": backend});
    let ports_of_service: Vec<_> = ports.iter().map(port).collect();
    lab.create(name, &json!({"metadata": {"annotations": annotations}, "spec": {"ports": ports_of_service}}));
    let port = |port: &u16| json!({"name": format!("p{port}"), "port": backend, "protocol": "TCP"});
    let slice = json!({
        "addressType": "IPv4", "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "endpoints": [{"addresses": ["10.50.0.11"], "nodeName": "here", "conditions": {"ready": true}}],
        "ports": ports.iter().map(port).collect::<Vec<_>>(),
    });
    lab.api("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice);
}

#[derive(Clone, Copy)]
pub(crate) enum Backend {
    /// Answers 500 KiB to requests for the host `a`, and two bytes to others.
    Honest,
    /// Answers with interim answers, 32 MiB of them, and no other.
    EndlessInterims,
}

/// Serves HTTP behind the machine.
pub(crate) fn serve(lab: &Lab, port: u16, backend: Backend) {
    let listener = lab.backends.run(|| TcpListener::bind(("10.50.0.11", port)).unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    let large = Arc::new(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", 500 << 10, "x".repeat(500 << 10)));
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                // Without descriptors there is none for a while.
                let Ok((stream, _)) = listener.accept().await else { continue };
                let large = large.clone();
                tokio::spawn(async move {
                    let _ = answer(stream, backend, &large).await;
                });
            }
        });
    });
}

async fn answer(mut stream: tokio::net::TcpStream, backend: Backend, large: &str) -> io::Result<()> {
    let mut heard = Vec::new();
    while stream.read_buf(&mut heard).await? > 0 {
        while let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = heard.drain(..end + 4).collect();
            match backend {
                Backend::Honest if head.windows(7).any(|part| part == b"Host: a") => {
                    stream.write_all(large.as_bytes()).await?;
                }
                Backend::Honest => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?,
                Backend::EndlessInterims => {
                    let interims = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(1000);
                    for _ in 0..(32 << 20) / interims.len() {
                        stream.write_all(interims.as_bytes()).await?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Answers questions for names below `well.example` and for the root, and keeps silent about others.
pub(crate) fn forwarded_names(at: &Namespace) {
    let socket = at.run(|| UdpSocket::bind("10.50.0.11:53").unwrap()).unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let Reading::Query(query) = message::read(&buffer[..length]) else { continue };
            let name = query.name().to_string();
            // The root is what upstreams are asked to see whether they answer at all.
            if name == "." || name.ends_with("well.example.") {
                let mut out = Vec::new();
                let head = Head { recursion_available: true, ..Head::default() };
                let mut builder = Builder::new(&query, head, message::MAX_MESSAGE, &mut out);
                if name != "." {
                    builder.answer(&Record::address(query.name(), 600, [192, 0, 2, 77].into()));
                }
                builder.finish();
                let _ = socket.send_to(&out, from);
            }
        }
    });
}

fn connect_from(source: [u8; 4], to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    // What is not read fills little of the kernel.
    socket.set_recv_buffer_size(4096)?;
    socket.connect_timeout(&to.into(), Duration::from_secs(5))?;
    Ok(socket.into())
}

/// A connection of HTTP/2 without TLS whose client asks for `/` of the host `a` in so many streams, and takes no byte of the answers.
fn streams_without_window(to: SocketAddr, streams: u32) -> TcpStream {
    let mut stream = connect_from(STRANGER, to).unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE: 0.
    bytes.extend_from_slice(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    for index in 0..streams {
        // HEADERS with END_STREAM and END_HEADERS: GET, http, /, and the authority `a` (RFC 7541, appendix A).
        bytes.extend_from_slice(&[0, 0, 6, 1, 5]);
        bytes.extend_from_slice(&(2 * index + 1).to_be_bytes());
        bytes.extend_from_slice(&[0x82, 0x86, 0x84, 0x41, 1, b'a']);
    }
    // A connection that was cut takes none, which is what is wanted.
    let _ = stream.write_all(&bytes);
    stream
}

#[test]
fn streams_without_a_window_leave_descriptors_to_everybody() {
    let test = "streams_without_a_window_leave_descriptors_to_everybody";
    let Some(_alone) = alone_in_long_run(test, &[]) else { return };
    let Some(world) = World::new(test, 20_000) else { return };
    let attackers: Vec<TcpStream> =
        world.lab.client.run(|| (0..180).map(|_| streams_without_window(HTTP, 125)).collect()).unwrap();
    world.assert_bears("180 x 125 streams without a window");
    let open = fs::read_dir(format!("/proc/{}/fd", world.lab.pid())).unwrap().count();
    assert!(open < 20_000 - 256, "{open} descriptors are open");
    drop(attackers);
    world.lab.wait("backends are given back", || world.in_use("balancer backend connections") < 300);
}

#[test]
fn interim_answers_without_end_fill_no_memory() {
    let test = "interim_answers_without_end_fill_no_memory";
    let Some(_alone) = alone_in_long_run(test, &[]) else { return };
    let Some(world) = World::new(test, 20_000) else { return };
    let attackers: Vec<TcpStream> =
        world.lab.client.run(|| (0..4).map(|_| streams_without_window(EVIL, 50)).collect()).unwrap();
    // A client of HTTP/1 is told after a few of them, beside the others.
    let status = world.lab.client.run(|| {
        let mut stream = polite::connect(EVIL).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.len() < 16 << 10, "{} bytes", text.len());
        text.split("\r\n\r\n").find(|head| !head.starts_with("HTTP/1.1 103")).unwrap_or_default()[..12].to_owned()
    });
    assert_eq!(status.unwrap(), "HTTP/1.1 502");
    world.assert_bears("interim answers without end");
    drop(attackers);
}

/// Connections that are opened again as they are closed.
struct Refilled {
    source: [u8; 4],
    to: SocketAddr,
    /// Bytes that are sent at first, and on each visit.
    greeting: Vec<u8>,
    again: Vec<u8>,
    streams: Vec<Option<TcpStream>>,
    /// Number of times that all connections were visited.
    rounds: Arc<AtomicUsize>,
}

impl Refilled {
    /// Visits each connection once.
    fn visit(&mut self) {
        for slot in &mut self.streams {
            let closed = slot.as_mut().is_none_or(|stream| {
                loop {
                    match stream.read(&mut [0; 1024]) {
                        Ok(0) => break true,
                        Ok(_) => {}
                        Err(error) => break error.kind() != io::ErrorKind::WouldBlock,
                    }
                }
            });
            if closed {
                *slot = connect_from(self.source, self.to).ok().filter(|stream| {
                    let mut writer = stream;
                    stream.set_nonblocking(true).is_ok() && writer.write_all(&self.greeting).is_ok()
                });
            } else if let Some(stream) = slot
                && !self.again.is_empty()
            {
                let _ = stream.write(&self.again);
            }
        }
        self.rounds.fetch_add(1, Ordering::SeqCst);
    }
}

/// Attacks until everybody was answered `REQUESTS` times.
fn bear_refilled(world: &World, what: &str, at: &Namespace, mut attack: Refilled) {
    let (stop, rounds) = (AtomicBool::new(false), attack.rounds.clone());
    thread::scope(|scope| {
        let _busy = Busy::start(scope, &stop, at, || attack.visit());
        let began = Instant::now();
        while rounds.load(Ordering::SeqCst) == 0 {
            assert!(began.elapsed() < 4 * PATIENCE, "{what}: the attack does not begin\n{}", world.lab.log());
            thread::sleep(Duration::from_millis(20));
        }
        world.assert_bears(what);
    });
}

#[test]
fn half_open_handshakes_keep_nobody_out() {
    let test = "half_open_handshakes_keep_nobody_out";
    let Some(_alone) = alone_in_long_run(test, &[]) else { return };
    let Some(world) = World::new(test, 20_000) else { return };
    for (what, to) in [("12,000 half-open handshakes at the API", API), ("... at a load balancer", HTTPS)] {
        let attack = Refilled {
            source: STRANGER,
            to,
            // The head of a TLS record and the first byte of a ClientHello.
            greeting: vec![0x16, 3, 1, 2, 0, 1],
            again: Vec::new(),
            streams: (0..12_000).map(|_| None).collect(),
            rounds: Arc::default(),
        };
        bear_refilled(&world, what, &world.lab.client, attack);
    }
}

fn question(name: &str) -> Vec<u8> {
    message::query(1, &name.parse().unwrap(), 1, None)
}

#[test]
fn tcp_connections_of_one_client_of_dns_keep_nobody_out() {
    let test = "tcp_connections_of_one_client_of_dns_keep_nobody_out";
    let Some(_alone) = alone_in_long_run(test, &[]) else { return };
    let Some(world) = World::new(test, 20_000) else { return };
    let question = question("web.default.svc.cluster.local");
    let framed = [&(question.len() as u16).to_be_bytes(), question.as_slice()].concat();
    let attack = Refilled {
        source: POD,
        to: DNS.parse().unwrap(),
        greeting: framed.clone(),
        again: framed,
        streams: (0..1_100).map(|_| None).collect(),
        rounds: Arc::default(),
    };
    bear_refilled(&world, "1,100 TCP connections to DNS", &world.lab.backends, attack);
}

#[test]
fn questions_that_nobody_answers_leave_descriptors_to_everybody() {
    let test = "questions_that_nobody_answers_leave_descriptors_to_everybody";
    let Some(_alone) = alone_in_long_run(test, &[]) else { return };
    let Some(world) = World::new(test, 8_000) else { return };
    let socket = world.lab.backends.run(|| UdpSocket::bind((Ipv4Addr::from(POD), 0)).unwrap()).unwrap();
    socket.connect(DNS).unwrap();
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _busy = Busy::start(scope, &stop, &world.lab.backends, || {
            for _ in 0..16 {
                let number = sent.fetch_add(1, Ordering::SeqCst);
                let _ = socket.send(&question(&format!("n{number}.silent.example")));
            }
            // As fast as the server reads: a full queue of the kernel loses questions of all clients alike.
            thread::sleep(Duration::from_millis(1));
        });
        let began = Instant::now();
        while sent.load(Ordering::SeqCst) < 12_000 {
            assert!(began.elapsed() < 4 * PATIENCE, "the attack does not begin");
            thread::sleep(Duration::from_millis(20));
        }
        world.assert_bears("questions that nobody answers");
        assert!(world.lab.log().len() < 1 << 20, "{} bytes of log", world.lab.log().len());
    });
}
