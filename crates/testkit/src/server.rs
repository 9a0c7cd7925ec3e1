//! The built program, started as a user would start it: on a port of its own, with a data directory of its own, gone with
//! the value that stands for it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::https::Client;

/// The administrator's token in the token file of every server started here.
pub const ADMIN_TOKEN: &str = "admin-token-of-a-test";

/// How long a start may take before it counts as failed; generous, for machines with other work to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `fairlead server`.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    flags: Vec<String>,
    child: Option<Child>,
    home: TempDir,
    address: SocketAddr,
    announcement: String,
}

impl Server {
    /// Starts `program server` with further flags and waits until it is ready.
    pub fn start(program: impl AsRef<Path>, flags: &[&str]) -> Server {
        Server::start_on(program, flags, |_| {})
    }

    /// The same, after `prepare` has put something into the data directory, which is not there yet.
    pub fn start_on(program: impl AsRef<Path>, flags: &[&str], prepare: impl FnOnce(&Path)) -> Server {
        let home = tempfile::tempdir().expect("a temporary directory");
        prepare(&home.path().join("data"));
        fs::write(home.path().join("config.yaml"), "{}\n").expect("a config file");
        let tokens = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
        fs::write(home.path().join("tokens.csv"), tokens).expect("a token file");
        let mut server = Server {
            program: program.as_ref().to_owned(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            child: None,
            home,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            announcement: String::new(),
        };
        server.run();
        server.check_ready();
        server
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// The administrator's kubeconfig, as the program wrote it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data_dir().join("admin.kubeconfig")
    }

    /// What it printed when it was ready.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// The number of its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// A client with the administrator's token.
    pub fn client(&self) -> Client {
        let authority = fs::read(self.data_dir().join("pki/ca.crt")).expect("the server has made its authority");
        Client::new(self.address, &authority, ADMIN_TOKEN)
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    /// Ends it with SIGTERM, and waits until it has ended.
    pub fn terminate(&mut self) {
        self.signal("TERM");
        if let Some(mut child) = self.child.take() {
            child.wait().expect("it is ours");
        }
    }

    /// Sends a signal to its process: `STOP`, `CONT`, ...
    pub fn signal(&self, name: &str) {
        let pid = self.pid().expect("it runs").to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().expect("there is a kill");
        assert!(status.success(), "kill -{name} {pid}");
    }

    /// Starts it again on the same port with the data it had.
    pub fn restart(&mut self) {
        self.restart_unready();
        self.check_ready();
    }

    /// Starts it again like [`Server::restart`], and returns once it announces itself even if
    /// `/readyz` fails.
    pub fn restart_unready(&mut self) {
        self.kill();
        self.run();
    }

    fn check_ready(&self) {
        let ready = self.client().get("/readyz").expect("the server says it is ready");
        assert_eq!(ready.status, 200, "{}", ready.body);
    }

    fn run(&mut self) {
        let home = self.home.path();
        let mut child = Command::new(&self.program)
            .arg("server")
            .arg("--config")
            .arg(home.join("config.yaml"))
            .arg("--data-dir")
            .arg(home.join("data"))
            .arg("--token-auth-file")
            .arg(home.join("tokens.csv"))
            .args(["--bind-address", "127.0.0.1", "--secure-port", &self.address.port().to_string()])
            .args(&self.flags)
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(home.join("log")).expect("a log"))
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let lines = lines_of(child.stdout.take().expect("asked for"));
        self.child = Some(child);
        match lines.recv_timeout(PATIENCE) {
            Ok(text) => self.announcement = text,
            Err(_) => {
                let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
                panic!("the server does not get ready ({ended:?}):\n{}", self.log());
            }
        }
        self.address = address_in(&self.announcement).expect("the announcement names the address");
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends on what a program prints up to the line that names `KUBECONFIG`, and reads on so that the program never blocks.
fn lines_of(stdout: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            text.push_str(&line);
            text.push('\n');
            if line.contains("KUBECONFIG=") {
                let _ = sender.send(std::mem::take(&mut text));
            }
        }
    });
    receiver
}

/// The address in `Fairlead is ready at https://127.0.0.1:6443 after 20 ms.`
fn address_in(announcement: &str) -> Option<SocketAddr> {
    let rest = announcement.split("https://").nth(1)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_address_is_read_from_the_announcement() {
        let found = address_in("Fairlead is ready at https://127.0.0.1:6443 after 20 ms.\n");
        assert_eq!(found.map(|address| address.port()), Some(6443));
        assert_eq!(address_in("Fairlead is not ready"), None);
    }
}
