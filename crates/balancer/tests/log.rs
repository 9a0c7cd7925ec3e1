//! Access logs in directories, and in an object store that checks signatures by itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_balancer::log::{Bucket, Destination, Entry, Log, Logs, Settings, Target};
use fairlead_testkit::need;
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn entry(number: usize) -> Entry {
    Entry {
        time: "2026-01-02T03:04:05Z".parse().expect("a time"),
        client: "192.0.2.1:1234".parse().expect("an address"),
        backend: None,
        times: [None; 3],
        status: (200, 0),
        bytes: (0, 0),
        request: Some(format!("GET http://a.example:80/{number} HTTP/1.1")),
        agent: None,
        tls: None,
    }
}

fn logs(dir: &TempDir, spool_limit: u64) -> Logs {
    let settings = Settings { spool: dir.path().join("spool"), spool_limit, ..Settings::default() };
    Logs::start(settings).expect("a thread")
}

fn destination(target: Target, interval: Duration) -> Destination {
    let address = "192.0.2.9".parse().expect("an address");
    Destination { name: "shop-web".to_owned(), address, target, prefix: "my-app".to_owned(), interval }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found.sort();
    found
}

fn lines(dir: &Path) -> usize {
    let texts = files(dir).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    texts.map(|path| fs::read_to_string(path).expect("text").lines().count()).sum()
}

#[track_caller]
fn wait_for(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn write(log: &Log, count: usize) {
    (0..count).for_each(|number| log.write(entry(number)));
}

#[tokio::test]
async fn lines_are_in_a_file_of_their_interval_at_the_latest_at_the_end() {
    let (dir, bucket) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let logs = logs(&dir, 1 << 20);
    let log = logs.open(&destination(Target::Directory(bucket.path().to_owned()), DAY));
    write(&log, 3);
    wait_for("lines are written soon", || logs.written() == 3);
    let partial = files(bucket.path());
    assert_eq!(partial.len(), 1);
    assert!(partial[0].to_string_lossy().ends_with(".log.partial"), "not finished: {partial:?}");
    write(&log, 2);
    logs.stop().await;
    let finished = files(bucket.path());
    assert_eq!(finished, [partial[0].with_extension("")]);
    let name = finished[0].strip_prefix(bucket.path()).expect("inside").display().to_string();
    let begin = "my-app/AWSLogs/000000000000/elasticloadbalancing/fairlead/";
    assert!(name.starts_with(begin), "{name}");
    assert!(name.contains("/000000000000_elasticloadbalancing_fairlead_shop-web_"), "{name}");
    assert_eq!(lines(bucket.path()), 5);
}

#[tokio::test]
async fn a_file_is_finished_when_its_interval_is_over() {
    let (dir, bucket) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let logs = logs(&dir, 1 << 20);
    let log = logs.open(&destination(Target::Directory(bucket.path().to_owned()), Duration::from_secs(1)));
    write(&log, 1);
    wait_for("the interval ends", || lines(bucket.path()) == 1);
    write(&log, 1);
    wait_for("the next ends, too", || lines(bucket.path()) == 2);
    assert_eq!(files(bucket.path()).len(), 2);
}

#[tokio::test]
async fn nobody_waits_for_a_log_that_cannot_be_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    let logs = logs(&dir, 1 << 20);
    let log = logs.open(&destination(Target::Directory(file), DAY));
    let since = Instant::now();
    write(&log, 120_000);
    assert!(since.elapsed() < Duration::from_secs(5));
    wait_for("what is lost is counted", || logs.lost() == 120_000);
}

#[tokio::test]
async fn a_log_that_is_opened_again_goes_on_in_its_file() {
    let (dir, bucket) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let logs = logs(&dir, 1 << 20);
    for round in 1..=2 {
        write(&logs.open(&destination(Target::Directory(bucket.path().to_owned()), DAY)), 1);
        wait_for("it is written", || logs.written() == round);
    }
    logs.stop().await;
    assert_eq!(files(bucket.path()).len(), 1);
    assert_eq!(lines(bucket.path()), 2);
}

/// The object store of `store.py`.
struct Store {
    dir: TempDir,
    port: String,
    scheme: &'static str,
    authority: Option<String>,
    child: Child,
}

