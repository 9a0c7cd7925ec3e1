//! Can anything make the server wait for ever? A client that stops half way, a store that stops answering, and writes that
//! need the same lock twice.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::connection::{Connection, Raw};
use fairlead_testkit::{Etcd, Server, need};
use serde_json::{Value, json};

use super::{PATIENCE, server};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn connect(server: &Server) -> Connection {
    server.client().connect(PATIENCE).expect("the server listens")
}

fn create(connection: &mut Connection, service: &Value) -> Raw {
    let sent = connection.send("POST", SERVICES, "application/json", service.to_string().as_bytes());
    sent.expect("the server answers")
}

fn node_port_service(name: &str, finalizers: &[&str]) -> Value {
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": spec})
}

/// The words kube-apiserver has for a request that took too long.
fn assert_timed_out(answer: &Raw) {
    let status = answer.json();
    assert_eq!(answer.status, 504, "{status}");
    assert_eq!(status["reason"], "Timeout", "{status}");
    assert_eq!(status["message"], "Timeout: request did not complete within the allotted timeout", "{status}");
}

#[test]
fn a_service_goes_with_its_last_finalizer_and_gives_its_node_port_back() {
    let server = server(&["--store", "memory"]);
    let mut connection = connect(&server);
    let made = create(&mut connection, &node_port_service("held", &["example.com/hold"]));
    assert_eq!(made.status, 201, "{}", made.json());
    let port = made.json()["spec"]["ports"][0]["nodePort"].clone();
    let path = format!("{SERVICES}/held");
    let mut send = |method, media, body: &str| {
        let sent = connection.send(method, &path, media, body.as_bytes());
        sent.expect("the server answers").status
    };
    assert_eq!(send("DELETE", "application/json", ""), 200);
    assert_eq!(send("PATCH", "application/merge-patch+json", r#"{"metadata":{"finalizers":null}}"#), 200);
    assert_eq!(send("GET", "application/json", ""), 404);
    let mut again = node_port_service("other", &[]);
    again["spec"]["ports"][0]["nodePort"] = port;
    let made = create(&mut connection, &again);
    assert_eq!(made.status, 201, "{}", made.json());
}

#[test]
fn a_body_that_never_ends_is_given_up() {
    let server = server(&["--store", "memory", "--request-timeout", "1s"]);
    let mut connection = connect(&server);
    let head = "Content-Type: application/json\r\nContent-Length: 100\r\n";
    let answer = connection.exchange("POST", SERVICES, head, b"{").expect("the server answers");
    assert_timed_out(&answer);
    assert_eq!(create(&mut connect(&server), &node_port_service("after", &[])).status, 201);
}

#[test]
fn requests_to_an_etcd_that_does_not_answer_end_in_time() {
    let test = "requests_to_an_etcd_that_does_not_answer_end_in_time";
    if !need(test, "etcd") {
        return;
    }
    let etcd = Etcd::start();
    let server = server(&["--etcd-servers", &etcd.url(), "--request-timeout", "3s"]);
    signal(&etcd, "STOP");
    thread::scope(|scope| {
        // Each needs the node-port map, which only one can have at a time.
        for number in 0..8 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = connect(server);
                let began = Instant::now();
                assert_timed_out(&create(&mut connection, &node_port_service(&format!("late-{number}"), &[])));
                assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
            });
        }
    });
    signal(&etcd, "CONT");
    let mut connection = connect(&server);
    let deadline = Instant::now() + Duration::from_secs(30);
    while create(&mut connection, &node_port_service("after", &[])).status >= 500 {
        assert!(Instant::now() < deadline, "the server does not recover:\n{}", server.log());
    }
}

#[test]
fn a_watch_lasts_as_long_as_asked_within_reason() {
    let server = server(&["--store", "memory"]);
    for (seconds, ends) in [("-5", true), ("1", true), ("9223372036854775807", false)] {
        let path = format!("/api/v1/services?watch=1&timeoutSeconds={seconds}&resourceVersion=1");
        let connection = server.client().connect(Duration::from_secs(4)).expect("the server listens");
        let mut lines = connection.follow(&path).expect("the server answers").expect("a watch");
        let ended = lines.try_for_each(|line| line.map(drop));
        assert_eq!(ended.is_ok(), ends, "{seconds}: {ended:?}");
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

fn signal(etcd: &Etcd, name: &str) {
    let pid = etcd.pid().expect("it runs").to_string();
    let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("there is a kill");
    assert!(status.success());
}
