//! What becomes of the history, and of the API, where the disk is full? The files lie in a small file system, which the test fills
//! and empties.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fairlead_testkit::https::connection::Connection;
use fairlead_testkit::{Server, need};
use tempfile::TempDir;

use crate::changes::{change, told};
use crate::{PATIENCE, PROGRAM, begun, fairlead, jiff_now, make, path, service};

/// The file that takes all room.
const FILLER: &str = "filler";

#[test]
fn a_full_disk_makes_a_gap_at_most_and_no_write_waits() {
    let Some(house) = House::with("a_full_disk_makes_a_gap_at_most_and_no_write_waits", "history", "4Mi") else {
        return;
    };
    let (mut connection, client) = (house.connect(), house.server.client());
    let mut number = 0;
    let mut write = |times: u64, filling: usize| {
        for _ in 0..times {
            number += 1;
            let status = change(&mut connection, "web", number, filling).expect("an answer");
            assert_eq!(status, 200, "the API goes on");
        }
        number
    };
    let last = write(1, 0);
    assert_eq!(told(&client, "web", last).gaps, 0);

    house.fill();
    // More than there may be left in the last page of the file.
    write(5, 5000);
    house.wait_for("the history cannot be written", 1);
    house.empty();
    let last = write(1, 10);
    assert_eq!(told(&client, "web", last).gaps, 0, "so few are remembered until there is room");

    house.fill();
    // The gap begins with the last change that was written and ends with an attempt after the 200
    // changes. An attempt that was begun before there was room, and ended after, ends it as well.
    let inside = jiff_now();
    write(200, 8000);
    house.wait_for("the history has a gap", 1);
    house.empty();
    house.wait_for("the history is written again", 2);
    let last = write(1, 10);
    assert_eq!(told(&client, "web", last).gaps, 1);
    let (code, _, warned) = fairlead(&house.server, &["diff", "svc/web", "--since", &inside]);
    assert_eq!(code, 1, "{warned}");
    assert!(warned.starts_with("Warning: at that time changes between "), "{warned}");
    let (code, then, _) = fairlead(&house.server, &["history", "svc/web", "--at", &inside]);
    assert!(code == 0 && then.contains("may be missing: they could not be written"), "{then}");
}

#[test]
fn a_server_that_starts_without_room_for_its_history_begins_it_later() {
    let test = "a_server_that_starts_without_room_for_its_history_begins_it_later";
    let Some(mut house) = House::with(test, "history", "4Mi") else { return };
    house.script("dd if=/dev/zero of=\"$D/filler\" bs=1k 2>/dev/null;");
    house.server.restart();
    house.wait_for("the history cannot be written", 1);
    let (mut connection, client) = (house.connect(), house.server.client());
    assert_eq!(change(&mut connection, "web", 1, 0).ok(), Some(200));
    house.empty();
    let began = Instant::now();
    for number in 2.. {
        assert_eq!(change(&mut connection, "web", number, 0).ok(), Some(200));
        let url = "/fairlead/v1/history?subject=svc/default/web";
        if client.get(url).expect("an answer").body.contains("targetPort") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{}", house.log());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn where_the_store_has_no_room_either_writes_are_refused_until_there_is_and_the_past_is_still_told() {
    let test = "where_the_store_has_no_room_either_writes_are_refused_until_there_is_and_the_past_is_still_told";
    // The history keeps 4 MiB in memory: more than the journal of the store takes once the disk is full.
    let Some(house) = House::with(test, "", "16Mi") else { return };
    let (mut connection, client) = (house.connect(), house.server.client());
    assert_eq!(change(&mut connection, "web", 1, 0).ok(), Some(200));
    house.fill();
    let mut number = 1;
    while change(&mut connection, "web", number + 1, 20_000).expect("an answer") == 200 {
        number += 1;
        assert!(number < 10_000, "it is never full");
    }
    let refused = client.request("DELETE", &path("services", "/web"), "").expect("an answer");
    assert_eq!(refused.status, 500, "{}", refused.body);
    assert!(refused.body.contains("No space left on device"), "it says why: {}", refused.body);
    let answer = client.get(&path("services", "/web")).expect("an answer");
    assert_eq!(answer.status, 200, "what is there can still be read");
    assert_eq!(client.get("/readyz").expect("an answer").status, 500, "who balances servers takes another");
    house.empty();
    assert_eq!(told(&client, "web", number).gaps, 0, "what was acknowledged is told");
    house.wait_for("the store is written again", 1);
    assert_eq!(client.get("/readyz").expect("an answer").status, 200);
    for more in 1..=60 {
        assert_eq!(change(&mut connection, "web", number + more, 20_000).ok(), Some(200), "it goes on by itself");
    }
    let told = told(&client, "web", number + 60);
    assert_eq!(told.gaps, 0, "and everything is told");
}

/// A server with a small file system in a mount namespace of its own, gone with it.
struct House {
    server: Server,
    home: TempDir,
    /// Where the small file system is in the data directory.
    place: &'static str,
}

impl House {
    fn with(test: &str, place: &'static str, history_size: &str) -> Option<House> {
        if !["root", "unshare", "mount"].iter().all(|what| need(test, what)) {
            return None;
        }
        let home = tempfile::tempdir().expect("a directory");
        write_script(&home.path().join("fairlead"), place, "");
        let server = Server::start(home.path().join("fairlead"), &[&format!("--history-size={history_size}")]);
        let house = House { server, home, place };
        make(&house.server, "services", service());
        begun(&house.server);
        Some(house)
    }

    /// Does something more before the next start.
    fn script(&self, before: &str) {
        write_script(&self.home.path().join("fairlead"), self.place, before);
    }

    fn connect(&self) -> Connection {
        self.server.client().connect(PATIENCE).expect("a connection")
    }

    /// The small file system, as the server sees it.
    fn disk(&self) -> PathBuf {
        let inside = self.server.data_dir().join(self.place);
        let root = format!("/proc/{}/root", self.server.pid().expect("it runs"));
        Path::new(&root).join(inside.strip_prefix("/").expect("a whole path"))
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut file = fs::File::create(self.disk().join(FILLER)).expect("a file");
        while file.write_all(&[0; 512]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.disk().join(FILLER)).expect("it is there");
    }

    fn log(&self) -> String {
        self.server.log()
    }

    /// Waits until it has been logged so often.
    fn wait_for(&self, words: &str, times: usize) {
        let began = Instant::now();
        while self.log().matches(words).count() < times {
            assert!(began.elapsed() < PATIENCE, "{words}:\n{}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// A program that is the server, but with a small file system at `place` of its data directory. Certificates stay where they can be
/// read from outside.
fn write_script(program: &Path, place: &str, before: &str) {
    let script = format!(
        r#"#!/bin/sh
# fairlead server --config FILE --data-dir DIRECTORY …
data="$5"; D="$data/{place}"; keep="$0.pki"
mkdir -p "$D" "$data/pki" "$keep"
export D data keep
exec unshare --mount --propagation private sh -c '
mount --bind "$data/pki" "$keep" && mount -t tmpfs -o size=12m none "$D" && mkdir -p "$data/pki" || exit 1
mount --bind "$keep" "$data/pki" || exit 1
{before}
exec {PROGRAM} "$@"' sh "$@"
"#
    );
    fs::write(program, script).expect("a program");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("it is ours");
}
