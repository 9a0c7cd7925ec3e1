//! What Services ask for. Tables look at one part of the result each.

use fairlead_api::view::Service;
use serde_json::{Value, json};

use super::*;

mod annotations;
mod documents;
mod fields;
mod good;
mod listeners;
mod rules;

/// The Service the tests begin with.
fn web() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "12345678-9abc-def0-1234-56789abcdef0", "annotations": {}},
        "spec": {"type": "LoadBalancer", "ports": [
            {"name": "http", "port": 80, "nodePort": 30080},
            {"name": "https", "port": 443, "nodePort": 30443},
            {"name": "alt", "port": 8443, "nodePort": 30843},
        ]},
    })
}

fn annotated(annotations: &[(&str, &str)]) -> Service {
    let mut service = web();
    for (name, text) in annotations {
        service["metadata"]["annotations"][*name] = json!(text);
    }
    serde_json::from_value(service).expect("a Service")
}

fn options() -> Options {
    Options { groups: vec!["sg-53fae93f".to_owned(), "sg-42efd82e".to_owned()], sctp: false }
}

fn read_ok(service: &Service) -> Spec {
    read(service, &options()).unwrap_or_else(|refusals| panic!("refused: {refusals:?}"))
}

fn scheme(spec: &Spec) -> String {
    format!("{:?}", spec.scheme)
}

fn tls(spec: &Spec) -> String {
    let tls = |listener: &Listener| listener.tls.as_ref().map(|tls| format!("{}={}", listener.port, tls.certificate));
    spec.listeners.iter().filter_map(tls).collect::<Vec<_>>().join(" ")
}

fn policy(spec: &Spec) -> String {
    spec.listeners[0].tls.as_ref().map(|tls| tls.policy.name.clone()).unwrap_or_default()
}

fn behind(spec: &Spec) -> String {
    let Listener { speaks, reencrypt, .. } = spec.listeners[0];
    format!("{:?} {speaks:?} {}", spec.path, if reencrypt { "TLS" } else { "plain" })
}

fn proxy(spec: &Spec) -> String {
    let all: Vec<_> = spec.listeners.iter().map(|listener| (listener.send_proxy, listener.accept_proxy)).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "all ports are alike");
    format!("{:?} {:?}", spec.path, all[0])
}

fn log(spec: &Spec) -> String {
    let log = |log: &AccessLog| format!("{}|{}|{}", log.bucket, log.prefix, log.interval.as_secs() / 60);
    spec.access_log.as_ref().map(log).unwrap_or_default()
}

fn drain(spec: &Spec) -> String {
    format!("{:?} {:?}", spec.path, spec.drain.map(|drain| drain.as_secs()))
}

fn idle(spec: &Spec) -> String {
    format!("{:?} {}", spec.path, spec.idle.as_secs())
}

fn zone(spec: &Spec) -> String {
    format!("{:?} {}", spec.path, spec.cross_zone)
}

fn tags(spec: &Spec) -> String {
    format!("{:?}", spec.tags)
}

fn check(spec: &Spec) -> String {
    let Check { how, port, healthy, unhealthy, interval, timeout } = &spec.check;
    let (interval, timeout) = (interval.as_secs(), timeout.as_secs());
    format!("{:?} {healthy} {unhealthy} {interval} {timeout} {port:?} {how:?}", spec.path)
}

fn sources(spec: &Spec) -> String {
    let ranges: Vec<_> = spec.sources.ranges.iter().map(ToString::to_string).collect();
    format!("{:?} {} {}", spec.path, ranges.join(","), spec.sources.groups.join(","))
}

fn choice(spec: &Spec) -> String {
    format!("{:?} {:?}", spec.path, spec.choice)
}

fn age(spec: &Spec) -> String {
    format!("{:?}", spec.age.map(|age| age.as_secs()))
}

fn connect(spec: &Spec) -> String {
    spec.connect.to_string()
}
