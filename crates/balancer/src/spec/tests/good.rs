//! What is kept of annotations that made sense, and what is made of it when they do not.

use serde_json::json;

use super::*;
use crate::spec::{Path, good, last_good, names, read, recall};

/// A Service with these annotations, and what is kept of others.
fn kept(now: &[(&str, &str)], then: Option<&[(&str, &str)]>) -> Service {
    let mut service = annotated(now);
    if let Some(text) = then.map(|then| good(&annotated(then)).unwrap_or_else(|| "{}".to_owned())) {
        service.metadata.annotations.insert(names::LAST_GOOD.to_owned(), text);
    }
    service
}

fn recalled(service: &Service) -> Option<Spec> {
    recall(service, |service| read(service, &Options::default()))
}

const IDLE: (&str, &str) = (names::IDLE_TIMEOUT, "7");
const BAD: (&str, &str) = (names::IDLE_TIMEOUT, "99999");

#[test]
fn what_matters_is_kept() {
    let all = annotated(&[IDLE, ("other.example/x", "y"), (names::POOL, "lan"), (names::BALANCE, "")]);
    assert_eq!(
        good(&all).as_deref(),
        Some(
            r#"{"fairlead.dev/ports":"80/TCP,443/TCP,8443/TCP","service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout":"7"}"#
        )
    );
    assert_eq!(good(&annotated(&[("other.example/x", "y")])), None);
    // It is no annotation that means nothing.
    assert_eq!(read(&kept(&[IDLE], Some(&[IDLE])), &Options::default()).unwrap().notes, []);
}

#[test]
fn a_service_is_as_it_was_when_it_last_made_sense() {
    let check = |now: &[(&str, &str)], then: Option<&[(&str, &str)]>, expected: Option<(u64, Path)>| {
        let found = recalled(&kept(now, then)).map(|spec| (spec.idle.as_secs(), spec.path));
        assert_eq!(found, expected, "{now:?} {then:?}");
    };
    check(&[BAD], Some(&[IDLE]), Some((7, Path::Userspace)));
    check(&[BAD, (names::BALANCE, "least")], Some(&[IDLE]), Some((7, Path::Userspace)));
    check(&[], Some(&[IDLE]), Some((7, Path::Userspace)));
    // Nobody knows what it was.
    check(&[BAD], None, None);
    // It never made sense.
    check(&[BAD], Some(&[BAD]), None);
    let mut nonsense = annotated(&[BAD]);
    nonsense.metadata.annotations.insert(names::LAST_GOOD.to_owned(), "nonsense".to_owned());
    assert_eq!(recalled(&nonsense), None);
}

#[test]
fn ports_that_cannot_be_served_are_left_out() {
    let ports = |protocols: &[&str], annotations: &[(&str, &str)]| {
        let mut service = annotated(annotations);
        let port =
            |(index, protocol): (usize, &&str)| json!({"port": 80 + index, "name": protocol, "protocol": protocol});
        service.spec.ports = serde_json::from_value(protocols.iter().enumerate().map(port).collect()).unwrap();
        service.metadata.annotations.extend(good(&service).map(|text| (names::LAST_GOOD.to_owned(), text)));
        let found = recalled(&service).map(|spec| spec.listeners.iter().map(|one| one.port).collect::<Vec<_>>());
        (read(&service, &Options::default()).is_err(), found)
    };
    assert_eq!(ports(&["TCP", "UDP"], &[IDLE]), (true, Some(vec![80])));
    assert_eq!(ports(&["UDP", "TCP", "SCTP"], &[IDLE]), (true, Some(vec![81])));
    assert_eq!(ports(&["UDP"], &[IDLE]), (true, None));
    assert_eq!(ports(&["TCP", "SCTP"], &[]), (true, Some(vec![80])));
}

#[test]
fn ports_are_those_of_when_it_last_made_sense() {
    let listening = |then: &[(&str, &str)], now: &[(&str, &str)], text: fn(&Service) -> Option<String>| {
        let mut service = annotated(now);
        service.spec.ports.truncate(1);
        let mut before = annotated(then);
        before.spec.ports.truncate(1);
        service.metadata.annotations.extend(text(&before).map(|text| (names::LAST_GOOD.to_owned(), text)));
        service.spec.ports = annotated(now).spec.ports;
        let found = recalled(&service);
        found.map(|spec| spec.served().map(|one| (one.port, one.tls.is_some())).collect::<Vec<_>>()).unwrap_or_default()
    };
    let secured = (names::SSL_CERT, "web");
    // New ports are not known to be open, whatever is wrong with the annotations now.
    assert_eq!(listening(&[IDLE], &[BAD], last_good), [(80, false)]);
    assert_eq!(listening(&[], &[BAD], last_good), [(80, false)]);
    assert_eq!(listening(&[], &[BAD, secured], last_good), [(80, false)]);
    assert_eq!(listening(&[secured], &[BAD], last_good), [(80, true)]);
    // An older text does not name them: what asks for TLS now is not opened without it, and as
    // little if it is not known what asks.
    let older = |service: &Service| {
        let kept = crate::spec::relevant(service).into_iter().map(|(name, text)| (name, json!(text)));
        Some(serde_json::Value::Object(kept.collect()).to_string())
    };
    let all = [(80, false), (443, false), (8443, false)];
    assert_eq!(listening(&[IDLE], &[BAD], older), all);
    assert_eq!(listening(&[IDLE], &[BAD, secured], older), []);
    assert_eq!(listening(&[IDLE], &[BAD, secured, (names::SSL_PORTS, "443")], older), [(80, false), (8443, false)]);
    assert_eq!(listening(&[IDLE], &[secured, (names::SSL_PORTS, "444")], older), []);
    assert_eq!(listening(&[secured], &[BAD], older), [(80, true), (443, true), (8443, true)]);
}
