//! A machine on which `fairlead up` runs Pods, with a host on its LAN.
//!
//! ```text
//! host 192.0.2.200 --- lan --- machine 192.0.2.100 --- Pods
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::https::Client;
use fairlead_testkit::{ADMIN_TOKEN, need};
use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The host on the LAN, which serves at port 8080.
pub(crate) const HOST: &str = "192.0.2.200";

pub(crate) struct Lab {
    pub(crate) machine: Namespace,
    pub(crate) host: Namespace,
    home: TempDir,
    up: Child,
    others: Vec<Child>,
}

/// What `fairlead explain` said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) report: Value,
    err: String,
}

impl Said {
    /// The cause it found.
    pub(crate) fn first(&self) -> Option<&str> {
        self.report["first"].as_str()
    }

    /// The commands of the first finding.
    pub(crate) fn remedy(&self) -> Vec<&str> {
        let steps = self.report["steps"].as_array().into_iter().flatten();
        let mut findings = steps.flat_map(|step| step["findings"].as_array().into_iter().flatten());
        let first = findings.find(|finding| finding["cause"] == self.report["first"]);
        let commands = first.and_then(|finding| finding["remedy"].as_array()).into_iter().flatten();
        commands.filter_map(Value::as_str).collect()
    }

    /// Everything that was not as it should be, for people.
    pub(crate) fn words(&self) -> String {
        let steps = self.report["steps"].as_array().into_iter().flatten();
        let told =
            steps.map(|step| format!("  {} {} {} {}", step["state"], step["id"], step["evidence"], step["findings"]));
        format!(
            "exit code {}: {}\n{}\n{}",
            self.code,
            self.report["summary"],
            told.collect::<Vec<_>>().join("\n"),
            self.err
        )
    }
}

/// A lab, or nothing where there can be none. The flags are those of `fairlead up`.
pub(crate) fn lab(test: &str, flags: &[&str]) -> Option<Lab> {
    if !["root", "ip", "nft", "python3"].iter().all(|what| need::need(test, what)) {
        return None;
    }
    let [machine, host] = [(); 2].map(|()| Namespace::unnamed().unwrap());
    machine.run(|| Links::open().unwrap().add_veth("lan", "eth0", Some(host.as_fd()))).unwrap().unwrap();
    for line in ["ip link set lo up", "ip link set lan up", "ip address add 192.0.2.100/24 dev lan"] {
        tool(&machine, line);
    }
    for line in ["ip link set lo up", "ip link set eth0 up", "ip address add 192.0.2.200/24 dev eth0"] {
        tool(&host, line);
    }
    tool(&machine, "ip route add default via 192.0.2.200");
    serve(&host);
    let home = tempfile::tempdir().unwrap();
    // Pods run as somebody who may do nothing, and some of what is in here is for them.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
    let up = start(&machine, &home, flags);
    let lab = Lab { machine, host, home, up, others: Vec::new() };
    lab.wait("the machine is a Node", || {
        let nodes = lab.try_api("GET", "/api/v1/nodes", "").map(|(_, text)| text).unwrap_or_default();
        nodes.contains("podCIDR")
    });
    Some(lab)
}

