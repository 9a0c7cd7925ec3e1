//! The past as somebody at a keyboard asks for it: Pods come and go, the server is killed, the disk is full, and `fairlead history`
//! and `fairlead diff` tell.

mod changes;
mod kills;
mod room;

use std::process::Command;
use std::time::{Duration, Instant};

use fairlead_testkit::{Etcd, Server, need};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn pods_come_and_go_and_the_history_tells() {
    let server = Server::start(PROGRAM, &["--controllers=*,-node-lifecycle-controller"]);
    begun(&server);
    node(&server);
    make(&server, "services", service());
    pod(&server, "web-1", "10.244.0.5");
    for want in [
        "endpoint 10.244.0.5:9376 (Pod web-1) joined",
        "Service default/web created",
        "port 80/TCP -> 9376",
        "selector app=web",
        "Pod web-1 became ready",
    ] {
        until(&server, &["svc/web"], want);
    }
    let then = settled(&server);

    pod(&server, "web-2", "10.244.0.6");
    delete(&server, "pods", "web-1");
    patch(&server, "services", "web", json!({"spec": {"ports": [{"port": 80, "targetPort": 9377}]}}));
    for want in [
        "spec.ports[0].targetPort: 9376 -> 9377",
        "endpoint 10.244.0.6:9377 (Pod web-2) joined",
        "Pod default/web-1 deleted",
    ] {
        until(&server, &["svc/web"], want);
    }

    let (code, told, _) = fairlead(&server, &["diff", "svc/web", "--since", &then]);
    assert_eq!(code, 1, "{told}");
    for want in [
        "-    targetPort: 9376",
        "+    targetPort: 9377",
        "+10.244.0.6:9377  Pod web-2",
        "-web-1  10.244.0.5",
        "+web-2  10.244.0.6",
    ] {
        assert!(told.contains(want), "{want}:\n{told}");
    }
    let (code, told, _) = fairlead(&server, &["history", "svc/web", "--at", &then]);
    assert_eq!(code, 0);
    for want in ["in rotation: 1 of 1 endpoints", "+ 10.244.0.5:9376  Pod web-1", "targetPort: 9376"] {
        assert!(told.contains(want), "{want}:\n{told}");
    }
    assert!(!told.contains("10.244.0.6"), "{told}");
}

#[test]
fn a_server_that_is_killed_goes_on_with_its_history() {
    let mut server = Server::start(PROGRAM, &[]);
    begun(&server);
    make(&server, "services", service());
    until(&server, &["svc/web"], "Service default/web created");
    for port in 1..50 {
        patch(&server, "services", "web", json!({"spec": {"ports": [{"port": 80, "targetPort": port}]}}));
    }
    server.restart();
    patch(&server, "services", "web", json!({"spec": {"ports": [{"port": 80, "targetPort": 99}]}}));
    let told = until(&server, &["svc/web", "--limit", "1000"], "targetPort: 49 -> 99");
    assert!(told.contains("Service default/web created"), "{told}");
    assert!(!told.contains("may be missing"), "the store still had what was not yet written:\n{told}");
    let steps = (1..49).filter(|port| told.contains(&format!("targetPort: {port} -> {}\n", port + 1)));
    assert_eq!(steps.count(), 48, "{told}");
    delete(&server, "services", "web");
    let told = until(&server, &["svc/web"], "Service default/web deleted");
    let deleted = told.lines().find(|line| line.contains("deleted")).expect("it is there");
    assert!(deleted.contains("(admin)"), "who did it is told: {deleted}");
}

#[test]
fn what_cannot_be_told_says_why() {
    let server = Server::start(PROGRAM, &[]);
    begun(&server);
    let check = |arguments: &[&str], code: i32, want: &str| {
        let (ended, out, error) = fairlead(&server, arguments);
        assert_eq!(ended, code, "{arguments:?}: {out}{error}");
        assert!(error.contains(want), "{arguments:?}: {error}");
    };
    check(&["diff", "svc/web", "--since", "2020-01-01T00:00:00Z"], 2, "the history begins at");
    check(&["diff", "svc/frist", "--since", "1ms"], 2, "knows no svc/default/frist; did you mean svc/default/first?");
    check(&["diff", "pod/first", "--since", "1ms"], 2, "knows no pod/default/first; `fairlead history` shows");
    let then = jiff_now();
    make(&server, "services", service());
    delete(&server, "services", "web");
    until(&server, &["svc/web"], "Service default/web deleted");
    check(&["diff", "svc/web", "--since", &then], 0, "");
    check(&["history", "svc/web", "--at", "soon"], 1, "\"soon\" is no time");
    check(&["history", "secret/s"], 1, "no kind whose past is kept");
    let (code, out, _) = fairlead(&server, &["history", "svc/nobody", "-o", "json"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &answer["items"]), (0, &json!([])));

    let server = Server::start(PROGRAM, &["--history-size=0"]);
    let (code, _, error) = fairlead(&server, &["history"]);
    assert_eq!(code, 1);
    assert!(error.contains("no history is kept"), "{error}");
    assert!(!server.data_dir().join("history").exists());
}

