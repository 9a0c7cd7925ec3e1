//! Ours: the engine of the load balancer with one thread, with listeners as Services would ask for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::{fs, thread};

use anyhow::Context;
use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_balancer::backends::{Backend, Backends, Stage};
use fairlead_balancer::engine::{Engine, ListenerKey, Options};
use fairlead_balancer::serving::Serving;
use fairlead_balancer::spec::{self, Listener, Speaks, Spec, TlsPolicy};
use fairlead_balancer::tls::{ALPN_HTTP, Certificate, Pem, ServerTls};

use crate::kinds::{ANSWERS, ECHO, SOURCE};
use crate::peers::OURS;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Balances for ever.
pub(crate) fn run(certificates: &Path) -> anyhow::Result<()> {
    let engine = Engine::start(Options { threads: 1, ..Options::default() })?;
    let (p256, rsa) = (tls(certificates, "p256")?, tls(certificates, "rsa")?);
    serve(&engine, OURS.echo(), ECHO, Speaks::Bytes, None)?;
    serve(&engine, OURS.source(), SOURCE, Speaks::Bytes, None)?;
    serve(&engine, OURS.http(), ANSWERS, Speaks::Http, None)?;
    serve(&engine, OURS.https(), ANSWERS, Speaks::Http, Some(p256))?;
    serve(&engine, OURS.rsa(), ANSWERS, Speaks::Http, Some(rsa))?;
    loop {
        thread::park();
    }
}

fn serve(engine: &Engine, port: u16, backend: u16, speaks: Speaks, tls: Option<Arc<ServerTls>>) -> anyhow::Result<()> {
    let backends = Backends::new();
    let address = SocketAddr::new(HOST, backend);
    backends.set(&[Backend { address, weight: 1, node: None, zone: None, stage: Stage::Ready }]);
    let listener = Listener {
        name: String::new(),
        port,
        protocol: Protocol::Tcp,
        node_port: None,
        speaks,
        tls: tls.is_some().then(|| spec::Tls { certificate: String::new(), policy: TlsPolicy { name: String::new() } }),
        reencrypt: false,
        send_proxy: None,
        accept_proxy: false,
    };
    let spec = Arc::new(spec(&listener));
    let key = ListenerKey { service: spec.service.clone(), port, protocol: Protocol::Tcp };
    let serving = Serving {
        spec,
        listener,
        addresses: vec![HOST],
        backends: Arc::new(backends),
        tls,
        reencrypt: None,
        log: None,
        sources: None,
        trusted: Vec::new().into(),
    };
    Ok(engine.serve(key, Arc::new(serving))?)
}

fn spec(listener: &Listener) -> Spec {
    let service = Arc::new(Key::new("default", format!("web-{}", listener.port)));
    Spec { path: spec::Path::Userspace, ..Spec::plain(service, vec![listener.clone()]) }
}

fn tls(certificates: &Path, name: &str) -> anyhow::Result<Arc<ServerTls>> {
    let read = |what: &str| fs::read(certificates.join(format!("{name}.{what}")));
    let (chain, key) = (read("crt")?, read("key")?);
    let pem = Pem { chain: &chain, chain_name: name, key: &key, key_name: name };
    let certificate = Arc::new(Certificate::read(name, pem)?);
    let policy = TlsPolicy { name: String::new() };
    ServerTls::new(&[certificate], &policy, ALPN_HTTP).map(Arc::new).context("TLS of ours")
}
