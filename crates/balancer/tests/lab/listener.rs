//! What labs of bytes and of HTTP have in common: a network namespace, and one listener of an engine in it.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_balancer::backends::{Backend, Backends, Stage};
use fairlead_balancer::engine::{Engine, ListenerKey};
use fairlead_balancer::log::Log;
use fairlead_balancer::serving::Serving;
use fairlead_balancer::spec::{Check, Choice, How, Kind, Listener, Path, ProxyVersion, Scheme, Sources, Speaks, Spec};
use fairlead_balancer::tls::{ClientTls, ServerTls};
use fairlead_kernel::netns::Namespace;
use ipnet::IpNet;

use super::{DRAIN, SPEAKS};

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
    pub(crate) speaks: Speaks,
    pub(crate) drain: Option<Duration>,
    pub(crate) idle: Duration,
    pub(crate) age: Option<Duration>,
    pub(crate) send_proxy: Option<ProxyVersion>,
    pub(crate) accept_proxy: bool,
    pub(crate) connect: bool,
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
            speaks: SPEAKS,
            drain: DRAIN,
            idle: Duration::from_secs(60),
            age: None,
            send_proxy: None,
            accept_proxy: false,
            connect: false,
            trusted: Vec::new(),
            sources: None,
            check: Check { how: How::Tcp, port: None, healthy: 2, unhealthy: 6, interval, timeout: interval / 2 },
            log: None,
            tls: None,
            reencrypt: None,
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
            speaks: self.speaks,
            tls: None,
            reencrypt: self.reencrypt.is_some(),
            send_proxy: self.send_proxy,
            accept_proxy: self.accept_proxy,
        };
        let spec = Spec {
            unserved: Vec::new(),
            connect: self.connect,
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
            age: self.age,
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

/// Waits until something is so, not for ever.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never came that {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
