//! The machines of a page: each a shell with a network, file systems, processes and a name of its own, on one LAN.
//!
//! ```text
//! one 192.0.2.1 ---+--- two 192.0.2.2 ---+--- three 192.0.2.3 ---+--- client 192.0.2.200     (and 2001:db8::1, ...)
//! ```

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_testkit::{need, project};
use tempfile::TempDir;

/// The program under test.
const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");
/// How long a command may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Commands that tell a person more than a log.
const TELLING: &[&str] = &["fairlead up", "fairlead server"];
/// A terminal without anybody in front of it.
const TERMINAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/manual/terminal.py");
/// Machines and the last part of their address.
const ADDRESSES: &[(&str, u8)] = &[("one", 1), ("two", 2), ("three", 3), ("client", 200)];

pub(crate) struct Lab {
    home: TempDir,
    /// The LAN's own namespace.
    hub: Child,
    machines: Vec<Machine>,
}

pub(crate) struct Machine {
    pub(crate) name: String,
    shell: Child,
    orders: Option<ChildStdin>,
    /// Where commands and what they print are kept.
    desk: PathBuf,
    /// Where the reader is.
    pub(crate) home: PathBuf,
    count: usize,
}

/// A command that was given to a machine.
pub(crate) struct Job {
    desk: PathBuf,
}

/// What every page needs.
pub(crate) fn possible(page: &str) -> bool {
    let tools = ["root", "bash", "ip", "nft", "unshare", "nsenter", "curl", "python3", "kubectl"];
    tools.iter().all(|what| need(page, what))
}

