//! A process that writes is killed at a random moment, again and again, on the same data: whatever it was told is written
//! must be there, transactions must be whole, and revisions must not go back.

#[path = "support/objects.rs"]
mod objects;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fairlead_store::{Backend, Embedded};
use objects::{all, delete, put, txn, write};

/// Says where the child keeps its data. Without it, this is the parent.
const DATA: &str = "FAIRLEAD_CRASH_DATA";
const WRITERS: usize = 16;
const PODS: &str = "/registry/pods/";
const SERVICES: &str = "/registry/services/specs/";

/// What one writer was told, or what the last look at the store found of it.
#[derive(Debug, Clone, Copy, Default)]
struct Acknowledged {
    round: u64,
    revision: u64,
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let full = std::env::var_os("FAIRLEAD_FULL").is_some_and(|value| value == "1");
    let dir = tempfile::tempdir().expect("a directory");
    let mut told = [Acknowledged::default(); WRITERS];
    for round in 0..if full { 500 } else { 20 } {
        run_and_kill(dir.path(), &mut told, 1_000..250_000);
        check(dir.path(), &mut told, round);
    }
    assert!(told.iter().all(|acknowledged| acknowledged.round > 0), "the child got nowhere: {told:?}");
}

#[test]
fn a_store_killed_while_it_is_made_opens() {
    let rounds = if std::env::var_os("FAIRLEAD_FULL").is_some_and(|value| value == "1") { 200 } else { 20 };
    for round in 0..rounds {
        let dir = tempfile::tempdir().expect("a directory");
        let mut told = [Acknowledged::default(); WRITERS];
        run_and_kill(dir.path(), &mut told, 1_000..20_000);
        check(dir.path(), &mut told, round);
    }
}

/// The child: each writer writes a pair of objects in one transaction, and deletes a third in every other.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DATA) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(Embedded::open(Path::new(&dir)).expect("it opens"));
        let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(keep_writing(store.clone(), writer))).collect();
        for writer in writers {
            writer.await.expect("a writer");
        }
    });
}

async fn keep_writing(store: Arc<Embedded>, writer: usize) {
    let (pod, service, flip) =
        (format!("{PODS}ns/{writer}"), format!("{SERVICES}ns/{writer}"), format!("{PODS}flip/{writer}"));
    let mut round = store.get(&pod).await.expect("read").map_or(0, |entry| said(&entry.json));
    loop {
        round += 1;
        let text = round.to_string();
        let third = if round % 2 == 0 { delete(&flip) } else { put(&flip, &text) };
        let revision = write(&*store, [put(&pod, &text), put(&service, &text), third]).await;
        // One line in one call: lines of different writers do not mix, and nothing is held back.
        write_line(&format!("ack {writer} {round} {revision}\n"));
    }
}

fn write_line(line: &str) {
    use std::io::Write;
    std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
}

fn run_and_kill(dir: &Path, told: &mut [Acknowledged; WRITERS], microseconds: std::ops::Range<u64>) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child_writes_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(DATA, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let mut line = String::new();
        while output.read_line(&mut line).is_ok_and(|read| read > 0) {
            // What the kill cut off was not told.
            if line.ends_with('\n') {
                lines.push(std::mem::take(&mut line));
            }
        }
        let _ = output.read_to_string(&mut line);
        lines
    });
    std::thread::sleep(Duration::from_micros(fastrand::u64(microseconds)));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    for line in reader.join().expect("the reader") {
        note(&line, told);
    }
}

fn note(line: &str, told: &mut [Acknowledged; WRITERS]) {
    let Some((_, rest)) = line.split_once("ack ") else { return };
    let numbers: Vec<u64> = rest.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [writer, round, revision] = numbers[..] else { panic!("{line}") };
    told[writer as usize] = Acknowledged { round, revision };
}

fn check(dir: &Path, told: &mut [Acknowledged; WRITERS], round: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Embedded::open(dir).expect("it opens after a kill");
        let newest = told.iter().map(|told| told.revision).max().unwrap_or(0);
        assert!(store.revision().await.expect("read").0 >= newest, "round {round}: revisions went back");
        for (writer, told) in told.iter_mut().enumerate() {
            *told = check_writer(&store, writer, *told).await;
        }
        let pods = store.range(all(PODS)).await.expect("read");
        assert!(pods.entries.len() <= 2 * WRITERS);
        // It can be written to, and what is written is not taken for something else.
        assert!(store.commit(txn([put("/registry/nodes/check", "x")])).await.is_ok());
    });
}

async fn check_writer(store: &Embedded, writer: usize, told: Acknowledged) -> Acknowledged {
    let entry = async |key: String| store.get(&key).await.expect("read");
    let (pod, service) = (entry(format!("{PODS}ns/{writer}")).await, entry(format!("{SERVICES}ns/{writer}")).await);
    let flip = entry(format!("{PODS}flip/{writer}")).await;
    let (Some(pod), Some(service)) = (&pod, &service) else {
        assert!(pod.is_none() && service.is_none() && flip.is_none(), "writer {writer}: a part of a transaction");
        assert_eq!(told.round, 0, "writer {writer} was told {told:?}, and nothing is there");
        return told;
    };
    let round = said(&pod.json);
    assert!(round >= told.round && pod.revision.0 >= told.revision, "writer {writer} was told {told:?}, has {round}");
    assert!(round <= told.round + 1, "writer {writer} has one transaction under way, not more");
    assert_eq!(
        (said(&service.json), service.revision),
        (round, pod.revision),
        "writer {writer}: a part of a transaction"
    );
    assert_eq!(
        flip.map(|entry| (said(&entry.json), entry.revision)),
        (round % 2 == 1).then_some((round, pod.revision))
    );
    Acknowledged { round, revision: pod.revision.0 }
}

fn said(json: &[u8]) -> u64 {
    let json = std::str::from_utf8(json).expect("text");
    let (_, text) = json.rsplit_once("\"text\":\"").expect("one of ours");
    text.trim_end_matches("\"}").parse().expect("a number")
}
