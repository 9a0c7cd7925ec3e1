//! What is kept of annotations that made sense, and what is made of it when they do not.

use serde_json::json;

use super::*;
use crate::spec::{Path, good, names, read, recall};

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
        Some(r#"{"service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout":"7"}"#)
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
        let mut service = kept(annotations, Some(annotations).filter(|all| !all.is_empty()));
        let port =
            |(index, protocol): (usize, &&str)| json!({"port": 80 + index, "name": protocol, "protocol": protocol});
        service.spec.ports = serde_json::from_value(protocols.iter().enumerate().map(port).collect()).unwrap();
        let found = recalled(&service).map(|spec| spec.listeners.iter().map(|one| one.port).collect::<Vec<_>>());
        (read(&service, &Options::default()).is_err(), found)
    };
    assert_eq!(ports(&["TCP", "UDP"], &[IDLE]), (true, Some(vec![80])));
    assert_eq!(ports(&["UDP", "TCP", "SCTP"], &[IDLE]), (true, Some(vec![81])));
    assert_eq!(ports(&["UDP"], &[IDLE]), (true, None));
    assert_eq!(ports(&["TCP", "SCTP"], &[]), (true, Some(vec![80])));
}