impl Lab {
    pub(crate) fn new() -> Lab {
        // Pods start where the reader is, and do not see the /tmp of the machine.
        let home = tempfile::tempdir_in("/opt").unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let bin = home.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["kubectl", "etcd", "etcdctl", "kube-apiserver"] {
            if let Some(path) = need::program(name) {
                symlink(path, bin.join(name)).unwrap();
            }
        }
        symlink(FAIRLEAD, bin.join("fairlead")).unwrap();
        fs::write(bin.join("sudo"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(bin.join("sudo"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut hub = Command::new("unshare");
        let ready = "ip link add lan type bridge && ip link set lan up && echo ready && exec cat";
        hub.args(["-n", "--", "sh", "-c", ready]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut hub = hub.spawn().unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(hub.stdout.as_mut().unwrap()), &mut line).unwrap();
        assert_eq!(line, "ready\n");
        Lab { home, hub, machines: Vec::new() }
    }

    /// A machine, made when it is first named.
    pub(crate) fn machine(&mut self, name: &str) -> &mut Machine {
        let known = self.machines.iter().position(|machine| machine.name == name);
        let at = known.unwrap_or_else(|| {
            let machine = Machine::start(name, self.home.path());
            self.connect(name, machine.shell.id());
            self.machines.push(machine);
            self.machines.len() - 1
        });
        &mut self.machines[at]
    }

    fn connect(&self, name: &str, to: u32) {
        let number = ADDRESSES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        let number = number.unwrap_or_else(|| panic!("no machine is called {name}: {ADDRESSES:?}"));
        let (hub, to) = (self.hub.id().to_string(), to.to_string());
        inside(&hub, &format!("ip link add to-{name} type veth peer name eth0 netns {to}"));
        inside(&hub, &format!("ip link set to-{name} master lan up"));
        inside(&to, "ip link set eth0 up");
        inside(&to, &format!("ip address add 192.0.2.{number}/24 dev eth0"));
        inside(&to, &format!("ip address add 2001:db8::{number}/64 dev eth0 nodad"));
        inside(&to, "ip route add default via 192.0.2.254");
    }
}

fn inside(process: &str, line: &str) {
    let words = line.split(' ');
    let output = Command::new("nsenter").args(["-t", process, "-n", "--"]).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Machine {
    fn start(name: &str, lab: &Path) -> Machine {
        let (desk, home) = (lab.join(format!("{name}.desk")), lab.join(name));
        fs::create_dir(&desk).unwrap();
        fs::create_dir(&home).unwrap();
        symlink(project().join("packaging"), home.join("packaging")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["-n", "-m", "-u", "-i", "-p", "-f", "--mount-proc", "--kill-child=KILL", "--", "bash", "-s"]);
        let path = format!("{}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", lab.display());
        command.env_clear().env("PATH", path).env("HOME", &home).env("MACHINE", name).env("LANG", "C.UTF-8");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let mut shell = command.spawn().unwrap();
        let orders = shell.stdin.take();
        let mut machine = Machine { name: name.to_owned(), shell, orders, desk, home, count: 0 };
        let setup = machine.run(include_str!("machine.sh"));
        assert_eq!(setup.code(), Some(0), "{}", setup.printed());
        machine
    }

    /// Runs a command in the reader's shell, and waits until it has ended or `LIMIT` has passed.
    pub(crate) fn run(&mut self, command: &str) -> Job {
        let job = self.job(command);
        let desk = job.desk.display();
        self.order(&format!(". {desk}/command </dev/null >{desk}/out 2>&1; echo $? >{desk}/code"));
        job.wait(|job| job.code().is_some());
        job
    }

    /// Begins a command in another terminal.
    pub(crate) fn begin(&mut self, command: &str) -> Job {
        let job = self.job(command);
        let desk = job.desk.display();
        let inner = if TELLING.iter().any(|known| command.contains(known)) {
            // The terminal is closed, and all of it read, before anybody hears how the command has ended.
            format!(
                "python3 {TERMINAL} {desk}/terminal {desk}/out & screen=$!; \
                 until [ -s {desk}/terminal ]; do sleep 0.01; done; exec 9>\"$(cat {desk}/terminal)\"; kill -USR1 $screen; \
                 . {desk}/command </dev/null >&9 2>{desk}/err; code=$?; exec 9>&-; wait $screen; echo $code >{desk}/code"
            )
        } else {
            format!(". {desk}/command </dev/null >{desk}/out 2>{desk}/err; echo $? >{desk}/code")
        };
        self.order(&format!("set -m; ( trap : INT; {inner} ) & echo $! >{desk}/group; set +m"));
        job.wait(|job| job.read("group").ends_with('\n'));
        job
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&mut self, job: &Job) {
        let group = job.read("group");
        self.order(&format!("kill -INT -{}", group.trim()));
    }

    fn job(&mut self, command: &str) -> Job {
        self.count += 1;
        let desk = self.desk.join(self.count.to_string());
        fs::create_dir(&desk).unwrap();
        fs::write(desk.join("command"), format!("{command}\n")).unwrap();
        Job { desk }
    }

    fn order(&mut self, line: &str) {
        let orders = self.orders.as_mut().expect("the machine runs");
        writeln!(orders, "{line}").and_then(|()| orders.flush()).expect("the shell of the machine lives");
    }
}

impl Job {
    /// What it has printed so far: what it says, or with what it complains about.
    pub(crate) fn printed(&self) -> String {
        self.read("out")
    }

    /// What it complained about, if it has a terminal of its own.
    pub(crate) fn complained(&self) -> String {
        self.read("err")
    }

    /// How it has ended, if it has.
    pub(crate) fn code(&self) -> Option<i32> {
        self.read("code").strip_suffix('\n')?.parse().ok()
    }

    /// Waits until something holds; `false`: it did not.
    pub(crate) fn wait(&self, mut holds: impl FnMut(&Job) -> bool) -> bool {
        let until = Instant::now() + LIMIT;
        while !holds(self) {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn read(&self, file: &str) -> String {
        let bytes = fs::read(self.desk.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            // Control groups outlive the namespaces they were made in.
            let _ = machine.run("fairlead cleanup");
            machine.orders = None;
            let _ = machine.shell.wait();
        }
        self.hub.stdin = None;
        let _ = self.hub.wait();
    }
}
