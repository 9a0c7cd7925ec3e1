//! Endpoints that come and go under 64 clients: as long as every endpoint that is named is alive, no connection fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fairlead_testkit::https::connection::Connection;
use fairlead_testkit::{Server, full};

use super::lab::{CLIENTS, ENDPOINTS, FAIRLEAD, LIMIT, Lab, WEB, connect, lab, name, objects, slice};

/// Threads that connect all the time.
const THREADS: usize = 64;
/// How long each waits between two connections: endpoints are to be busy, not the machine.
const REST: Duration = Duration::from_millis(10);

/// Minimum number of connections that clients make while the endpoints change.
const ENOUGH: usize = 20 * THREADS;

/// Time after which the test gives up on clients that do not connect [`ENOUGH`] times.
const LONGEST: Duration = Duration::from_secs(300);

/// After so many changes the rules are waited for.
const ROUND: usize = 100;

/// What clients saw.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: AtomicUsize,
    pub(super) failed: AtomicUsize,
    pub(super) over: AtomicBool,
}

/// How a mode is tried.
struct Trial {
    mode: &'static str,
    flags: &'static [&'static str],
    /// Minimum number of changes of the endpoints. Changes go on until the clients have connected
    /// [`ENOUGH`] times, because a quick machine applies the minimum before they have.
    changes: usize,
    /// In so many changes at most they get into the kernel together.
    together: usize,
}

#[test]
fn no_connection_fails_while_endpoints_change_in_mode_nftables() {
    let changes = if full() { 10_000 } else { 1000 };
    check(
        "no_connection_fails_while_endpoints_change_in_mode_nftables",
        &Trial { mode: "nftables", flags: &[], changes, together: 4 },
    );
}

#[test]
fn no_connection_fails_while_endpoints_change_in_mode_iptables() {
    let changes = if full() { 5000 } else { 500 };
    // Else changes are gathered for a second.
    let flags = &["--iptables-min-sync-period=10ms"];
    check(
        "no_connection_fails_while_endpoints_change_in_mode_iptables",
        &Trial { mode: "iptables", flags, changes, together: 100 },
    );
}

#[test]
fn no_connection_fails_while_endpoints_change_in_mode_userspace() {
    let changes = if full() { 5000 } else { 500 };
    check(
        "no_connection_fails_while_endpoints_change_in_mode_userspace",
        &Trial { mode: "userspace", flags: &[], changes, together: 4 },
    );
}

fn check(test: &str, trial: &Trial) {
    let Some(lab) = lab(test) else { return };
    let (server, mut api) = serve(&lab);
    let kubeconfig = server.kubeconfig().display().to_string();
    let running = lab.spawn(trial.mode, &[&["--kubeconfig", &kubeconfig], trial.flags].concat());
    running.wait("the Service answers", || lab.who(WEB, CLIENTS[0]).is_ok());

    let seen = Seen::default();
    let mut changes = 0;
    let took = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lab, seen) = (&lab, &seen);
            scope.spawn(move || lab.clients.run(|| ask(CLIENTS[thread % CLIENTS.len()], seen)).unwrap());
        }
        let began = Instant::now();
        let more = || seen.connections.load(Ordering::Relaxed) <= ENOUGH && began.elapsed() < LONGEST;
        while changes < trial.changes || more() {
            for _ in 0..ROUND {
                changes += 1;
                put(&mut api, &some(changes));
            }
            // A busy machine programs fewer of them one by one.
            running.wait("the rules follow", || lab.syncs() >= changes / trial.together);
        }
        put(&mut api, &ENDPOINTS[7..]);
        running.wait("the last change is in", || {
            (0..8).all(|_| lab.who(WEB, CLIENTS[0]).is_ok_and(|who| who == ENDPOINTS[7]))
        });
        seen.over.store(true, Ordering::Relaxed);
        began.elapsed()
    });
    report(trial, changes, took, &seen, lab.syncs(), &running.log());
}

#[allow(clippy::print_stdout, reason = "how much was tried is worth reading")]
fn report(trial: &Trial, changes: usize, took: Duration, seen: &Seen, syncs: usize, log: &str) {
    let connections = seen.connections.load(Ordering::Relaxed);
    let failed = seen.failed.load(Ordering::Relaxed);
    let mode = trial.mode;
    println!(
        "mode {mode}: {changes} changes in {took:.1?}, {syncs} of the rules; {connections} connections, {failed} failed"
    );
    assert!(syncs >= changes / trial.together, "too few changes of the rules to tell: {syncs}");
    assert!(connections > ENOUGH, "too few connections to tell: {connections}");
    assert_eq!(failed, 0, "of {connections} connections in mode {mode} during {changes} changes\n{log}");
}

/// Connects again and again; an endpoint must say its name.
#[allow(clippy::print_stdout, reason = "the first failures help to find the mistake")]
pub(super) fn ask(client: u8, seen: &Seen) {
    while !seen.over.load(Ordering::Relaxed) {
        let answer = connect(WEB, client).and_then(|mut stream| name(&mut stream));
        seen.connections.fetch_add(1, Ordering::Relaxed);
        if !answer.as_ref().is_ok_and(|name| ENDPOINTS.contains(name)) {
            println!("{answer:?}");
            seen.failed.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(REST);
    }
}

/// Some of the endpoints, at least one, always others than the time before: the bits of a number that is never 0.
fn some(at: usize) -> Vec<u8> {
    let bits = (at * 37) % 255 + 1;
    ENDPOINTS.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, endpoint)| *endpoint).collect()
}

/// An API server with the Node and the Service web, which has all endpoints: inside, so that a proxy reaches it over loopback.
pub(super) fn serve(lab: &Lab) -> (Server, Connection) {
    let flags =
        ["--store", "memory", "--authorization-mode", "AlwaysAllow", "--service-cluster-ip-range", "10.96.0.0/16"];
    let server = lab.node.run(|| Server::start(FAIRLEAD, &flags)).unwrap();
    let mut api = lab.node.run(|| server.client().connect(LIMIT)).unwrap().unwrap();
    create(&mut api);
    (server, api)
}

fn create(api: &mut Connection) {
    for object in objects().iter().filter(|object| object["metadata"]["name"] == "web") {
        send(api, "POST", "/api/v1/namespaces/default/services", &object.to_string());
    }
    let node = &objects()[0];
    send(api, "POST", "/api/v1/nodes", &node.to_string());
    send(api, "POST", SLICES, &slice("web", &ENDPOINTS).to_string());
}

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

fn put(api: &mut Connection, endpoints: &[u8]) {
    send(api, "PUT", &format!("{SLICES}/web-1"), &slice("web", endpoints).to_string());
}

fn send(api: &mut Connection, method: &str, path: &str, body: &str) {
    let answer = api.send(method, path, "application/json", body.as_bytes()).unwrap();
    assert!(answer.status < 300, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
}