impl Store {
    fn start(secure: bool) -> Store {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("python3");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/log/store.py"));
        command.arg(dir.path()).args(["AKIAEXAMPLE", "secret/key+1"]);
        let authority = secure.then(|| {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
            let certificate = params.self_signed(&key).expect("a certificate").pem();
            let paths = [dir.path().join("tls.crt"), dir.path().join("tls.key")];
            fs::write(&paths[0], &certificate).expect("written");
            fs::write(&paths[1], key.serialize_pem()).expect("written");
            command.args(&paths);
            certificate
        });
        let mut child = command.stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut port).expect("a port");
        let scheme = if secure { "https" } else { "http" };
        Store { dir, port: port.trim().to_owned(), scheme, authority, child }
    }

    fn bucket(&self) -> Bucket {
        Bucket {
            endpoint: format!("{}://127.0.0.1:{}", self.scheme, self.port),
            name: "my-loadbalancer-logs".to_owned(),
            region: "eu-west-1".to_owned(),
            access_key: "AKIAEXAMPLE".to_owned(),
            secret_key: "secret/key+1".to_owned(),
            authority: self.authority.clone(),
        }
    }

    fn kept(&self) -> PathBuf {
        self.dir.path().join("kept/my-loadbalancer-logs")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn files_get_into_an_object_store() {
    if !need::need("files_get_into_an_object_store", "python3") {
        return;
    }
    for secure in [false, true] {
        let (dir, store) = (tempfile::tempdir().expect("a directory"), Store::start(secure));
        let logs = logs(&dir, 1 << 20);
        let log = logs.open(&destination(Target::S3(store.bucket()), Duration::from_secs(1)));
        write(&log, 4);
        wait_for("the file is there", || lines(&store.kept()) == 4);
        wait_for("and nothing is left here", || files(&dir.path().join("spool")).is_empty());
        let kept = files(&store.kept());
        let name = kept[0].strip_prefix(store.kept()).expect("inside").display().to_string();
        assert!(name.starts_with("my-app/AWSLogs/000000000000/elasticloadbalancing/fairlead/"), "{name}");
    }
}

#[tokio::test]
async fn files_wait_for_a_store_that_is_away_and_for_a_next_start() {
    if !need::need("files_wait_for_a_store_that_is_away_and_for_a_next_start", "python3") {
        return;
    }
    let (dir, store) = (tempfile::tempdir().expect("a directory"), Store::start(false));
    let away = store.dir.path().join("away");
    fs::write(&away, "").expect("written");
    let target = destination(Target::S3(store.bucket()), Duration::from_secs(1));
    let first = logs(&dir, 1 << 20);
    write(&first.open(&target), 7);
    wait_for("the file waits", || lines(&dir.path().join("spool")) == 7);
    first.stop().await;
    fs::remove_file(&away).expect("back");
    let second = logs(&dir, 1 << 20);
    let _log = second.open(&target);
    wait_for("the store has it", || lines(&store.kept()) == 7);
    assert_eq!(second.lost(), 0);
}

#[tokio::test]
async fn no_more_waits_than_may() {
    if !need::need("no_more_waits_than_may", "python3") {
        return;
    }
    let (dir, store) = (tempfile::tempdir().expect("a directory"), Store::start(false));
    fs::write(store.dir.path().join("away"), "").expect("written");
    let target = destination(Target::S3(store.bucket()), Duration::from_secs(1));
    let logs = logs(&dir, 500);
    let log = logs.open(&target);
    write(&log, 10);
    wait_for("the oldest is given up", || logs.lost() == 10);
    assert_eq!(lines(&dir.path().join("spool")), 0);
}

#[tokio::test]
async fn a_store_that_does_not_know_us_gets_nothing() {
    if !need::need("a_store_that_does_not_know_us_gets_nothing", "python3") {
        return;
    }
    let (dir, store) = (tempfile::tempdir().expect("a directory"), Store::start(false));
    let wrong = Bucket { secret_key: "another".to_owned(), ..store.bucket() };
    let logs = logs(&dir, 1 << 20);
    write(&logs.open(&destination(Target::S3(wrong), Duration::from_secs(1))), 1);
    wait_for("the file is finished", || lines(&dir.path().join("spool")) == 1);
    logs.stop().await;
    assert_eq!(lines(&store.kept()), 0);
    assert_eq!(lines(&dir.path().join("spool")), 1, "it is kept");
}
