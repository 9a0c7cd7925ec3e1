//! A server, things that answer, and registrations of them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::{Server, need};
use serde_json::Value;
use tempfile::TempDir;

/// Addresses of the namespace that endpoints may have.
pub(crate) const A: &str = "198.51.100.7";
pub(crate) const B: &str = "198.51.100.8";
const PATIENCE: Duration = Duration::from_secs(30);
const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");

/// A server in a namespace of its own.
pub(crate) struct House {
    pub(crate) server: Server,
}

/// Runs `work` in a namespace with a server and the addresses, or says why not.
pub(crate) fn in_house(test: &str, flags: &[&str], work: impl FnOnce(&House) + Send) {
    if !["root", "ip"].iter().all(|what| need(test, what)) {
        return;
    }
    let namespace = Namespace::unnamed().expect("a namespace");
    let flags = [&["--store", "memory"], flags].concat();
    namespace
        .run(|| {
            for line in ["link set lo up", &format!("address add {A}/32 dev lo"), &format!("address add {B}/32 dev lo")]
            {
                let status = Command::new("ip").args(line.split(' ')).status().expect("ip");
                assert!(status.success(), "ip {line}");
            }
            work(&House { server: Server::start(FAIRLEAD, &flags) });
        })
        .expect("inside");
}

/// Something that answers every HTTP request with a status.
pub(crate) struct Thing {
    status: Arc<AtomicU16>,
    pub(crate) port: u16,
}

impl Thing {
    pub(crate) fn at(address: &str) -> Thing {
        let listener = TcpListener::bind((address, 0)).expect("an address of this namespace");
        let port = listener.local_addr().expect("an address").port();
        let status = Arc::new(AtomicU16::new(200));
        let shared = status.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let status = shared.load(Ordering::Relaxed);
                let _ = write!(stream, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Thing { status, port }
    }

    pub(crate) fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

/// A running `fairlead register`.
pub(crate) struct Register {
    child: Child,
    home: TempDir,
}

impl House {
    /// Starts it with the words of a line, and what stands behind `--`.
    pub(crate) fn register(&self, line: &str, command: &[&str]) -> Register {
        let home = tempfile::tempdir().expect("a temporary directory");
        let log = File::create(home.path().join("log")).expect("a log");
        let mut program = Command::new(FAIRLEAD);
        program.arg("register").args(line.split_whitespace()).arg("--kubeconfig").arg(self.server.kubeconfig());
        if !command.is_empty() {
            program.arg("--").args(command);
        }
        program.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        Register { child: program.spawn().expect("the program runs"), home }
    }

    /// What the API says; `None`: there is no such thing.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let answer = self.server.client().get(path).expect("an answer");
        match answer.status {
            404 => None,
            200 => Some(serde_json::from_str(&answer.body).expect("JSON")),
            other => panic!("{path}: {other} {}", answer.body),
        }
    }

    pub(crate) fn post(&self, path: &str, object: &Value) -> Value {
        let answer = self.server.client().request("POST", path, &object.to_string()).expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// The EndpointSlices of the default namespace but the API server's own.
    pub(crate) fn slices(&self) -> Vec<Value> {
        let list = self.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").expect("a list");
        let items = list["items"].as_array().expect("items").iter();
        items.filter(|slice| slice["metadata"]["name"] != "kubernetes").cloned().collect()
    }

    /// Waits until the only slice there is says `ready serving terminating` of its endpoint.
    #[track_caller]
    pub(crate) fn until(&self, expect: (bool, bool, bool)) -> Value {
        let mut seen = Vec::new();
        let (ready, serving, terminating) = expect;
        let expect = serde_json::json!({"ready": ready, "serving": serving, "terminating": terminating});
        let found = eventually(|| {
            seen = self.slices();
            (seen.len() == 1 && seen[0]["endpoints"][0]["conditions"] == expect).then(|| seen[0].clone())
        });
        found.unwrap_or_else(|| panic!("not {expect}: {seen:?}"))
    }

    /// Waits until nothing is left of a registration of this Service.
    #[track_caller]
    pub(crate) fn until_gone(&self, service: &str) {
        let left = || {
            let leases = self.get("/apis/coordination.k8s.io/v1/namespaces/default/leases").expect("a list");
            let service = self.get(&format!("/api/v1/namespaces/default/services/{service}"));
            (self.slices().len(), leases["items"].as_array().map_or(0, Vec::len), service.is_some())
        };
        assert!(eventually(|| (left() == (0, 0, false)).then_some(())).is_some(), "left: {:?}", left());
    }
}

impl Register {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill");
        assert!(status.success(), "kill -{name}");
    }

    /// Waits until it has ended, and returns its exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let ended = eventually(|| self.child.try_wait().expect("it is ours"));
        ended.unwrap_or_else(|| panic!("it does not end:\n{}", self.log())).code()
    }

    /// Waits until it has printed something.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(eventually(|| self.log().contains(text).then_some(())).is_some(), "no {text:?} in:\n{}", self.log());
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is there after a while, if it ever is.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return Some(found),
            None if Instant::now() > end => return None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}