fn start(machine: &Namespace, home: &TempDir, flags: &[&str]) -> Child {
    let log = File::options().create(true).append(true).open(home.path().join("log")).unwrap();
    let mut command = Command::new(FAIRLEAD);
    command.arg("up").args(flags);
    command.args(["--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="]);
    command.arg("--token-auth-file").arg(home.path().join("tokens.csv"));
    command.arg("--data-dir").arg(home.path().join("data"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    machine.run(|| command.spawn()).unwrap().unwrap()
}

/// Runs a command inside, which must not fail, and returns what it prints.
#[track_caller]
pub(crate) fn tool(namespace: &Namespace, words: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", words]);
    let output = namespace.run(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The host on the LAN says hello at its port 8080.
fn serve(host: &Namespace) {
    let tcp = host.run(|| TcpListener::bind((HOST, 8080)).unwrap()).unwrap();
    std::thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let _ = io::Write::write_all(&mut stream, b"hello");
        }
    });
}

impl Lab {
    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn try_api(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let authority = fs::read(self.path("data/pki/ca.crt")).ok()?;
        let client = Client::new(SocketAddr::from(([127, 0, 0, 1], 6443)), &authority, ADMIN_TOKEN);
        let answer = self.machine.run(|| client.request(method, path, body)).unwrap().ok()?;
        Some((answer.status, answer.body))
    }

    /// Asks the API, which must not refuse.
    #[track_caller]
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.try_api(method, path, &body).unwrap_or_else(|| panic!("no answer:\n{}", self.log()));
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}\n{body}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Makes an object in a namespace.
    #[track_caller]
    pub(crate) fn create(&self, namespace: &str, object: &Value) {
        let group = match object["kind"].as_str().unwrap() {
            "Namespace" => "/api/v1/namespaces".to_owned(),
            "Node" => "/api/v1/nodes".to_owned(),
            "EndpointSlice" => format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
            "Endpoints" => format!("/api/v1/namespaces/{namespace}/endpoints"),
            kind => format!("/api/v1/namespaces/{namespace}/{}s", kind.to_lowercase()),
        };
        self.api("POST", &group, object);
    }

    /// What `fairlead` prints on the machine.
    pub(crate) fn fairlead(&self, words: &[&str]) -> Output {
        let mut command = Command::new(FAIRLEAD);
        command.args(words).env("KUBECONFIG", self.path("data/admin.kubeconfig")).current_dir("/");
        self.machine.run(|| command.output()).unwrap().unwrap()
    }

    /// What `fairlead explain` says: words with blanks between.
    pub(crate) fn explain(&self, namespace: &str, words: &str) -> Said {
        let mut all: Vec<&str> = vec!["explain", "-n", namespace, "-o", "json"];
        all.extend(words.split(' '));
        let output = self.fairlead(&all);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Said { code: output.status.code().unwrap_or(-1), report, err }
    }

    /// Starts another part of Fairlead on the machine.
    pub(crate) fn start(&mut self, words: &[&str]) {
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = Command::new(FAIRLEAD);
        command.args(words).arg("--kubeconfig").arg(self.path("data/admin.kubeconfig"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.others.push(self.machine.run(|| command.spawn()).unwrap().unwrap());
    }

    /// Lets the other parts do nothing more, although they are there.
    pub(crate) fn freeze_others(&self) {
        for other in &self.others {
            tool(&self.machine, &format!("kill -STOP {}", other.id()));
        }
    }

    /// Types a remedy in a shell, where `kubectl` is what `fairlead` does of it.
    #[track_caller]
    pub(crate) fn follow(&self, remedy: &str) {
        let mut command = Command::new("sh");
        command.args(["-e", "-c", &format!("kubectl() {{ {FAIRLEAD} \"$@\"; }}; {remedy}")]);
        command.env("KUBECONFIG", self.path("data/admin.kubeconfig")).current_dir("/");
        let output = self.machine.run(|| command.output()).unwrap().unwrap();
        assert!(output.status.success(), "{remedy}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Kills the other parts.
    pub(crate) fn kill_others(&mut self) {
        for mut other in self.others.drain(..) {
            let _ = other.kill();
            let _ = other.wait();
        }
    }

    /// The addresses of a Service: cluster IP, load balancer.
    pub(crate) fn address(&self, namespace: &str, name: &str, outside: bool) -> Option<String> {
        let service = self.api("GET", &format!("/api/v1/namespaces/{namespace}/services/{name}"), &Value::Null);
        let ip = if outside {
            &service["status"]["loadBalancer"]["ingress"][0]["ip"]
        } else {
            &service["spec"]["clusterIP"]
        };
        ip.as_str().filter(|ip| *ip != "None").map(str::to_owned)
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + LIMIT;
        while !holds() {
            assert!(Instant::now() < until, "not in {LIMIT:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

/// Whether somebody there says hello over TCP, seen from inside a namespace.
pub(crate) fn says_hello(namespace: &Namespace, to: &str) -> bool {
    let to: SocketAddr = to.parse().unwrap();
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut heard = String::new();
        stream.read_to_string(&mut heard)?;
        Ok(heard)
    };
    namespace.run(|| asked().is_ok_and(|heard| heard == "hello")).unwrap()
}

/// The same over UDP.
pub(crate) fn says_hello_udp(namespace: &Namespace, to: &str) -> bool {
    let to: SocketAddr = to.parse().unwrap();
    let asked = || -> io::Result<bool> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send_to(b"?", to)?;
        let mut buffer = [0; 16];
        Ok(socket.recv(&mut buffer)? == 5)
    };
    namespace.run(|| asked().unwrap_or(false)).unwrap()
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.kill_others();
        let _ = self.up.kill();
        let _ = self.up.wait();
        let data = self.path("data").display().to_string();
        let said = self.fairlead(&["cleanup", "--data-dir", &data]);
        if std::thread::panicking() {
            println!("{}", self.log());
        } else {
            assert!(said.status.success(), "{said:?}");
        }
    }
}
