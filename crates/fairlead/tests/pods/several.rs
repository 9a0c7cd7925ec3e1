//! A cluster of three machines on one network: one with `fairlead up`, two that join it.

use std::fs;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::need;
use tempfile::TempDir;

use super::machine::{Machine, possible};

const SERVER: &str = "https://192.0.2.1:6443";
const NAMES: [&str; 3] = ["first", "second", "third"];

/// Three machines and what is between them.
struct Cluster {
    first: Machine,
    second: Machine,
    third: Machine,
    _between: Namespace,
}

fn shell(namespace: &Namespace, line: &str) {
    let done = namespace.run(|| Command::new("sh").args(["-ec", line]).status()).unwrap().unwrap();
    assert!(done.success(), "{line}");
}

/// A switch, which is also the router of its network, 192.0.2.0/24.
fn switch() -> Namespace {
    let switch = Namespace::unnamed().unwrap();
    let lines = "ip link set lo up; ip link add switch type bridge; ip link set switch up; \
                 ip address add 192.0.2.254/24 dev switch; echo 1 > /proc/sys/net/ipv4/ip_forward";
    shell(&switch, lines);
    switch
}

/// A machine with this address, at the switch if it is of its network, else at the router.
fn plug(between: &Namespace, address: &str) -> Namespace {
    let machine = Namespace::unnamed().unwrap();
    let (network, number) = address.rsplit_once('.').unwrap();
    let port = format!("port{number}");
    between.run(|| Links::open().unwrap().add_veth(&port, "way", Some(machine.as_fd()))).unwrap().unwrap();
    match network {
        "192.0.2" => shell(between, &format!("ip link set {port} master switch up")),
        _ => shell(between, &format!("ip link set {port} up; ip address add {network}.254/24 dev {port}")),
    }
    shell(
        &machine,
        &format!(
            "ip link set lo up; ip link set way up; ip address add {address}/24 dev way; \
             ip route add default via {network}.254"
        ),
    );
    machine
}

/// The machines first, at 192.0.2.1, second and third.
fn cluster(test: &str, second: &str, third: &str) -> Option<Cluster> {
    if !possible(test) {
        return None;
    }
    let between = switch();
    let up = ["up", "--hostname-override", "first", "--bind-address=192.0.2.1", "--node-monitor-grace-period=15s"];
    let first = Machine::start(plug(&between, "192.0.2.1"), &up);
    first.wait_ready();
    let data = first.path("data").display().to_string();
    let token = first.fairlead(&["token", "--data-dir", &data]).fine();
    let join = |address: &str, name: &str| {
        let words = ["join", "--server", SERVER, "--token", token.trim(), "--hostname-override", name];
        Machine::start(plug(&between, address), &words)
    };
    let (second, third) = (join(second, "second"), join(third, "third"));
    let cluster = Cluster { first, second, third, _between: between };
    for name in ["second", "third"] {
        let node = format!("node/{name}");
        let ready = ["wait", "--for=condition=Ready", "--timeout=1s", &node];
        cluster.wait(&format!("{name} is ready"), || cluster.first.kubectl(&ready).code == 0);
    }
    for node in NAMES {
        cluster.serve(node);
    }
    for node in NAMES {
        cluster.wait(&format!("svc-{node} is ready"), || cluster.ready(node, "true"));
    }
    Some(cluster)
}

