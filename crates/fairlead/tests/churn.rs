//! Thousands of Pods that become ready and unready at random: the slices are right at the end, what was written is in proportion
//! to what changed, and the memory of the server with its controllers does not grow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::connection::Connection;
use fairlead_testkit::{Server, full};
use serde_json::{Value, json};

const SERVICES: usize = 50;
const PODS: usize = 5_000;
const NODES: usize = 20;
const FLIPS_PER_MINUTE: usize = 1_000;
/// Flips as fast as they go, until what the server remembers of the past is as long as it gets.
const WARM_UP: usize = 3_000;
const CLIENTS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

#[test]
#[allow(clippy::print_stdout, reason = "writes and memory are worth knowing")]
fn after_thousands_of_flips_slices_are_right_and_memory_is_what_it_was() {
    let server = Server::start(env!("CARGO_BIN_EXE_fairlead"), &["--controllers=*"]);
    fill(&server);
    let mut ready = vec![true; PODS];
    wait_until_right(&server, &ready);

    flip(&server, &mut ready, WARM_UP, None);
    wait_until_right(&server, &ready);
    let before = resident(&server);
    let writes = count_writes(&server);
    let flips = FLIPS_PER_MINUTE * if full() { 180 } else { 20 } / 60;
    flip(&server, &mut ready, flips, Some(Duration::from_secs(60) / FLIPS_PER_MINUTE as u32));
    wait_until_right(&server, &ready);

    let (after, writes) = (resident(&server), writes.load(Ordering::Relaxed));
    println!(
        "{flips} flips: {writes} writes of slices, memory {} MiB before and {} MiB after",
        before >> 20,
        after >> 20
    );
    assert!(writes <= flips, "one flip is one slice: {writes} writes for {flips} flips");
    assert!(after < before + before / 10, "memory grew from {before} to {after} bytes");
}

fn connect(server: &Server) -> Connection {
    server.client().connect(PATIENCE).expect("the server is there")
}

fn send(connection: &mut Connection, method: &str, path: &str, body: &Value) -> Value {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let answer = connection.send(method, path, media, body.to_string().as_bytes()).expect("an answer");
    assert!(answer.status < 300, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

/// Nodes, Services, and a hundred ready Pods for each of them.
fn fill(server: &Server) {
    let mut connection = connect(server);
    for node in 0..NODES {
        send(&mut connection, "POST", "/api/v1/nodes", &json!({"metadata": {"name": format!("n{node}")}}));
    }
    for service in 0..SERVICES {
        let spec = json!({"selector": {"app": format!("s{service}")}, "ports": [{"port": 80}]});
        let service = json!({"metadata": {"name": format!("s{service}")}, "spec": spec});
        send(&mut connection, "POST", "/api/v1/namespaces/default/services", &service);
    }
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut connection = connect(server);
                for pod in (client..PODS).step_by(CLIENTS) {
                    let containers = json!([{"name": "c", "image": "none"}]);
                    let spec = json!({"nodeName": format!("n{}", pod % NODES), "containers": containers});
                    let labels = json!({"app": format!("s{}", pod % SERVICES)});
                    let object = json!({"metadata": {"name": format!("p{pod}"), "labels": labels}, "spec": spec});
                    send(&mut connection, "POST", "/api/v1/namespaces/default/pods", &object);
                    set_ready(&mut connection, pod, true);
                }
            });
        }
    });
}

fn ip(pod: usize) -> String {
    format!("10.244.{}.{}", pod / 250, 1 + pod % 250)
}

fn set_ready(connection: &mut Connection, pod: usize, ready: bool) {
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let status = json!({"phase": "Running", "podIP": ip(pod), "podIPs": [{"ip": ip(pod)}], "conditions": [condition]});
    let path = format!("/api/v1/namespaces/default/pods/p{pod}/status");
    send(connection, "PATCH", &path, &json!({"status": status}));
}

/// Turns Pods over at random, one every `pause`.
fn flip(server: &Server, ready: &mut [bool], count: usize, pause: Option<Duration>) {
    let (mut connection, mut next) = (connect(server), Instant::now());
    for _ in 0..count {
        let pod = fastrand::usize(..PODS);
        ready[pod] = !ready[pod];
        set_ready(&mut connection, pod, ready[pod]);
        if let Some(pause) = pause {
            next += pause;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}

/// Waits until slices and Endpoints say of every Pod what is so. They must not be long in coming.
fn wait_until_right(server: &Server, ready: &[bool]) {
    let wanted: BTreeMap<String, bool> = ready.iter().enumerate().map(|(pod, ready)| (ip(pod), *ready)).collect();
    let (mut connection, since) = (connect(server), Instant::now());
    loop {
        let (slices, endpoints) = (in_slices(&mut connection), in_endpoints(&mut connection));
        if slices == wanted && endpoints == wanted {
            return;
        }
        let wrong =
            |found: &BTreeMap<String, bool>| wanted.iter().filter(|(ip, ready)| found.get(*ip) != Some(ready)).count();
        let (slices, endpoints) = (wrong(&slices), wrong(&endpoints));
        assert!(
            since.elapsed() < PATIENCE,
            "{slices} Pods are wrong in slices, {endpoints} in Endpoints\n{}",
            server.log()
        );
        thread::sleep(Duration::from_millis(100));
    }
}

fn in_slices(connection: &mut Connection) -> BTreeMap<String, bool> {
    let list = send(connection, "GET", SLICES, &Value::Null);
    let mut found = BTreeMap::new();
    for slice in list["items"].as_array().expect("a list") {
        let endpoints: &[Value] = slice["endpoints"].as_array().map_or(&[], Vec::as_slice);
        assert!(endpoints.len() <= 100, "a slice has {} endpoints", endpoints.len());
        for endpoint in endpoints.iter().filter(|endpoint| endpoint["targetRef"]["kind"] == "Pod") {
            let address = endpoint["addresses"][0].as_str().expect("an address").to_owned();
            let twice = found.insert(address, endpoint["conditions"]["ready"] == true);
            assert_eq!(twice, None, "an endpoint stands twice: {endpoint}");
        }
    }
    found
}

fn in_endpoints(connection: &mut Connection) -> BTreeMap<String, bool> {
    let list = send(connection, "GET", "/api/v1/namespaces/default/endpoints", &Value::Null);
    let mut found = BTreeMap::new();
    for subset in list["items"].as_array().expect("a list").iter().flat_map(|item| item["subsets"].as_array()).flatten()
    {
        for (field, ready) in [("addresses", true), ("notReadyAddresses", false)] {
            let addresses = subset[field].as_array().into_iter().flatten();
            let pods = addresses.filter(|address| address["targetRef"]["kind"] == "Pod");
            found.extend(pods.filter_map(|address| Some((address["ip"].as_str()?.to_owned(), ready))));
        }
    }
    found
}

/// Counts writes of slices from now on.
fn count_writes(server: &Server) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let revision = send(&mut connect(server), "GET", &format!("{SLICES}?limit=1"), &Value::Null);
    let revision = revision["metadata"]["resourceVersion"].as_str().expect("a list has one").to_owned();
    let path = format!("{SLICES}?watch=1&resourceVersion={revision}");
    let lines = connect(server).follow(&path).expect("an answer").expect("a watch");
    let counter = count.clone();
    // Ends with the server.
    thread::spawn(move || {
        for _ in lines.map_while(Result::ok) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    count
}

fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid().expect("it runs"))).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}
