//! A network namespace of its own with an engine in it, backends that are threads, and clients.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_balancer::backends::{Backend, Backends, Stage};
use fairlead_balancer::engine::{Engine, ListenerKey, Options};
use fairlead_balancer::log::Log;
use fairlead_balancer::serving::Serving;
use fairlead_balancer::spec::{Check, Choice, How, Kind, Listener, Path, ProxyVersion, Scheme, Sources, Speaks, Spec};
use fairlead_balancer::tls::{ClientTls, ServerTls};
use fairlead_kernel::netns::Namespace;
use ipnet::IpNet;

/// Runs `work` in a namespace whose loopback has all of 127.0.0.0/8; skips it where that cannot be made.
pub(crate) fn in_lab(test: &str, work: impl FnOnce() + Send) {
    if !fairlead_testkit::need(test, "ip") {
        return;
    }
    let Ok(namespace) = Namespace::unnamed() else { return fairlead_testkit::need::skip(test, "root") };
    namespace
        .run(|| {
            let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
            assert!(up.success());
            work();
        })
        .unwrap();
}

/// What a listener is to do, in the few words a test has for it.
#[derive(Clone)]
pub(crate) struct Wish {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) port: u16,
    pub(crate) backends: Arc<Backends>,
    pub(crate) drain: Option<Duration>,
    pub(crate) idle: Duration,
    pub(crate) send_proxy: Option<ProxyVersion>,
    pub(crate) accept_proxy: bool,
    pub(crate) trusted: Vec<IpNet>,
    pub(crate) sources: Option<Vec<IpNet>>,
    pub(crate) check: Check,
    pub(crate) log: Option<Log>,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) reencrypt: Option<Arc<ClientTls>>,
}

impl Default for Wish {
    fn default() -> Wish {
        let interval = Duration::from_secs(10);
        Wish {
            addresses: vec![[127, 0, 0, 1].into()],
            port: 7000,
            backends: Arc::default(),
            drain: None,
            idle: Duration::from_secs(60),
            send_proxy: None,
            accept_proxy: false,
            trusted: Vec::new(),
            sources: None,
            log: None,
            tls: None,
            reencrypt: None,
            check: Check {
                how: How::Tcp,
                port: None,
                healthy: 2,
                unhealthy: 6,
                interval,
                timeout: Duration::from_secs(5),
            },
        }
    }
}

impl Wish {
    pub(crate) fn to(backends: &[SocketAddr]) -> Wish {
        let wish = Wish::default();
        wish.set(backends);
        wish
    }

    pub(crate) fn set(&self, backends: &[SocketAddr]) {
        let backend = |address: &SocketAddr| Backend {
            address: *address,
            weight: 1,
            node: None,
            zone: None,
            stage: Stage::Ready,
        };
        self.backends.set(&backends.iter().map(backend).collect::<Vec<_>>());
    }

    pub(crate) fn at(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[0], self.port)
    }

    pub(crate) fn key(&self) -> ListenerKey {
        ListenerKey { service: Arc::new(Key::new("default", "web")), port: self.port, protocol: Protocol::Tcp }
    }

    pub(crate) fn serve(&self, engine: &Engine) {
        engine.serve(self.key(), self.serving()).unwrap();
    }

    pub(crate) fn serving(&self) -> Arc<Serving> {
        let listener = Listener {
            name: String::new(),
            port: self.port,
            protocol: Protocol::Tcp,
            node_port: None,
            speaks: Speaks::Bytes,
            tls: None,
            reencrypt: false,
            send_proxy: self.send_proxy,
            accept_proxy: self.accept_proxy,
        };
        let spec = Spec {
            service: Arc::new(Key::new("default", "web")),
            name: "a0123".to_owned(),
            families: Vec::new(),
            needs: Vec::new(),
            health_check_port: None,
            notes: Vec::new(),
            scheme: Scheme::Public,
            kind: Kind::Classic,
            path: Path::Userspace,
            listeners: vec![listener.clone()],
            sources: Sources::default(),
            local: false,
            cross_zone: true,
            choice: Choice::RoundRobin,
            affinity: None,
            check: self.check.clone(),
            drain: self.drain,
            idle: self.idle,
            age: None,
            access_log: None,
            tags: Default::default(),
        };
        Arc::new(Serving {
            spec: Arc::new(spec),
            listener,
            addresses: self.addresses.clone(),
            backends: self.backends.clone(),
            tls: self.tls.clone(),
            reencrypt: self.reencrypt.clone(),
            log: self.log.clone(),
            sources: self.sources.clone().map(Arc::from),
            trusted: self.trusted.clone().into(),
        })
    }
}

/// An engine with two threads.
pub(crate) fn engine() -> Engine {
    Engine::start(Options { threads: 2, ..Options::default() }).unwrap()
}

/// A backend that counts connections and does `work` with each.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(at: &str, work: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        // Room for many that wait, however slow this machine is at the moment.
        let listener = fairlead_kernel::relay::listen(at.parse().unwrap()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let (at, work) = (listener.local_addr().unwrap(), Arc::new(work));
        let (connections, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (connections.clone(), stop.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let (stream, work) = (stream.unwrap(), work.clone());
                thread::spawn(move || work(stream));
            }
        });
        Server { at, connections, stop }
    }

    /// Sends back what it gets, and its end when that comes.
    pub(crate) fn echo() -> Server {
        Server::start("127.0.0.1:0", |mut stream| {
            let mut reader = stream.try_clone().unwrap();
            // A client that breaks off is no mistake of the server's.
            let _ = std::io::copy(&mut reader, &mut stream);
            let _ = stream.shutdown(Shutdown::Write);
        })
    }

    /// Says something and hangs up.
    pub(crate) fn says(text: &str) -> Server {
        let text = text.to_owned();
        Server::start("127.0.0.1:0", move |mut stream| drop(stream.write_all(text.as_bytes())))
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // It looks at that when the next connection comes.
        drop(TcpStream::connect(self.at));
    }
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// What comes until the end.
pub(crate) fn hear(mut stream: &TcpStream) -> std::io::Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text).map(|_| text)
}

/// Sends, says that this was all, and hears the answer.
pub(crate) fn ask(to: SocketAddr, text: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    hear(&stream)
}

/// Waits until something is so, not for ever.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never came that {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
