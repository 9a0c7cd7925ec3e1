//! What people who run a machine are told: `fairlead doctor`, `fairlead status` and `fairlead top`, on a machine with real rules,
//! real sockets and real traffic, in network namespaces of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::https::Client;
use fairlead_testkit::{ADMIN_TOKEN, Component, need};
use serde_json::{Value, json};
use tempfile::TempDir;

const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// Generous: a container that ended waits 10 s before it starts again, and the machine may have other work.
const LIMIT: Duration = Duration::from_secs(120);
const BACKEND: &str = "10.50.0.11";

#[test]
fn the_doctor_finds_what_is_wrong_with_a_machine_and_says_who_it_is() {
    let test = "the_doctor_finds_what_is_wrong_with_a_machine_and_says_who_it_is";
    let Some(machine) = Machine::new(test) else { return };
    let squatter = machine.namespace.run(|| TcpListener::bind("0.0.0.0:10249").unwrap()).unwrap();
    machine.tool("nft add table ip kube-proxy");
    machine.tool("nft add table inet wall");
    machine.tool("nft add chain inet wall forward { type filter hook forward priority 0 ; policy drop ; }");
    fs::create_dir(machine.data_dir()).unwrap();

    let output = machine.fairlead(&["doctor", "--data-dir", &machine.data_dir(), "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = |state: &str, words: &[&str]| {
        let checks = report["checks"].as_array().unwrap().iter();
        let same = |check: &&Value| {
            let finding = check["finding"].as_str().unwrap();
            check["state"] == state && words.iter().all(|word| finding.contains(word))
        };
        assert!(checks.clone().any(|check| same(&check)), "no {state} {words:?} in {report:#}");
    };
    let own = std::process::id().to_string();
    found("bad", &["port 10249", &own]);
    found("warn", &["kube-proxy", "ip kube-proxy"]);
    found("warn", &["inet wall forward drops"]);
    found("warn", &["ip_forward is 0"]);
    found("ok", &["mode nftables works"]);
    assert_eq!(output.status.code(), Some(1), "{report:#}");

    drop(squatter);
    machine.tool("nft delete table ip kube-proxy");
    machine.tool("nft delete table inet wall");
    fs::set_permissions(machine.data_dir(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let output = machine.fairlead(&["doctor", "--data-dir", &machine.data_dir()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(!text.contains("kube-proxy") && !text.contains('✗'), "{text}");
    // It tried modes elsewhere, and left nothing here.
    assert_eq!(machine.tool("nft list ruleset"), "");
}

#[test]
fn status_names_what_is_broken_and_top_shows_who_has_traffic() {
    let test = "status_names_what_is_broken_and_top_shows_who_has_traffic";
    let Some(mut machine) = Machine::new(test) else { return };
    let alone = machine.fairlead(&["status"]);
    assert_eq!(alone.status.code(), Some(2), "nobody answers yet");
    machine.up();
    machine.service("web", json!({}));
    machine.slice("web");
    machine.service("lost", json!({"app": "nobody"}));
    let address = machine.wait("the Service answers", |machine| {
        let service = machine.api("GET", "/api/v1/namespaces/default/services/web", "")?;
        let address: SocketAddr = format!("{}:80", service["spec"]["clusterIP"].as_str()?).parse().ok()?;
        machine.ask(address).map(|_| address)
    });

    let output = machine.fairlead(&["status"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "one Service is broken:\n{text}");
    for part in ["1 broken", "✗ default/lost", "fairlead explain svc/lost -n default", "here ", "mode nftables"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    assert!(machine.api("DELETE", "/api/v1/namespaces/default/services/lost", "").is_some());
    machine.wait("all is well", |machine| machine.fairlead(&["status"]).status.success().then_some(()));

    let asking = std::thread::scope(|scope| {
        let machine = &machine;
        // Until `top` has looked, however long that takes, and if it fails, too.
        let (going, stopped) = mpsc::channel::<()>();
        scope.spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                let _ = machine.ask(address);
            }
        });
        let top = machine.fairlead(&["top", "--once", "--endpoints", "--interval", "2"]);
        drop(going);
        top
    });
    let text = String::from_utf8_lossy(&asking.stdout);
    assert!(asking.status.success(), "{}", String::from_utf8_lossy(&asking.stderr));
    let rate = |words: &str| {
        let line = text.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no {words:?} in:\n{text}"));
        let after = line.split(words).nth(1).unwrap().split_whitespace();
        after.map(|word| word.parse::<f64>()).find_map(Result::ok).unwrap()
    };
    assert!(rate("web") > 1.0, "{text}");
    assert!(rate(&format!("{BACKEND}:8080")) > 1.0, "{text}");
}

#[test]
fn a_write_is_followed_until_the_kernel_has_it_and_logs_are_for_programs() {
    let test = "a_write_is_followed_until_the_kernel_has_it_and_logs_are_for_programs";
    let Some(mut machine) = Machine::new(test) else { return };
    let spans = collector(&machine);
    machine.up_with(&["--otlp-endpoint", "http://127.0.0.1:4318", "--log-format", "json"]);
    machine.service("web", json!({}));
    machine.slice("web");
    let mut seen: Vec<Value> = Vec::new();
    let began = Instant::now();
    let whole = loop {
        seen.extend(spans.try_iter());
        let named = |name: &str, id: Option<&Value>| {
            let found = |span: &&Value| span["name"] == name && id.is_none_or(|id| span["parentSpanId"] == *id);
            seen.iter().find(found).cloned()
        };
        let write = named("write endpointslices default/web-1", None);
        let program = write.as_ref().and_then(|write| named("program", Some(&write["spanId"])));
        let kernel = program.as_ref().and_then(|program| named("kernel", Some(&program["spanId"])));
        if let (Some(write), Some(program), Some(kernel)) = (write, program, kernel) {
            break [write, program, kernel];
        }
        assert!(began.elapsed() < LIMIT, "no whole trace of the slice: {seen:#?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let [write, program, kernel] = &whole;
    assert!(whole.iter().all(|span| span["traceId"] == write["traceId"]), "{whole:#?}");
    assert!(whole.iter().all(|span| time(span, "startTimeUnixNano") <= time(span, "endTimeUnixNano")));
    assert!(time(write, "startTimeUnixNano") <= time(program, "startTimeUnixNano"), "{whole:#?}");
    assert!(time(program, "startTimeUnixNano") <= time(kernel, "startTimeUnixNano"), "{whole:#?}");

    let log = fs::read_to_string(machine.home.path().join("log")).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with('{')).collect();
    assert!(lines.len() > 2, "{log}");
    for line in lines {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(entry["timestamp"].is_string() && entry["level"].is_string(), "{line}");
    }
}

#[test]
fn controllers_and_pods_are_counted() {
    let test = "controllers_and_pods_are_counted";
    let Some(mut machine) = Machine::new(test) else { return };
    machine.up();
    machine.service("web", json!({"app": "web"}));
    let ready = json!({"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}});
    machine.pod("web-1", "sleep 1000", &ready);
    machine.pod("ends", "exit 3", &json!({}));
    let want = [
        ("workqueue_adds_total{name=\"endpoint_slice\"}", 2.0),
        ("workqueue_queue_duration_seconds_count{name=\"scheduler\"}", 2.0),
        ("workqueue_work_duration_seconds_count{name=\"namespace\"}", 0.0),
        ("endpoint_slice_controller_num_endpoint_slices", 1.0),
        ("endpoint_slice_controller_desired_endpoint_slices", 1.0),
        ("endpoint_slice_controller_endpoints_desired", 1.0),
        ("endpoint_slice_controller_endpoints_added_per_sync_sum", 1.0),
        ("endpoint_slice_controller_changes{operation=\"create\"}", 1.0),
        ("endpoint_slice_controller_syncs{result=\"success\"}", 2.0),
        ("kubelet_running_pods", 1.0),
        ("kubelet_running_containers{container_state=\"running\"}", 1.0),
        ("kubelet_running_containers{container_state=\"exited\"}", 1.0),
        ("kubelet_started_pods_total", 2.0),
        ("kubelet_started_containers_total{container_type=\"container\"}", 3.0),
        ("fairlead_pods_container_restarts_total", 1.0),
        ("kubelet_pod_start_duration_seconds_count", 1.0),
        ("prober_probe_total{probe_type=\"Readiness\",result=\"successful\"}", 1.0),
        ("prober_probe_duration_seconds_count{probe_type=\"Readiness\"}", 1.0),
    ];
    for (metric, least) in want {
        machine.wait(metric, |machine| (figure(&machine.metrics(), metric)? >= least).then_some(()));
    }
    // The Pod that ends runs now and then, too.
    machine.wait("the Node tells that one Pod runs", |machine| {
        let node = machine.get("/api/v1/nodes/here/proxy/metrics");
        (figure(&node, "kubelet_running_pods")? == 1.0).then_some(())
    });

    for path in ["pods/web-1", "pods/ends", "services/web"] {
        let path = format!("/api/v1/namespaces/default/{path}");
        assert!(machine.api("DELETE", &path, "{\"gracePeriodSeconds\": 0}").is_some(), "{path}");
    }
    for gone in ["kubelet_running_pods", "endpoint_slice_controller_num_endpoint_slices"] {
        machine.wait(gone, |machine| (figure(&machine.metrics(), gone)? == 0.0).then_some(()));
    }
    machine.wait("nothing waits", |machine| {
        let waits = |line: &str| line.starts_with("workqueue_depth{") && !line.ends_with(" 0");
        (!machine.metrics().lines().any(waits)).then_some(())
    });
}

/// The figure of a metric with its labels.
fn figure(text: &str, metric: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn every_metric_is_documented_and_the_dashboard_asks_only_for_those() {
    let test = "every_metric_is_documented_and_the_dashboard_asks_only_for_those";
    let Some(mut machine) = Machine::new(test) else { return };
    machine.up();
    let docs: String = ["telemetry", "proxy", "load-balancer"].map(|page| read(&format!("docs/{page}.md"))).concat();
    let known = |name: &str| {
        // Long tables leave out what their rows share: `…_bytes_total`, or the part of the balancer.
        let short = name.strip_prefix("fairlead_balancer_").unwrap_or(name);
        let tail = |text: &str| docs.contains(&format!("…_{text}`")) || docs.contains(&format!("…_{text}{{"));
        let tails = name.match_indices('_').any(|(at, _)| tail(&name[at + 1..]));
        [short, name].iter().any(|word| docs.contains(&format!("`{word}`")) || docs.contains(&format!("`{word}{{")))
            || tails
    };
    let mut served = std::collections::BTreeSet::new();
    let _control = machine.control("127.0.0.1:10252");
    let alone = machine.wait("controllers tell how they do", |machine| machine.try_page("127.0.0.1:10252", "/metrics"));
    let pages = [machine.metrics(), machine.page("127.0.0.1:10249"), machine.page("127.0.0.1:10253"), alone];
    for line in pages.iter().flat_map(|page| page.lines()) {
        served.extend(line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next()).map(str::to_owned));
    }
    assert!(served.len() > 40, "{served:?}");
    let unknown: Vec<&String> = served.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "not in the manual: {unknown:?}");

    let dashboard: Value = serde_json::from_str(&read("packaging/grafana/fairlead.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let asked = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let mut metrics = 0;
    for expression in asked.map(|target| target["expr"].as_str().unwrap().to_owned()) {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let prefixes = [
            "fairlead_",
            "apiserver_",
            "kubeproxy_",
            "coredns_",
            "process_",
            "workqueue_",
            "endpoint_slice_controller_",
            "kubelet_",
            "prober_",
        ];
        for word in words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))) {
            let name = word.strip_suffix("_bucket").unwrap_or(word);
            // What is counted only when something has happened is known by the manual.
            let there = served.contains(name) || known(name);
            assert!(there, "{expression} asks for {name}, which nobody serves");
            metrics += 1;
        }
    }
    assert!(metrics > 15, "{metrics}");
}

#[test]
fn controllers_in_a_process_of_their_own_say_how_they_do_and_which_of_them_acts() {
    let test = "controllers_in_a_process_of_their_own_say_how_they_do_and_which_of_them_acts";
    let Some(mut machine) = Machine::new(test) else { return };
    machine.up();
    let leads = |machine: &Machine, address: &str, yes: u8| {
        let page = machine.try_page(address, "/metrics")?;
        page.contains(&format!("leader_election_master_status{{name=\"fairlead-control\"}} {yes}\n")).then_some(page)
    };
    let first = machine.control("127.0.0.1:10252");
    machine.wait("the first acts", |machine| leads(machine, "127.0.0.1:10252", 1));
    let _second = machine.control("127.0.0.1:11252");
    let page = machine.wait("the second waits", |machine| leads(machine, "127.0.0.1:11252", 0));
    assert!(page.contains("\nprocess_resident_memory_bytes "), "{page}");
    let healthy = machine.try_page("127.0.0.1:11252", "/healthz").unwrap();
    assert!(healthy.starts_with("HTTP/1.1 200 ") && healthy.ends_with("\r\nok"), "{healthy}");
    let nothing = machine.try_page("127.0.0.1:11252", "/else").unwrap();
    assert!(nothing.starts_with("HTTP/1.1 404 "), "{nothing}");

    tool(&machine.namespace, &format!("kill -TERM {}", first.pid()));
    machine.wait("the second acts", |machine| leads(machine, "127.0.0.1:11252", 1));
    machine.wait("the second has work", |machine| {
        let page = machine.try_page("127.0.0.1:11252", "/metrics")?;
        page.contains("\nworkqueue_adds_total{name=\"endpoint_slice\"} ").then_some(())
    });
}

fn read(path: &str) -> String {
    fs::read_to_string(fairlead_testkit::project().join(path)).unwrap()
}

/// A collector of OpenTelemetry as far as traces by OTLP over HTTP go: every span that arrives.
fn collector(machine: &Machine) -> std::sync::mpsc::Receiver<Value> {
    let (told, spans) = std::sync::mpsc::channel();
    let listener = machine.namespace.run(|| TcpListener::bind("127.0.0.1:4318").unwrap()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some(request) = receive(&stream) else { continue };
            let groups = request["resourceSpans"].as_array().cloned().unwrap_or_default();
            let scopes = groups.iter().flat_map(|group| group["scopeSpans"].as_array().cloned().unwrap_or_default());
            for span in scopes.flat_map(|scope| scope["spans"].as_array().cloned().unwrap_or_default()) {
                if told.send(span).is_err() {
                    return;
                }
            }
        }
    });
    spans
}

/// The JSON of a POST to the path of traces, which is answered.
fn receive(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}").ok()?;
    serde_json::from_slice(&body).ok()
}

/// A machine with a backend beside it.
struct Machine {
    namespace: Namespace,
    _backend: Namespace,
    home: TempDir,
    up: Option<Child>,
}

impl Machine {
    fn new(test: &str) -> Option<Machine> {
        if !["root", "ip", "nft"].iter().all(|what| need::need(test, what)) {
            return None;
        }
        let (namespace, backend) = (Namespace::unnamed().unwrap(), Namespace::unnamed().unwrap());
        namespace.run(|| Links::open().unwrap().add_veth("back", "eth0", Some(backend.as_fd()))).unwrap().unwrap();
        for (inside, words) in [
            (&namespace, "ip link set lo up"),
            (&namespace, "ip address add 10.50.0.1/24 dev back"),
            (&namespace, "ip link set back up"),
            // Packets to cluster IPs need a route before rules see them.
            (&namespace, "ip route add default via 10.50.0.11"),
            (&backend, "ip address add 10.50.0.11/24 dev eth0"),
            (&backend, "ip link set eth0 up"),
        ] {
            tool(inside, words);
        }
        let listener = backend.run(|| TcpListener::bind((BACKEND, 8080)).unwrap()).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(b"hello");
            }
        });
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
        Some(Machine { namespace, _backend: backend, home, up: None })
    }

    fn data_dir(&self) -> String {
        self.home.path().join("data").display().to_string()
    }

    fn up(&mut self) {
        self.up_with(&[]);
    }

    fn up_with(&mut self, flags: &[&str]) {
        let log = File::create(self.home.path().join("log")).unwrap();
        let mut command = Command::new(FAIRLEAD);
        command.args(["up", "--hostname-override", "here", "--data-dir", &self.data_dir(), "--token-auth-file"]);
        command.arg(self.home.path().join("tokens.csv")).args(flags);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.up = Some(self.namespace.run(|| command.spawn()).unwrap().unwrap());
        self.wait("the API answers", |machine| machine.api("GET", "/api/v1/namespaces/default", ""));
    }

    fn tool(&self, words: &str) -> String {
        tool(&self.namespace, words)
    }

    fn fairlead(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(FAIRLEAD);
        command.args(arguments).env("KUBECONFIG", self.home.path().join("data/admin.kubeconfig"));
        self.namespace.run(|| command.output()).unwrap().unwrap()
    }

    /// The metrics of the API server.
    fn metrics(&self) -> String {
        self.get("/metrics")
    }

    /// What the API server says at a path.
    fn get(&self, path: &str) -> String {
        let authority = fs::read(self.home.path().join("data/pki/ca.crt")).unwrap();
        let ask = || Client::new(([127, 0, 0, 1], 6443).into(), &authority, ADMIN_TOKEN).get(path).unwrap();
        self.namespace.run(ask).unwrap().body
    }

    /// The metrics of a part of the machine.
    fn page(&self, address: &str) -> String {
        self.try_page(address, "/metrics").unwrap()
    }

    /// What is answered at an address by HTTP, if there is somebody.
    fn try_page(&self, address: &str, path: &str) -> Option<String> {
        let ask = || {
            let mut stream = TcpStream::connect(address).ok()?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
            let mut said = String::new();
            stream.read_to_string(&mut said).ok()?;
            Some(said)
        };
        self.namespace.run(ask).unwrap()
    }

    /// `fairlead control` beside what is up, with its page at an address.
    fn control(&self, page: &str) -> Component {
        let kubeconfig = format!("{}/admin.kubeconfig", self.data_dir());
        let arguments = ["control", "--kubeconfig", &kubeconfig, "--metrics-bind-address", page];
        self.namespace.run(|| Component::start(FAIRLEAD, &arguments)).unwrap()
    }

    fn api(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let authority = fs::read(self.home.path().join("data/pki/ca.crt")).ok()?;
        let ask = || {
            let client = Client::new(([127, 0, 0, 1], 6443).into(), &authority, ADMIN_TOKEN);
            client.request(method, path, body)
        };
        let answer = self.namespace.run(ask).unwrap().ok()?;
        (answer.status / 100 == 2).then(|| serde_json::from_str(&answer.body).unwrap_or_default())
    }

    fn service(&self, name: &str, selector: Value) {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}});
        let made = self.api("POST", "/api/v1/namespaces/default/services", &service.to_string());
        assert!(made.is_some(), "{name} cannot be made");
    }

    /// A Pod of the Service `web`, which runs a line of shell.
    fn pod(&self, name: &str, line: &str, more: &Value) {
        let mut container = json!({"name": "main", "image": "host", "command": ["sh", "-c", line]});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let labels = if name.starts_with("web") { json!({"app": "web"}) } else { json!({}) };
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}});
        assert!(self.api("POST", "/api/v1/namespaces/default/pods", &pod.to_string()).is_some(), "no Pod {name}");
    }

    fn slice(&self, service: &str) {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": format!("{service}-1"), "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": [BACKEND]}], "ports": [{"name": "", "port": 8080, "protocol": "TCP"}]});
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        assert!(self.api("POST", path, &slice.to_string()).is_some(), "no slice");
    }

    /// What is answered at an address.
    fn ask(&self, address: SocketAddr) -> Option<String> {
        let ask = || {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
            let mut said = String::new();
            stream.read_to_string(&mut said).ok()?;
            (said == "hello").then_some(said)
        };
        self.namespace.run(ask).unwrap()
    }

    fn wait<T>(&self, what: &str, ready: impl Fn(&Machine) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = ready(self) {
                return found;
            }
            let log = || fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < LIMIT, "{what}: not in {LIMIT:?}; its log:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(child) = &mut self.up {
            let _ = child.kill();
            let _ = child.wait();
            let _ = self.fairlead(&["cleanup", "--data-dir", &self.data_dir()]);
        }
    }
}

/// Runs a command inside, which must not fail, and returns what it prints.
fn tool(namespace: &Namespace, words: &str) -> String {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    let output = namespace.run(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
