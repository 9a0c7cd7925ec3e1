use fairlead_api::source::Key;

use super::*;
use crate::backends::Backends;
use crate::serving::{Current, Serving};
use crate::spec::Spec;

fn shared() -> Arc<Shared> {
    let service = serde_json::from_value(serde_json::json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}));
    let spec: Spec = crate::spec::read(&service.expect("a Service"), &Default::default()).expect("nothing is wrong");
    let listener = spec.listeners[0].clone();
    let spec = Arc::new(Spec { service: Arc::new(Key::new("default", "web")), ..spec });
    let serving = Serving {
        spec,
        listener,
        addresses: Vec::new(),
        backends: Arc::new(Backends::new()),
        tls: None,
        reencrypt: None,
        log: None,
        sources: None,
        trusted: Arc::from([]),
    };
    Arc::new(Shared::new(Current::new(Arc::new(serving)), 1))
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn socket(port: u16) -> Socket {
    (at(port), TcpListener::bind("127.0.0.1:0").expect("a socket"))
}

/// Addresses left, opened, given up, and whether it ends.
type Told = (Vec<u16>, Vec<u16>, Vec<u16>, bool);

/// What is to be done after all of these.
fn told(orders: Vec<Command>) -> Option<Told> {
    let joined = orders.into_iter().fold(None, |waits: Option<Command>, next| match waits {
        Some(waits) => waits.join(next),
        None => Some(next),
    })?;
    let ports = |sockets: &[Socket]| sockets.iter().map(|(at, _)| at.port()).collect();
    let left = joined.left.iter().map(SocketAddr::port).collect();
    Some((left, ports(&joined.opened), ports(&joined.given_up), joined.stop))
}

#[test]
fn orders_for_a_listener_are_one() {
    let shared = shared();
    let serve = |new: bool, opened: &[u16], left: &[u16]| {
        let opened = opened.iter().map(|port| socket(*port)).collect();
        Command::serve(shared.clone(), new, opened, left.iter().map(|port| at(*port)).collect())
    };
    let stop = || Command::stop(shared.clone());
    assert_eq!(
        told(vec![serve(true, &[1, 2], &[]), serve(false, &[3], &[1])]),
        Some((vec![], vec![2, 3], vec![1], false))
    );
    // One that was there is left, opened anew, and left again.
    let changes = vec![serve(false, &[], &[1]), serve(false, &[1], &[]), serve(false, &[], &[1])];
    assert_eq!(told(changes), Some((vec![1], vec![], vec![1], false)));
    assert_eq!(told(vec![serve(false, &[1], &[2]), stop()]), Some((vec![2], vec![1], vec![], true)));
    // Of one that came and went the thread need not hear.
    assert_eq!(told(vec![serve(true, &[1], &[]), serve(false, &[2], &[]), stop()]), None);
}

#[test]
fn what_waits_for_a_thread_does_not_grow_with_changes() {
    let shared = shared();
    let changes = (0..100).flat_map(|_| {
        let opened = Command::serve(shared.clone(), false, vec![socket(1)], Vec::new());
        [opened, Command::serve(shared.clone(), false, Vec::new(), vec![at(1)])]
    });
    let (left, opened, given_up, _) = told(changes.collect()).expect("something to do");
    assert_eq!((left.len(), opened.len(), given_up.len()), (0, 0, GIVEN_UP));
}
