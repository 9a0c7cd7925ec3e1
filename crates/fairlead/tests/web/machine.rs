//! A machine: a network namespace in which `fairlead up` runs, with Pods, and a browser.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::https::Client;
use fairlead_testkit::{ADMIN_TOKEN, need};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program under test.
const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(90);
/// Where the API is.
const API: &str = "127.0.0.1:6443";
/// Services of the default namespace.
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
/// Browsers want much of a machine: one at a time.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) struct Machine {
    pub(crate) namespace: Namespace,
    /// Where the browser is. It gives up what it is fetching whenever a network changes, and every Pod brings a link.
    pub(crate) desk: Namespace,
    home: TempDir,
    flags: Vec<String>,
    up: Mutex<Child>,
    _turn: MutexGuard<'static, ()>,
}

/// A machine, or nothing where there can be none.
pub(crate) fn machine(test: &str, flags: &[&str]) -> Option<Machine> {
    if !["root", "ip", "nft", "python3", "chromium", "chromedriver"].iter().all(|what| need::need(test, what)) {
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let namespace = Namespace::unnamed().unwrap();
    connect(&namespace);
    let home = tempfile::tempdir().unwrap();
    // Pods run as somebody who may do nothing, and some of what is in here is for them.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>();
    let up = Mutex::new(start(&namespace, &home, &flags));
    let desk = desk(&namespace);
    let machine = Machine { namespace, desk, home, flags, up, _turn: turn };
    machine.wait_ready();
    Some(machine)
}

/// A namespace with nothing but the address at which the API of the machine answers.
fn desk(machine: &Namespace) -> Namespace {
    let desk = Namespace::unnamed().unwrap();
    let up = desk.run(|| Command::new("ip").args(["link", "set", "lo", "up"]).status()).unwrap().unwrap();
    assert!(up.success());
    let listener = desk.run(|| TcpListener::bind(API).unwrap()).unwrap();
    let inside = machine.as_fd().try_clone_to_owned().unwrap();
    std::thread::spawn(move || {
        let inside = format!("/proc/self/fd/{}", inside.as_raw_fd());
        let machine = Namespace::at(Path::new(&inside)).unwrap();
        machine.enter().unwrap();
        for near in listener.incoming().flatten() {
            // Who cannot be reached closes the connection.
            if let Ok(far) = TcpStream::connect(API) {
                relay(near.try_clone().unwrap(), far.try_clone().unwrap());
                relay(far, near);
            }
        }
    });
    desk
}

/// Carries what comes from one side to the other until it ends.
fn relay(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Starts `fairlead up`.
fn start(namespace: &Namespace, home: &TempDir, flags: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(home.path().join("log")).unwrap();
    let mut command = Command::new(FAIRLEAD);
    command
        .args(["up", "--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="])
        .args(flags);
    command.arg("--token-auth-file").arg(home.path().join("tokens.csv"));
    command.arg("--data-dir").arg(home.path().join("data"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    namespace.run(|| command.spawn()).unwrap().unwrap()
}

/// Gives the machine somewhere to go: an address towards others, and a default route.
fn connect(namespace: &Namespace) {
    for line in [
        "ip link set lo up",
        "ip link add way type veth peer name out",
        "ip link set way up",
        "ip link set out up",
        "ip address add 198.51.100.2/24 dev way",
        "ip route add default via 198.51.100.1",
    ] {
        let done = namespace.run(|| Command::new("sh").args(["-c", line]).status()).unwrap().unwrap();
        assert!(done.success(), "{line}");
    }
}

impl Machine {
    /// Waits until Pods can run on it.
    fn wait_ready(&self) {
        self.wait("the machine is a Node", || {
            let node = self.try_api("GET", "/api/v1/nodes/here", "").map(|(_, text)| text);
            node.is_some_and(|text| text.contains("podCIDR"))
        });
    }

    /// Ends `fairlead up` as a crash would.
    pub(crate) fn kill(&self) {
        let mut up = self.up.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = up.kill();
        let _ = up.wait();
    }

    /// Starts it again.
    pub(crate) fn restart(&self) {
        *self.up.lock().unwrap() = start(&self.namespace, &self.home, &self.flags);
        self.wait_ready();
    }

    /// A path in a directory of the machine's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Somebody who may do everything to the API.
    pub(crate) fn client(&self) -> Option<Client> {
        let authority = fs::read(self.path("data/pki/ca.crt")).ok()?;
        Some(Client::new(SocketAddr::from(([127, 0, 0, 1], 6443)), &authority, ADMIN_TOKEN))
    }

    fn try_api(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let client = self.client()?;
        let answer = self.namespace.run(|| client.request(method, path, body)).unwrap().ok()?;
        Some((answer.status, answer.body))
    }

    /// Asks the API, which must not refuse.
    #[track_caller]
    pub(crate) fn api(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.try_api(method, path, &body).unwrap_or_else(|| panic!("no answer:\n{}", self.log()));
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What `fairlead` prints on the machine, which must end well.
    #[track_caller]
    pub(crate) fn fairlead(&self, words: &str) -> String {
        self.try_fairlead(words).unwrap_or_else(|why| panic!("{why}"))
    }

    /// What it prints, or how it failed.
    fn try_fairlead(&self, words: &str) -> Result<String, String> {
        let mut command = Command::new(FAIRLEAD);
        command.args(words.split(' ')).env("KUBECONFIG", self.path("data/admin.kubeconfig")).current_dir("/");
        let output = self.namespace.run(|| command.output()).map_err(|error| error.to_string())?;
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(said) } else { Err(format!("{words}: {said}{complained}")) }
    }

    /// A link to the page that works once.
    #[track_caller]
    pub(crate) fn link(&self, flags: &str) -> String {
        let said = self.fairlead(format!("ui {flags}").trim());
        let link = said.split_whitespace().find(|word| word.starts_with("https://") && word.contains("#token="));
        link.unwrap_or_else(|| panic!("no link in {said:?}")).to_owned()
    }

    /// Runs a Pod that serves HTTP and has this label, and waits until it is ready.
    #[track_caller]
    pub(crate) fn pod(&self, name: &str, app: &str) {
        let how = "--port http=9376 --ready http:/ --workdir /etc -- python3 -u -m http.server 9376";
        self.fairlead(&format!("run -d --name {name} --labels app={app} {how}"));
        self.wait("the Pod is ready", || {
            let pod = self.api("GET", &format!("/api/v1/namespaces/default/pods/{name}"), &Value::Null);
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
        });
    }

    /// Makes a Service in front of what has this label; its address.
    #[track_caller]
    pub(crate) fn service(&self, name: &str, app: &str) -> String {
        let ports = json!([{"name": "http", "port": 80, "targetPort": "http"}]);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": app}, "ports": ports},
        });
        let made = self.api("POST", SERVICES, &service);
        made["spec"]["clusterIP"].as_str().unwrap().to_owned()
    }

    /// Whether a Service answers at an address.
    pub(crate) fn answers(&self, address: &str) -> bool {
        let to: SocketAddr = format!("{address}:80").parse().unwrap();
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2))?;
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.write_all(b"GET /hostname HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        self.namespace.run(asked).unwrap().is_ok_and(|text| text.contains("200 OK"))
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + LIMIT;
        while !holds() {
            assert!(Instant::now() < until, "not in {LIMIT:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What `fairlead up` said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        // Pods outlive a program that is killed, and must not outlive a test that has failed.
        let cleaned = self.try_fairlead(&format!("cleanup --data-dir {}", self.path("data").display()));
        if !std::thread::panicking() {
            cleaned.unwrap_or_else(|why| panic!("{why}"));
        }
    }
}