#[test]
fn servers_on_etcd_have_a_history_too() {
    if !need("servers_on_etcd_have_a_history_too", "etcd") {
        return;
    }
    let etcd = Etcd::start();
    let urls = format!("--etcd-servers={}", etcd.url());
    let server = Server::start(PROGRAM, &[&urls]);
    begun(&server);
    make(&server, "services", service());
    patch(&server, "services", "web", json!({"spec": {"ports": [{"port": 80, "targetPort": 7}]}}));
    until(&server, &["svc/web"], "spec.ports[0].targetPort: 9376 -> 7");
}

fn service() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 9376}]}})
}

/// Waits until changes are kept: what is there when the history begins is not told as new.
fn begun(server: &Server) {
    let mut object = service();
    object["metadata"]["name"] = json!("first");
    make(server, "services", object);
    let began = Instant::now();
    for port in 1.. {
        patch(server, "services", "first", json!({"spec": {"ports": [{"port": 80, "targetPort": port}]}}));
        std::thread::sleep(Duration::from_millis(100));
        let url = "/fairlead/v1/history?subject=svc/default/first";
        let told = server.client().get(url).expect("an answer").body;
        if told.contains("targetPort") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{told}\n{}", server.log());
    }
}

/// A time since which another Service has changed, and nothing about Service web, so that there is no difference: controllers may have
/// something to do for a while.
fn settled(server: &Server) -> String {
    let began = Instant::now();
    for port in 1000.. {
        let then = jiff_now();
        patch(server, "services", "first", json!({"spec": {"ports": [{"port": 80, "targetPort": port}]}}));
        until(server, &["svc/first"], &format!("-> {port}\n"));
        let (code, difference, error) = fairlead(server, &["diff", "svc/web", "--since", &then]);
        if (code, difference.as_str()) == (0, "") {
            return then;
        }
        assert!(code == 1 && began.elapsed() < PATIENCE, "{difference}{error}");
    }
    unreachable!("it returns, or is out of patience")
}

fn node(server: &Server) {
    let node = json!({"metadata": {"name": "n1"}});
    let answer = server.client().request("POST", "/api/v1/nodes", &node.to_string()).expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// A Pod as one who runs it would report it: ready at an address.
fn pod(server: &Server, name: &str, address: &str) {
    let containers = json!([{"name": "c", "image": "i"}]);
    make(
        server,
        "pods",
        json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"nodeName": "n1", "containers": containers}}),
    );
    let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    patch(server, "pods", &format!("{name}/status"), status);
}

fn path(resource: &str, rest: &str) -> String {
    format!("/api/v1/namespaces/default/{resource}{rest}")
}

fn make(server: &Server, resource: &str, object: Value) {
    let answer = server.client().request("POST", &path(resource, ""), &object.to_string()).expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// Replaces some parts of an object; again, if others were quicker.
fn patch(server: &Server, resource: &str, name: &str, patch: Value) {
    let url = path(resource, &format!("/{name}"));
    loop {
        let answer = server.client().get(&url).expect("an answer");
        let mut object: Value = serde_json::from_str(&answer.body).expect("JSON");
        for (part, fields) in patch.as_object().expect("parts") {
            for (field, value) in fields.as_object().expect("fields") {
                object[part][field] = value.clone();
            }
        }
        let answer = server.client().request("PUT", &url, &object.to_string()).expect("an answer");
        if answer.status != 409 {
            assert_eq!(answer.status, 200, "{}", answer.body);
            return;
        }
    }
}

fn delete(server: &Server, resource: &str, name: &str) {
    let url = path(resource, &format!("/{name}?gracePeriodSeconds=0"));
    let answer = server.client().request("DELETE", &url, "").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// Asks for the past until it tells something.
fn until(server: &Server, arguments: &[&str], want: &str) -> String {
    let began = Instant::now();
    loop {
        let (_, told, error) = fairlead(server, &[&["history"], arguments].concat());
        if told.contains(want) {
            return told;
        }
        assert!(began.elapsed() < PATIENCE, "{want}:\n{told}{error}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs a command: its code, what it printed, what it complained about.
fn fairlead(server: &Server, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).arg("--kubeconfig").arg(server.kubeconfig());
    let output = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A whole time, as `--at` and `--since` take it.
fn jiff_now() -> String {
    jiff::Timestamp::now().to_string()
}
