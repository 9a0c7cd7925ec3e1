//! A load balancer changes under load, and no connection notices: certificate, ports, backends, policy, choice, ranges.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::lab::{BACKENDS, Lab, annotated, lab};

const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer-";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
/// Four clients at this pace make 500 connections a second where the machine is not too slow for it.
const PACE: Duration = Duration::from_millis(8);
/// So long each state is under load.
const MOMENT: Duration = Duration::from_millis(400);

#[test]
fn nobody_notices_a_change() {
    let Some(lab) = lab("nobody_notices_a_change", &["--pool", "192.0.2.0/28"]) else { return };
    let [old, new] = [(); 2].map(|()| rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap());
    lab.api("POST", SECRETS, &secret(&old));
    let mut more = annotated(&format!("{AWS}ssl-cert"), "shop");
    more["metadata"]["annotations"][format!("{AWS}ssl-ports")] = json!("443");
    more["spec"] = json!({"ports": ports(&[("plain", 80), ("tls", 443)])});
    lab.create("web", &more);
    back(&lab, BACKENDS[0]);
    lab.becomes("web", "192.0.2.1/Proxy");
    lab.answers("192.0.2.1:80", "hello");

    let load = Load::new(&[&old, &new]);
    let (lab, load) = (&lab, &load);
    thread::scope(|scope| {
        for port in [80, 443, 80, 443] {
            scope.spawn(move || lab.client.run(|| load.make(port)).unwrap());
        }
        change(lab, &new);
        load.stop.store(true, Ordering::Relaxed);
    });
    let made = load.made.load(Ordering::Relaxed);
    println!(
        "{made} connections in {:.1} s, half of them with TLS, while everything changed",
        load.began.elapsed().as_secs_f32()
    );
    let failed = load.failed.lock().unwrap();
    assert!(
        failed.is_empty(),
        "{} of {made} failed: {:?}\n{}",
        failed.len(),
        &failed[..failed.len().min(5)],
        lab.log()
    );
    assert!(made > 500, "{made} connections are no load");
    assert_eq!(load.certificates.lock().unwrap().len(), 2, "the new certificate was shown, too");
}

/// Changes one thing after the other.
fn change(lab: &Lab, new: &CertifiedKey<KeyPair>) {
    let moment = || thread::sleep(MOMENT);
    moment();
    lab.api("PUT", &format!("{SECRETS}/shop"), &secret(new));
    moment();
    lab.change("web", &json!({"spec": {"ports": ports(&[("plain", 80), ("tls", 443), ("more", 8080)])}}));
    moment();
    lab.change("web", &json!({"spec": {"ports": ports(&[("plain", 80), ("tls", 443)])}}));
    moment();
    back(lab, BACKENDS[1]);
    lab.answers("192.0.2.1:80", BACKENDS[1]);
    lab.api("DELETE", &format!("{SLICES}/web-{}", BACKENDS[0]), &Value::Null);
    moment();
    for policy in ["ELBSecurityPolicy-TLS13-1-2-2021-06", "ELBSecurityPolicy-TLS-1-2-2017-01"] {
        lab.change("web", &annotated(&format!("{AWS}ssl-negotiation-policy"), policy));
        moment();
    }
    lab.change("web", &annotated("fairlead.dev/balance", "least"));
    moment();
    lab.change("web", &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}));
    moment();
    lab.change("web", &annotated(&format!("{AWS}connection-idle-timeout"), "30"));
    moment();
}

fn ports(all: &[(&str, u16)]) -> Value {
    all.iter().map(|(name, port)| json!({"name": name, "port": port, "targetPort": 8080})).collect()
}

fn secret(pair: &CertifiedKey<KeyPair>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
    })
}

/// A backend for all ports, in a slice of its own.
fn back(lab: &Lab, ip: &str) {
    let port = |name: &str| json!({"name": name, "port": 8080, "protocol": "TCP"});
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("web-{ip}"), "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": [ip], "nodeName": "here", "conditions": {"ready": true}}],
        "ports": [port("plain"), port("tls"), port("more")],
    });
    lab.api("POST", SLICES, &slice);
}

/// Clients, and what became of their connections.
struct Load {
    tls: Arc<ClientConfig>,
    stop: AtomicBool,
    began: Instant,
    made: AtomicUsize,
    failed: Mutex<Vec<String>>,
    /// Certificates that were shown.
    certificates: Mutex<BTreeSet<Vec<u8>>>,
}

impl Load {
    fn new(trusted: &[&CertifiedKey<KeyPair>]) -> Load {
        let mut roots = RootCertStore::empty();
        trusted.iter().for_each(|pair| roots.add(pair.cert.der().clone()).unwrap());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        // Each is to see the certificate.
        tls.resumption = rustls::client::Resumption::disabled();
        Load {
            tls: Arc::new(tls),
            stop: AtomicBool::new(false),
            began: Instant::now(),
            made: AtomicUsize::new(0),
            failed: Mutex::default(),
            certificates: Mutex::default(),
        }
    }

    /// Makes connections until told to stop.
    fn make(&self, port: u16) {
        let mut next = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            if let Err(error) = self.connect(port) {
                let at = self.began.elapsed().as_secs_f32();
                self.failed.lock().unwrap().push(format!("port {port} after {at:.2} s: {error}"));
            }
            self.made.fetch_add(1, Ordering::Relaxed);
            next = (next + PACE).max(Instant::now());
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn connect(&self, port: u16) -> io::Result<()> {
        let mut plain = TcpStream::connect_timeout(&SocketAddr::from(([192, 0, 2, 1], port)), Duration::from_secs(5))?;
        plain.set_read_timeout(Some(Duration::from_secs(5)))?;
        if port != 443 {
            return converse(&mut plain);
        }
        let name = ServerName::try_from("shop.example").unwrap();
        let mut stream = StreamOwned::new(ClientConnection::new(self.tls.clone(), name).unwrap(), plain);
        converse(&mut stream)?;
        let shown = stream.conn.peer_certificates().and_then(|chain| chain.first()).map(|first| first.to_vec());
        self.certificates.lock().unwrap().extend(shown);
        Ok(())
    }
}

fn converse(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(b"hello\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.ends_with("say hello") { Ok(()) } else { Err(io::Error::other(format!("heard {answer:?}"))) }
}
