//! `fairlead trace` as people call it: what it says, and with which code it exits.

use std::path::PathBuf;
use std::process::Command;

/// Two Nodes, a Pod on each, a Service with endpoints and one without.
const CLUSTER: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {addresses: [{type: InternalIP, address: 172.30.0.1}]}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: {addresses: [{type: InternalIP, address: 172.30.0.2}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {nodeName: n1}, status: {podIP: 10.244.1.7}}
- {apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {nodeName: n1}}
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec:
    type: NodePort
    clusterIP: 10.96.0.10
    clusterIPs: [10.96.0.10]
    externalTrafficPolicy: Local
    ports: [{name: http, port: 80, nodePort: 30080}, {name: dns, port: 53, protocol: UDP, nodePort: 30053}]
- apiVersion: v1
  kind: Service
  metadata: {name: empty, namespace: other}
  spec: {clusterIP: 10.96.0.11, clusterIPs: [10.96.0.11], ports: [{port: 80}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
  addressType: IPv4
  ports: [{name: http, port: 8080}, {name: dns, port: 5353, protocol: UDP}]
  endpoints: [{addresses: [10.244.1.5], nodeName: n1}]
"#;

struct Lab {
    _directory: tempfile::TempDir,
    file: PathBuf,
}

fn lab() -> Lab {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("cluster.yaml");
    std::fs::write(&file, CLUSTER).expect("a file");
    Lab { _directory: directory, file }
}

impl Lab {
    /// Runs it; returns the exit code and what it printed, to wherever.
    fn trace(&self, line: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead"));
        command.arg("trace").arg("--manifests").arg(&self.file).args(line.split_whitespace());
        let output = command.output().expect("the program runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().expect("no signal"), String::from_utf8_lossy(&text).into_owned())
    }

    fn check(&self, table: &[(&str, i32, &[&str])]) {
        for (line, code, words) in table {
            let (exited, text) = self.trace(line);
            assert_eq!(exited, *code, "{line}\n{text}");
            for word in *words {
                assert!(text.contains(word), "{line}: no {word:?} in\n{text}");
            }
        }
    }
}

#[test]
fn it_says_where_packets_go_and_which_rules_send_them_there() {
    lab().check(&[
        (
            "--from pod/x --to svc/web:http",
            0,
            &["on Node n1", "=> it goes to 10.244.1.5:8080", "dnat to 10.244.1.5:8080"],
        ),
        ("--from pod/default/x --to 10.96.0.10:80", 0, &["10.96.0.10:80/TCP is a cluster IP of default/web:http"]),
        ("--from pod/x --to svc/web:53", 0, &["UDP from 10.244.1.7", "5353"]),
        ("--from pod/x --to 10.96.0.10:53/udp --proxy-mode iptables", 0, &["FAIRLEAD-SERVICES"]),
        ("--from 198.51.100.7 --to 172.30.0.1:30080 --node n1", 0, &["coming in on eth0", "10.244.1.5:8080"]),
        ("--from node --node n1 --to svc/web:http", 0, &["TCP from 172.30.0.1", "sent by a process of it"]),
        ("--from pod/x --to svc/web:http --cluster-cidr 10.244.0.0/16", 0, &["it comes from a Pod"]),
    ]);
}

#[test]
fn it_says_why_packets_do_not_arrive() {
    lab().check(&[
        ("--from pod/x --to svc/other/empty", 1, &["there is no endpoint", "=> it is refused (TCP reset)"]),
        ("--from pod/x -n other --to svc/empty:80", 2, &["there is no Pod other/x"]),
        ("--from 198.51.100.7 --to 172.30.0.2:30080 --node n2", 1, &["policy Local", "=> it is dropped"]),
        ("--from pod/x --to 10.96.0.10:81", 1, &["has no such port", "=> it is refused"]),
        ("--from pod/x --to 192.0.2.1:80", 1, &["no Service is at 192.0.2.1:80/TCP", "=> it goes its way"]),
    ]);
}

#[test]
fn what_cannot_be_told_is_a_mistake() {
    lab().check(&[
        ("--from pod/y --to svc/web:http", 2, &["there is no Pod default/y"]),
        ("--from pod/new --to svc/web:http", 2, &["Pod default/new has no IP address"]),
        ("--from pod/x --to svc/none", 2, &["there is no Service default/none"]),
        ("--from pod/x --to svc/web", 2, &["name a port of Service default/web", "http 80/TCP, dns 53/UDP"]),
        ("--from pod/x --to svc/web:https", 2, &["Service default/web has no port https"]),
        ("--from node --node n3 --to svc/web:http", 2, &["there is no Node \"n3\"", "n1, n2"]),
        ("--from someone --to svc/web:http", 2, &["want pod/NAME, node, or an address"]),
        ("--from pod/x --to web", 2, &["want ADDRESS:PORT"]),
        ("--from pod/x --to [fd00::1]:80", 2, &["Pod default/x has no IPv6 address"]),
        ("--from pod/x --to svc/web:http --netns x", 2, &["--live"]),
        ("--from pod/x --to svc/web:http --live", 2, &["needs --netns"]),
        ("--from pod/x", 2, &["--to"]),
    ]);
}

#[test]
fn it_speaks_json() {
    let (code, text) = lab().trace("--from pod/x --to svc/web:http -o json");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(code, 0);
    assert_eq!(value["verdict"]["action"], "forward");
    assert_eq!(value["verdict"]["endpoints"][0]["address"], "10.244.1.5:8080");
    assert_eq!(value["packet"]["source"], "10.244.1.7");
    assert!(value["rules"].as_array().is_some_and(|rules| !rules.is_empty()), "{value:#}");
    let (code, text) = lab().trace("--from pod/x --to svc/other/empty -o json");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &value["verdict"]["action"]), (1, &serde_json::json!("reject")));
}
