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
    /// Name of this member and URLs of all, if the cluster has several.
    member: Option<(String, String)>,
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
            let mut etcd = Etcd { child: None, data, client: free_port(), peer: free_port(), flags, member: None };
            if etcd.run() {
                return etcd;
            }
        }
        panic!("etcd does not start");
    }

    /// Starts the members of one cluster and waits until each of them answers.
    pub fn cluster<const MEMBERS: usize>() -> [Etcd; MEMBERS] {
        for _ in 0..5 {
            let mut cluster = std::array::from_fn(|_| Etcd {
                child: None,
                data: tempfile::tempdir().expect("a temporary directory"),
                client: free_port(),
                peer: free_port(),
                flags: Vec::new(),
                member: None,
            });
            let name = |etcd: &Etcd| format!("member-{}", etcd.peer);
            let members: Vec<String> =
                cluster.iter().map(|etcd| format!("{}=http://127.0.0.1:{}", name(etcd), etcd.peer)).collect();
            for etcd in &mut cluster {
                etcd.member = Some((name(etcd), members.join(",")));
                etcd.spawn();
            }
            if cluster.iter_mut().all(Etcd::answers) {
                return cluster;
            }
        }
        panic!("etcd does not start");
    }

    /// Stops its process as SIGSTOP does: its connections stay, and nothing is answered.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets a process that was stopped go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.pid().expect("it runs").to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("there is a kill");
        assert!(status.success(), "kill -{name} {pid}");
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
        self.spawn();
        self.answers()
    }

    fn spawn(&mut self) {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer));
        let (name, members) = self.member.clone().unwrap_or_else(|| ("default".into(), format!("default={peer}")));
        let program = need::program("etcd").expect("the test asked for etcd");
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(self.data.path().join("etcd"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--name", &name, "--initial-cluster", &members])
            .args(&self.flags)
            .stdout(Stdio::null())
            .stderr(File::create(self.data.path().join("log")).expect("a log"))
            .spawn()
            .expect("etcd is there");
        self.child = Some(child);
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
