//! A real etcd on loopback, gone with the value that stands for it.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{free_port, need};

/// A running etcd.
#[derive(Debug)]
pub struct Etcd {
    child: Option<Child>,
    data: TempDir,
    client: u16,
    peer: u16,
    flags: Vec<String>,
}

impl Etcd {
    /// Starts one and waits until it answers. Ask [`need`](need::need) first whether there is one.
    pub fn start() -> Etcd {
        Etcd::start_with(&[])
    }

    /// The same with further flags.
    pub fn start_with(flags: &[String]) -> Etcd {
        // Another process may take a free port before etcd does.
        for _ in 0..5 {
            let data = tempfile::tempdir().expect("a temporary directory");
            let flags = flags.to_vec();
            let mut etcd = Etcd { child: None, data, client: free_port(), peer: free_port(), flags };
            if etcd.run() {
                return etcd;
            }
        }
        panic!("etcd does not start");
    }

    /// Where it listens, without the scheme.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.client)
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        let scheme = if self.flags.iter().any(|flag| flag.starts_with("--cert-file")) { "https" } else { "http" };
        format!("{scheme}://{}", self.address())
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    /// Starts it again with the data it had.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "etcd does not start again");
    }

    /// Starts it again with nothing.
    pub fn restart_empty(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data.path().join("etcd")).expect("it has data");
        assert!(self.run(), "etcd does not start again");
    }

    fn run(&mut self) -> bool {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer));
        let program = need::program("etcd").expect("the test asked for etcd");
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(self.data.path().join("etcd"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(&self.flags)
            .stdout(Stdio::null())
            .stderr(File::create(self.data.path().join("log")).expect("a log"))
            .spawn()
            .expect("etcd is there");
        self.child = Some(child);
        self.answers()
    }

    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            let log = fs::read_to_string(self.data.path().join("log")).unwrap_or_default();
            if log.contains("serving insecure client requests") || log.contains("serving client requests") {
                return true;
            }
            if self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_)))) {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
