//! Does the program start where nothing can be written? Its data directory lies in a small file
//! system, which the test fills and empties.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::{ADMIN_TOKEN, Server, full, need};
use serde_json::json;

use super::{FLAGS, PATIENCE};

const SERVICES: &str = "/api/v1/namespaces/default/services";

#[test]
fn a_server_that_starts_on_a_full_disk_answers_reads_and_takes_writes_when_there_is_room() {
    let test = "a_server_that_starts_on_a_full_disk_answers_reads_and_takes_writes_when_there_is_room";
    if !["root", "unshare", "mount"].iter().all(|what| need(test, what)) {
        return;
    }
    let disk = SmallDisk::mount();
    let flags = [FLAGS, &["--advertise-address", "192.0.2.1"]].concat();
    let program = env!("CARGO_BIN_EXE_fairlead");
    let mut server = Server::start_on(program, &flags, |data| symlink(disk.path(), data).expect("a link"));
    let client = server.client();
    assert_eq!(create(&client, "before"), 201);
    let token = fs::read_to_string(server.data_dir().join("join.token")).expect("a token");

    // Each round loses other files that a start makes again.
    let lost: [&[&str]; 4] =
        [&[], &["join.token"], &["pki/server.crt", "admin.kubeconfig"], &["pki/admin.key", "pki/node-client.crt"]];
    for (round, lost) in lost.into_iter().enumerate() {
        server.kill();
        for file in lost {
            fs::remove_file(server.data_dir().join(file)).expect("it was there");
        }
        disk.fill();
        server.restart_unready();
        let client = server.client();
        let read = client.get(&format!("{SERVICES}/before")).expect("an answer");
        assert_eq!(read.status, 200, "{}", read.body);
        // There may be room in the files of the store.
        let mut number = 0;
        while create(&client, &format!("during-{round}-{number}")) == 201 {
            number += 1;
            assert!(number < 1000, "the disk is never full");
        }
        let ready = client.get("/readyz").expect("an answer");
        assert_eq!(ready.status, 500, "it does not say that it takes no writes: {}", ready.body);
        assert_eq!(client.get(&format!("{SERVICES}/before")).expect("an answer").status, 200);
        disk.empty();
        let began = Instant::now();
        while create(&client, &format!("after-{round}")) != 201
            || client.get("/readyz").expect("an answer").status != 200
        {
            assert!(began.elapsed() < PATIENCE, "{}", server.log());
            thread::sleep(Duration::from_millis(100));
        }
        // The token of machines follows by itself.
        let began = Instant::now();
        let is_there = |text: String| if round == 0 { text == token } else { text.contains('@') };
        while !fs::read_to_string(server.data_dir().join("join.token")).is_ok_and(is_there) {
            assert!(began.elapsed() < PATIENCE, "{}", server.log());
            thread::sleep(Duration::from_millis(100));
        }
    }
    server.restart();
    let all = server.client().get(SERVICES).expect("an answer").body;
    for round in 0..lost.len() {
        assert!(all.contains(&format!("after-{round}")));
    }
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn a_first_start_on_a_full_disk_names_the_cause_and_leaves_nothing_broken() {
    let test = "a_first_start_on_a_full_disk_names_the_cause_and_leaves_nothing_broken";
    if !["root", "unshare", "mount"].iter().all(|what| need(test, what)) {
        return;
    }
    let disk = SmallDisk::mount();
    let flags = [FLAGS, &["--advertise-address", "192.0.2.1"]].concat();
    // Pages of 4 KiB that are left on the disk: with each number more of them, the start comes further.
    let rooms = if full() { (0..100).collect() } else { vec![0, 2, 12, 20] };
    for room in rooms {
        disk.fill();
        disk.leave(room);
        let acknowledged = first_start(disk.path(), &flags, room);
        disk.empty();
        let program = env!("CARGO_BIN_EXE_fairlead");
        let server = Server::start_on(program, &flags, |data| symlink(disk.path(), data).expect("a link"));
        let client = server.client();
        if acknowledged {
            let read = client.get(&format!("{SERVICES}/first")).expect("an answer");
            assert_eq!(read.status, 200, "{room} pages: {}", read.body);
        }
        assert_eq!(create(&client, "second"), 201, "{room} pages");
        drop(server);
        disk.clear();
    }
}

/// Starts a server that has never run. It ends with an error that names the cause, or it is ready and is asked to make a Service.
/// Returns true if it has acknowledged that.
fn first_start(data: PathBuf, flags: &[&str], room: u64) -> bool {
    let home = tempfile::tempdir().expect("a directory");
    fs::write(home.path().join("config.yaml"), "{}\n").expect("a config file");
    fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n"))
        .expect("tokens");
    let (out, log) = (home.path().join("out"), home.path().join("log"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_fairlead"))
        .arg("server")
        .arg("--config")
        .arg(home.path().join("config.yaml"))
        .arg("--token-auth-file")
        .arg(home.path().join("tokens.csv"))
        .arg("--data-dir")
        .arg(&data)
        .args(["--bind-address", "127.0.0.1", "--secure-port", "0"])
        .args(flags)
        .stdout(File::create(&out).expect("a file"))
        .stderr(File::create(&log).expect("a log"))
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    let (ended, said) = loop {
        let ended = child.try_wait().expect("it is ours");
        let said = fs::read_to_string(&out).expect("a file");
        if ended.is_some() || said.contains("KUBECONFIG=") {
            break (ended, said);
        }
        assert!(began.elapsed() < 3 * PATIENCE, "{room} pages: it neither ends nor gets ready");
        thread::sleep(Duration::from_millis(5));
    };
    if let Some(status) = ended {
        let log = fs::read_to_string(&log).expect("a log");
        let last = log.lines().rfind(|line| line.contains("fairlead: ")).unwrap_or_default();
        assert!(!status.success() && !log.contains("panicked"), "{room} pages: {log}");
        assert_eq!(last.matches("No space left on device").count(), 1, "{room} pages: {log}");
        return false;
    }
    let address = said.split("https://").nth(1).and_then(|rest| rest.split_whitespace().next());
    let address = address.and_then(|address| address.parse().ok()).expect("an address");
    let authority = fs::read(data.join("pki/ca.crt")).expect("an authority");
    let client = Client::new(address, &authority, ADMIN_TOKEN);
    let created = create(&client, "first") == 201;
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    created
}

fn create(client: &Client, name: &str) -> u16 {
    let metadata = json!({"name": name, "annotations": {"filling": "x".repeat(20_000)}});
    let service = json!({"metadata": metadata, "spec": {"ports": [{"port": 80}]}});
    let answer = client.request("POST", SERVICES, &service.to_string()).expect("an answer");
    // The write before it may have been made after all.
    if answer.status == 409 { 201 } else { answer.status }
}

/// A small file system in the mount namespace of a process, gone with it.
struct SmallDisk {
    holder: Child,
    home: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> SmallDisk {
        let home = tempfile::tempdir().expect("a directory");
        let script = "mount -t tmpfs -o size=16m,mode=0700 none \"$0\" && echo mounted && exec sleep infinity";
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(home.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let mut said = String::new();
        BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut said).expect("the mount is made");
        assert_eq!(said, "mounted\n");
        SmallDisk { holder, home }
    }

    /// Path of the file system from outside its namespace.
    fn path(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.home.path().strip_prefix("/").unwrap_or(Path::new("")))
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut file = File::create(self.path().join("filler")).expect("a file");
        while file.write_all(&[0; 512]).is_ok() {}
    }

    /// Makes room for so many pages of 4 KiB again.
    fn leave(&self, pages: u64) {
        let filler = File::options().write(true).open(self.path().join("filler")).expect("it is there");
        let length = filler.metadata().expect("a size").len();
        filler.set_len(length - pages * 4096).expect("a shorter file");
    }

    /// Removes all files.
    fn clear(&self) {
        for entry in fs::read_dir(self.path()).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.expect("it is removed");
        }
    }

    fn empty(&self) {
        fs::remove_file(self.path().join("filler")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
