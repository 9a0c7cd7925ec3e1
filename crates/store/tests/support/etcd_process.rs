//! A real etcd on loopback, gone with the value that stands for it.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running etcd.
pub(crate) struct EtcdProcess {
    child: Option<Child>,
    data: tempfile::TempDir,
    client: u16,
    peer: u16,
    flags: Vec<String>,
}

/// Whether etcd can be run here; says so if not, and fails if the environment demands it.
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn available(test: &str) -> bool {
    let found =
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join("etcd").exists()));
    if !found {
        let required = std::env::var("FAIRLEAD_REQUIRE").unwrap_or_default();
        assert!(!required.split([',', ' ']).any(|name| name == "etcd"), "{test} needs etcd, which is required here");
        println!("skipped: {test} needs etcd");
    }
    found
}

#[allow(dead_code, reason = "not every suite stops it or asks for its directory")]
impl EtcdProcess {
    /// Starts one and waits until it answers.
    pub(crate) fn start() -> EtcdProcess {
        EtcdProcess::start_with(&[])
    }

    /// The same with further flags.
    pub(crate) fn start_with(flags: &[String]) -> EtcdProcess {
        // Another process may take a free port before etcd does.
        for _ in 0..5 {
            let data = tempfile::tempdir().expect("a temporary directory");
            let flags = flags.to_vec();
            let mut process = EtcdProcess { child: None, data, client: free_port(), peer: free_port(), flags };
            if process.run() {
                return process;
            }
        }
        panic!("etcd does not start");
    }

    /// Where it listens, without the scheme.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.client)
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    /// Starts it again with the data it had.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "etcd does not start again");
    }

    /// Starts it again with nothing.
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.data.path().join("etcd")).expect("it has data");
        assert!(self.run(), "etcd does not start again");
    }

    fn run(&mut self) -> bool {
        let scheme = if self.flags.iter().any(|flag| flag.starts_with("--cert-file")) { "https" } else { "http" };
        let (client, peer) = (format!("{scheme}://{}", self.address()), format!("http://127.0.0.1:{}", self.peer));
        let log = std::fs::File::create(self.data.path().join("log")).expect("a log");
        let child = Command::new("etcd")
            .args(["--data-dir", path(&self.data.path().join("etcd"))])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(&self.flags)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd is there");
        self.child = Some(child);
        self.answers()
    }

    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            let log = std::fs::read_to_string(self.data.path().join("log")).unwrap_or_default();
            if log.contains("serving insecure client requests") || log.contains("serving client requests") {
                return true;
            }
            if self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_)))) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}