impl Cluster {
    #[track_caller]
    fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !holds() {
            let logs = [&self.first, &self.second, &self.third].map(Machine::log).join("\n---\n");
            assert!(Instant::now() < until, "not in time: {what}\n{logs}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The Pod web-NODE, which says its name, and the Service svc-NODE in front of it.
    fn serve(&self, node: &str) {
        let manifest = format!(
            "apiVersion: v1\n\
             kind: Pod\n\
             metadata: {{name: web-{node}, labels: {{app: web-{node}}}}}\n\
             spec:\n  \
               nodeSelector: {{kubernetes.io/hostname: {node}}}\n  \
               containers:\n  \
               - name: web\n    \
                 image: host\n    \
                 workingDir: /etc\n    \
                 command: [python3, -u, -m, http.server, --bind, '::', '9376']\n    \
                 readinessProbe: {{httpGet: {{path: /, port: 9376}}, periodSeconds: 1}}\n\
             ---\n\
             apiVersion: v1\n\
             kind: Service\n\
             metadata: {{name: svc-{node}}}\n\
             spec: {{selector: {{app: web-{node}}}, ports: [{{port: 80, targetPort: 9376}}]}}\n"
        );
        self.first.apply(&manifest, &["apply", "-f", "-"]).fine();
    }

    /// From a Pod of each machine, each Service by its name: most endpoints are on another machine.
    fn all_reach_all(&self) {
        for from in NAMES {
            for to in NAMES {
                let line = format!("curl -sS -m 5 http://svc-{to}/hostname");
                let exec = ["exec", &format!("web-{from}"), "--", "sh", "-c", &line];
                self.wait(&format!("web-{to} answers web-{from}"), || {
                    self.first.kubectl(&exec).out == format!("web-{to}\n")
                });
            }
        }
    }

    fn ready(&self, node: &str, want: &str) -> bool {
        let path = "jsonpath={.items[0].endpoints[0].conditions.ready}";
        let label = format!("kubernetes.io/service-name=svc-{node}");
        self.first.kubectl(&["get", "endpointslices", "-l", &label, "-o", path]).out == want
    }
}

#[test]
fn three_machines_are_one_cluster() {
    let test = "three_machines_are_one_cluster";
    let Some(mut cluster) = cluster(test, "192.0.2.2", "192.0.2.3") else { return };
    cluster.all_reach_all();
    // On a machine itself, too.
    let ip = cluster.first.kubectl(&["get", "service", "svc-third", "-o", "jsonpath={.spec.clusterIP}"]).fine();
    assert_eq!(cluster.second.shell(&format!("curl -sS -m 5 http://{ip}/hostname")).fine(), "web-third\n");
    // A Pod keeps its address on the way.
    let pod = cluster.first.kubectl(&["get", "pod", "web-second", "-o", "jsonpath={.status.podIP}"]).fine();
    let log = cluster.first.kubectl(&["logs", "web-third"]).fine();
    assert!(log.contains(&format!("{pod} - - ")), "{pod}: {log}");

    // kubectl's ways into a Pod elsewhere.
    assert!(log.starts_with("Serving HTTP on"), "{log}");
    assert_eq!(cluster.first.apply("typed", &["exec", "-i", "web-second", "--", "cat"]).fine(), "typed");
    assert_eq!(cluster.first.kubectl(&["exec", "web-third", "--", "sh", "-c", "exit 7"]).code, 7);
    // A Pod elsewhere calls the API with the token it was given.
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    let call = format!(
        "curl -sS -m 5 --cacert {account}/ca.crt -H \"Authorization: Bearer $(cat {account}/token)\" \
         https://kubernetes.default.svc/version"
    );
    assert!(cluster.first.kubectl(&["exec", "web-third", "--", "sh", "-c", &call]).fine().contains("gitVersion"));

    // What its parts counted is told through the server.
    let page = cluster.first.kubectl(&["get", "--raw", "/api/v1/nodes/second/proxy/metrics"]).fine();
    for metric in ["kubelet_running_pods 1\n", "coredns_dns_requests_total{", "process_resident_memory_bytes "] {
        assert!(page.contains(metric), "{metric}: {page}");
    }

    a_node_may_do_little(&cluster);
    every_proxy_answers_for_pods_that_end_elsewhere(&cluster);

    // Started again, a machine needs no token and finds its Pods.
    let started =
        |cluster: &Cluster| cluster.first.kubectl(&["exec", "web-second", "--", "stat", "-c", "%y", "/proc/1"]).out;
    let before = started(&cluster);
    assert!(!before.is_empty());
    cluster.second.restart();
    cluster.wait("the second machine is back", || started(&cluster) == before);
    assert!(cluster.first.log().contains("node=\"second\" user=\"system:node:second\""), "its certificate is renewed");

    // A machine that is gone: nobody is sent there any more.
    cluster.third.kill();
    let began = Instant::now();
    cluster.wait("its endpoint is not ready", || cluster.ready("third", "false"));
    println!("a dead machine's endpoint was not ready after {:?}", began.elapsed());
    assert!(cluster.ready("second", "true"));
    cluster.third.restart();
    cluster.wait("its endpoint is ready again", || cluster.ready("third", "true"));
}

#[test]
fn machines_of_other_networks_are_reached_through_a_tunnel() {
    let test = "machines_of_other_networks_are_reached_through_a_tunnel";
    let Some(cluster) = cluster(test, "198.51.100.2", "192.0.2.3") else { return };
    cluster.all_reach_all();
    let routes = cluster.first.shell("ip route show proto 207").fine();
    assert!(routes.contains("dev fl-vxlan0") && routes.contains("via 192.0.2.3 dev way"), "{routes}");
    // No machine has an IPv6 address here; their Pods have.
    let path = "jsonpath={.status.podIPs[1].ip}";
    let ip = cluster.first.kubectl(&["get", "pod", "web-third", "-o", path]).fine();
    // More than fits into one packet of the outer network.
    let line = format!("curl -gsS -m 5 'http://[{ip}]:9376/services' | cmp - /etc/services && echo fine");
    cluster.wait("IPv6 goes through the tunnel", || {
        cluster.first.kubectl(&["exec", "web-second", "--", "sh", "-c", &line]).out == "fine\n"
    });
}

/// A Pod that ends waits until the proxies of all machines send nothing to it any more. On a quiet
/// machine that takes a millisecond whether they are waited for or not, so the Leases by which they
/// answer are looked at.
fn every_proxy_answers_for_pods_that_end_elsewhere(cluster: &Cluster) {
    let path = r"jsonpath={.metadata.annotations.fairlead\.dev/programmed-revision}";
    let answered = |node: &str| -> u64 {
        let lease = format!("fairlead-proxy-{node}");
        let revision = cluster.first.kubectl(&["get", "lease", "-n", "kube-system", &lease, "-o", path]).out;
        revision.parse().unwrap_or(0)
    };
    for ends in NAMES {
        let pod = format!("web-{ends}");
        let version = ["get", "pod", &pod, "-o", "jsonpath={.metadata.resourceVersion}"];
        let before: u64 = cluster.first.kubectl(&version).fine().parse().unwrap();
        cluster.first.kubectl(&["delete", "pod", &pod]).fine();
        for node in NAMES {
            let what = format!("the proxy of {node} answers for web-{ends}");
            cluster.wait(&what, || answered(node) > before);
        }
        cluster.serve(ends);
        cluster.wait(&format!("svc-{ends} is ready again"), || cluster.ready(ends, "true"));
    }
    for machine in [&cluster.second, &cluster.third] {
        let log = machine.log();
        assert!(!log.contains("is forbidden"), "{log}");
    }
}

/// With the credentials of the second machine, on it.
fn a_node_may_do_little(cluster: &Cluster) {
    let first = &cluster.first;
    first.kubectl(&["create", "secret", "generic", "strange", "--from-literal=a=b"]).fine();
    let data = cluster.second.path("data/node.kubeconfig").display().to_string();
    let node = |words: &[&str]| cluster.second.kubectl(&[&["--kubeconfig", &data], words].concat());
    assert!(node(&["get", "nodes", "-o", "name"]).fine().contains("node/third"));
    assert!(node(&["get", "services"]).fine().contains("svc-third"));
    for forbidden in [
        &["get", "secrets", "-A"][..],
        &["get", "secret", "strange"],
        &["label", "node", "third", "a=b"],
        &["patch", "node", "third", "--subresource=status", "--type=merge", "-p", r#"{"status":{"phase":"x"}}"#],
        &["patch", "node", "second", "--type=merge", "-p", r#"{"spec":{"unschedulable":true}}"#],
        &["delete", "node", "third"],
        &["delete", "pod", "web-third"],
        &["patch", "lease", "-n", "kube-node-lease", "third", "--type=merge", "-p", r#"{"spec":{"renewTime":null}}"#],
        &[
            "patch",
            "pod",
            "web-third",
            "--subresource=status",
            "--type=merge",
            "-p",
            r#"{"status":{"phase":"Failed"}}"#,
        ],
        &["create", "service", "clusterip", "mine", "--tcp=80"],
        &["create", "token", "kube-dns", "-n", "kube-system"],
    ] {
        let said = node(forbidden);
        assert!(said.code != 0 && said.err.to_lowercase().contains("forbidden"), "{forbidden:?}: {said:?}");
    }
    node(&["label", "node", "second", "a=b"]).fine();
    let other = r#"{"node": "third", "request": ""}"#;
    let said = cluster.second.apply(other, &["--kubeconfig", &data, "create", "--raw", "/fairlead/join", "-f", "-"]);
    assert!(said.err.contains("gets no certificate of another"), "{said:?}");
}

#[test]
fn a_machine_joins_only_the_server_it_means_and_by_a_name_nobody_has() {
    let test = "a_machine_joins_only_the_server_it_means_and_by_a_name_nobody_has";
    if !possible(test) {
        return;
    }
    let between = switch();
    let up = ["up", "--hostname-override", "first", "--bind-address=192.0.2.1"];
    let first = Machine::start(plug(&between, "192.0.2.1"), &up);
    first.wait_ready();
    let data = first.path("data").display().to_string();
    let token = first.fairlead(&["token", "--data-dir", &data]).fine();
    let token = token.trim();
    let command = first.fairlead(&["token", "--join-command", "--data-dir", &data]).fine();
    assert_eq!(command, format!("fairlead join --server {SERVER} --token {token}\n"));

    let elsewhere = first.path("elsewhere").display().to_string();
    let refused = |token: &str, name: &str, why: &str| {
        let words =
            ["join", "--server", SERVER, "--token", token, "--hostname-override", name, "--data-dir", &elsewhere];
        let said = first.fairlead(&words);
        assert!(said.code == 1 && said.err.contains(why), "{said:?}");
    };
    let (secret, pin) = token.split_once('@').unwrap();
    refused(&format!("{secret}@sha256:00"), "second", "is not the server this token is for");
    refused(&format!("aaaaaa.aaaaaaaaaaaaaaaa@{pin}"), "second", "no such token");
    refused(token, "first", "a Node of this name is there");
    refused(token, "kubernetes", "the API server has this name");
    refused("x", "second", "as `fairlead token` prints it");
    // The token opens nothing else.
    let ask = |path: &str| {
        let line =
            format!("curl -sk -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {secret}' {SERVER}{path}");
        first.shell(&line).fine()
    };
    assert_eq!([ask("/api/v1/nodes"), ask("/api/v1/namespaces/kube-system/secrets")], ["403", "403"]);
    // Whoever deletes its Secret makes it worthless.
    let name = format!("bootstrap-token-{}", secret.split_once('.').unwrap().0);
    first.kubectl(&["delete", "secret", "-n", "kube-system", &name]).fine();
    refused(token, "second", "no such token");
}

/// An etcd at the switch, for the servers of all machines.
struct SwitchEtcd {
    child: Child,
    _data: TempDir,
}

impl SwitchEtcd {
    fn start(switch: &Namespace) -> SwitchEtcd {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(need::program("etcd").unwrap());
        command.arg("--data-dir").arg(data.path().join("etcd"));
        let url = "http://192.0.2.254:2379";
        command.args(["--listen-client-urls", url, "--advertise-client-urls", url, "--log-level", "error"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = switch.run(|| command.spawn()).unwrap().unwrap();
        let etcd = SwitchEtcd { child, _data: data };
        // A server ends if it cannot reach its etcd at the start.
        let end = Instant::now() + Duration::from_secs(60);
        while switch.run(|| TcpStream::connect("192.0.2.254:2379")).unwrap().is_err() {
            assert!(Instant::now() < end, "etcd does not listen");
            thread::sleep(Duration::from_millis(50));
        }
        etcd
    }
}

impl Drop for SwitchEtcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_machine_goes_on_with_another_server_when_the_one_it_joined_is_gone() {
    let test = "a_machine_goes_on_with_another_server_when_the_one_it_joined_is_gone";
    if !(possible(test) && need(test, "etcd")) {
        return;
    }
    let between = switch();
    let _etcd = SwitchEtcd::start(&between);
    let up = |address: &str, name: &str, prepare: &dyn Fn(&Path)| {
        let bind = format!("--bind-address={address}");
        let etcd = "--etcd-servers=http://192.0.2.254:2379";
        let words = ["up", "--hostname-override", name, &bind, etcd, "--node-monitor-grace-period=15s"];
        let machine = Machine::start_on(plug(&between, address), &words, prepare);
        machine.wait_ready();
        machine
    };
    let mut first = up("192.0.2.1", "first", &|_| {});
    let second = up("192.0.2.2", "second", &|home| {
        let pki = home.join("data/pki");
        fs::create_dir_all(&pki).unwrap();
        for name in ["ca.crt", "ca.key", "sa.key"] {
            fs::copy(first.path("data/pki").join(name), pki.join(name)).unwrap();
        }
    });
    let data = first.path("data").display().to_string();
    let token = first.fairlead(&["token", "--data-dir", &data]).fine();
    // It is told of one server.
    let words = ["join", "--server", SERVER, "--token", token.trim(), "--hostname-override", "third"];
    let third = Machine::start(plug(&between, "192.0.2.3"), &words);

    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(120);
        while !holds() {
            let logs = [&second, &third].map(Machine::log).join("\n---\n");
            assert!(Instant::now() < until, "not in time: {what}\n{logs}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let ready = |node: &str, want: &str| {
        let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        second.kubectl(&["get", "node", node, "-o", path]).out == want
    };
    wait("the third machine is ready", &|| ready("third", "True"));
    let known = || fs::read_to_string(third.path("data/node.json")).unwrap_or_default();
    wait("it knows the second server", &|| known().contains("https://192.0.2.2:6443"));

    first.kill();
    let service = ["create", "service", "clusterip", "late", "--tcp=80"];
    wait("the second server takes writes", &|| second.kubectl(&service).code == 0);
    let ip = second.kubectl(&["get", "service", "late", "-o", "jsonpath={.spec.clusterIP}"]).fine();
    wait("the third machine has rules for it", &|| third.shell("nft list ruleset").out.contains(&ip));
    // By then a Node that nothing is heard of is not ready any more.
    wait("the first machine is not ready", &|| ready("first", "Unknown"));
    wait("the third machine is ready still", &|| ready("third", "True"));
    let log = third.log();
    assert!(log.contains("going on with https://192.0.2.2:6443"), "{log}");
}
