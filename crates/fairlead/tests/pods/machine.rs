//! A machine: a network namespace with a way out, in which `fairlead up` runs.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::need;
use tempfile::TempDir;

/// The program under test.
pub(crate) const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Machine {
    pub(crate) namespace: Namespace,
    home: TempDir,
    flags: Vec<String>,
    up: Child,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Whether machines can be had here.
pub(crate) fn possible(test: &str) -> bool {
    ["root", "ip", "nft", "curl", "pgrep", "python3", "kubectl"].iter().all(|what| need::need(test, what))
}

fn kubectl() -> PathBuf {
    need::program("kubectl").expect("it was there before")
}

/// A machine, or nothing where there can be none.
pub(crate) fn machine(test: &str, flags: &[&str]) -> Option<Machine> {
    if !possible(test) {
        return None;
    }
    let namespace = Namespace::unnamed().unwrap();
    connect(&namespace);
    Some(Machine::start(namespace, &[&["up", "--hostname-override", "here"], flags].concat()))
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

fn start(namespace: &Namespace, home: &TempDir, flags: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(home.path().join("log")).unwrap();
    let mut command = Command::new(FAIRLEAD);
    command.args(flags).args(["--healthz-bind-address=", "--metrics-bind-address="]);
    command.arg("--data-dir").arg(home.path().join("data"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    namespace.run(|| command.spawn()).unwrap().unwrap()
}

impl Machine {
    /// Starts `fairlead` with these words on a machine.
    pub(crate) fn start(namespace: Namespace, words: &[&str]) -> Machine {
        Machine::start_on(namespace, words, |_| {})
    }

    /// The same, after `prepare` has put something into the directory in which `data` will be.
    pub(crate) fn start_on(namespace: Namespace, words: &[&str], prepare: impl FnOnce(&Path)) -> Machine {
        // Pods do not see the /tmp of the machine.
        let home = tempfile::tempdir_in("/opt").unwrap();
        // Pods run as somebody who may do nothing, and some of what is in here is for them.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        prepare(home.path());
        let flags: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let up = start(&namespace, &home, &flags);
        Machine { namespace, home, flags, up }
    }

    /// Kills `fairlead`. Its Pods live on.
    pub(crate) fn kill(&mut self) {
        self.up.kill().unwrap();
        self.up.wait().unwrap();
    }

    /// A path in a directory of the machine's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Kills `fairlead up`, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.up = start(&self.namespace, &self.home, &self.flags);
    }

    /// Runs `fairlead` on this machine.
    pub(crate) fn fairlead(&self, arguments: &[&str]) -> Said {
        self.run(Command::new(FAIRLEAD).args(arguments), "")
    }

    /// Runs `kubectl` on this machine.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Said {
        self.apply("", arguments)
    }

    /// The same, with something to read.
    pub(crate) fn apply(&self, input: &str, arguments: &[&str]) -> Said {
        let mut command = Command::new(kubectl());
        command.arg("--cache-dir").arg(self.path("cache")).args(arguments);
        self.run(&mut command, input)
    }

    /// Runs a line of shell on this machine.
    pub(crate) fn shell(&self, line: &str) -> Said {
        self.run(Command::new("sh").args(["-c", line]), "")
    }

    fn run(&self, command: &mut Command, input: &str) -> Said {
        command.env("KUBECTL", kubectl()).env("KUBECONFIG", self.path("data/admin.kubeconfig")).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.namespace.run(|| command.spawn()).unwrap().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
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

    /// Waits until the machine is a Node on which Pods can run.
    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        let path = "jsonpath={.items[*].spec.podCIDR}";
        self.wait("the machine is a Node", || !self.kubectl(&["get", "nodes", "-o", path]).out.is_empty());
    }

    /// What `fairlead up` said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Said {
    /// What it printed, which must have ended well.
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
        let data = self.path("data").display().to_string();
        let said = self.fairlead(&["cleanup", "--data-dir", &data]);
        if !std::thread::panicking() {
            assert_eq!(said.code, 0, "{said:?}");
            let left = self.shell("ip -o link | grep -E ' fl' ; ip route show proto 207; nft list ruleset");
            assert_eq!(left.out, "", "left behind");
        }
    }
}
