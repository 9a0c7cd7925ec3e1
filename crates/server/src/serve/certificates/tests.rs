//! Certificates in a directory: made once, kept, made anew when it is time.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::renewal::{Renewal, Source};
use super::*;
use crate::auth::certificate::user;
use crate::serve::kubeconfig;

const NOW: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn files_belong_to_their_owner_alone() {
    let home = dir();
    let pki = home.path().join("data/pki");
    let authority = authority(&pki, at(NOW)).expect("an authority");
    ensure(&pki, "admin", &Subject::admin(), &authority, at(NOW)).expect("a certificate");
    token_key(&pki).expect("a key");
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&pki), mode(&home.path().join("data"))), (0o700, 0o700));
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&pki).expect("a directory") {
        let entry = entry.expect("an entry");
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["admin.crt", "admin.key", "ca.crt", "ca.key", "sa.key"]);
}

#[test]
fn what_was_made_is_kept() {
    let home = dir();
    let first = authority(home.path(), at(NOW)).expect("an authority");
    let second = authority(home.path(), at(NOW + 1)).expect("an authority");
    assert_eq!(first.certificate, second.certificate);
    assert_eq!(token_key(home.path()).expect("a key"), token_key(home.path()).expect("a key"));
    std::fs::remove_file(home.path().join("ca.key")).expect("a file");
    let message = authority(home.path(), at(NOW)).expect_err("half an authority").to_string();
    assert!(message.ends_with("ca.key: missing, while ca.crt is there"), "{message}");
}

#[test]
fn a_certificate_is_made_anew_only_when_it_must_be() {
    let server = |names: &[&str]| Subject::server(names.iter().map(|name| (*name).to_owned()));
    let table: &[(&str, Subject, i64, bool)] = &[
        ("a moment later", server(&["a.example"]), NOW + 1, true),
        ("after half of its time", server(&["a.example"]), NOW + 180 * DAY, true),
        ("after two thirds", server(&["a.example"]), NOW + 244 * DAY, false),
        ("after its end", server(&["a.example"]), NOW + 400 * DAY, false),
        ("before its beginning", server(&["a.example"]), NOW - DAY, false),
        ("with another name", server(&["a.example", "10.1.2.3"]), NOW + 1, false),
        ("with fewer names", server(&[]), NOW + 1, false),
        ("for a client", Subject::admin(), NOW + 1, false),
    ];
    for (what, subject, now, kept) in table {
        let home = dir();
        let authority = authority(home.path(), at(NOW)).expect("an authority");
        let before = ensure(home.path(), "x", &server(&["a.example"]), &authority, at(NOW)).expect("a certificate");
        let after = ensure(home.path(), "x", subject, &authority, at(*now)).expect("a certificate");
        assert_eq!(before == after, *kept, "{what}");
        assert_eq!(ensure(home.path(), "x", subject, &authority, at(*now)).expect("a certificate"), after, "{what}");
    }
}

#[test]
fn a_new_authority_makes_new_certificates() {
    let home = dir();
    let one = authority(home.path(), at(NOW)).expect("an authority");
    let before = ensure(home.path(), "x", &Subject::admin(), &one, at(NOW)).expect("a certificate");
    for file in ["ca.crt", "ca.key"] {
        std::fs::remove_file(home.path().join(file)).expect("a file");
    }
    let two = authority(home.path(), at(NOW)).expect("an authority");
    assert_ne!(before, ensure(home.path(), "x", &Subject::admin(), &two, at(NOW)).expect("a certificate"));
}

#[test]
fn the_administrator_is_a_master() {
    let home = dir();
    let authority = authority(home.path(), at(NOW)).expect("an authority");
    let pair = make(&Subject::admin(), &authority, at(NOW)).expect("a certificate");
    let der = tls::certificates(&pair.certificate).expect("a certificate");
    let user = user(&der[0]).expect("readable").expect("a name");
    assert_eq!((user.name.as_str(), user.is_master()), ("kubernetes-admin", true));
}

#[test]
fn the_server_has_all_its_names() {
    let home = dir();
    let authority = authority(home.path(), at(NOW)).expect("an authority");
    let subject = Subject::server(["10.96.0.1", "fd00:96::1", "box", "api.example.com"].map(str::to_owned));
    let pair = make(&subject, &authority, at(NOW)).expect("a certificate");
    let der = tls::certificates(&pair.certificate).expect("a certificate");
    let (_, parsed) = X509Certificate::from_der(&der[0]).expect("readable");
    assert_eq!(Purpose::Server(alt_names(&parsed)), subject.purpose);
}

#[test]
fn a_kubeconfig_has_everything_in_it() {
    let admin = Pair { certificate: "cert".to_owned(), key: "key".to_owned() };
    let text = kubeconfig::render("https://127.0.0.1:6443", "ca", &admin);
    for line in [
        "    server: https://127.0.0.1:6443",
        "    certificate-authority-data: Y2E=",
        "    client-certificate-data: Y2VydA==",
        "    client-key-data: a2V5",
        "current-context: fairlead",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let table =
        [("0.0.0.0:1", "https://127.0.0.1:1"), ("[::]:2", "https://[::1]:2"), ("10.1.1.1:3", "https://10.1.1.1:3")];
    for (address, url) in table {
        assert_eq!(kubeconfig::server_url(address.parse().expect("an address")), url);
    }
}

fn files_of(home: &TempDir) -> (PathBuf, PathBuf) {
    (home.path().join("tls.crt"), home.path().join("tls.key"))
}

fn place(home: &TempDir, pair: &Pair) {
    let (certificate, key) = files_of(home);
    std::fs::write(certificate, &pair.certificate).expect("a file");
    std::fs::write(key, &pair.key).expect("a file");
}

#[tokio::test(start_paused = true)]
async fn certificates_are_renewed_in_time() {
    let home = dir();
    let authority = authority(home.path(), at(NOW)).expect("an authority");
    let client_authorities = vec![authority.certificate.clone()];
    let renewal =
        Renewal { source: Source::Own(home.path().to_owned(), Subject::server([])), authority, client_authorities };
    let pair = renewal.pair(at(NOW)).expect("a certificate");
    let (configs, mut seen) = watch::channel(renewal.config(&pair).expect("a configuration"));
    let time = Arc::new(AtomicI64::new(NOW));
    let clock = {
        let time = time.clone();
        move || at(time.load(Ordering::SeqCst))
    };
    let stop = CancellationToken::new();
    let looks = Arc::new(AtomicI64::new(0));
    let counted = looks.clone();
    let each = move |_: &Renewal, _| {
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let task = tokio::spawn(renewal.run(pair, configs, Arc::new(clock), each, stop.clone()));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!seen.has_changed().expect("still there"));
    time.store(NOW + 250 * DAY, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(seen.has_changed().expect("still there"));
    seen.mark_unchanged();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!seen.has_changed().expect("still there"));
    assert!(looks.load(Ordering::SeqCst) >= 8);
    stop.cancel();
    task.await.expect("the task ends");
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_and_bad_ones_passed_over() {
    let home = dir();
    let authority = authority(home.path(), at(NOW)).expect("an authority");
    let new = || make(&Subject::server([]), &authority, at(NOW)).expect("a certificate");
    let (one, two) = (new(), new());
    place(&home, &one);
    let (certificate, key) = files_of(&home);
    let client_authorities = vec![authority.certificate.clone()];
    let renewal = Renewal { source: Source::Files(certificate, key), authority, client_authorities };
    let pair = renewal.pair(at(NOW)).expect("a certificate");
    assert_eq!(pair, one);
    let (configs, mut seen) = watch::channel(renewal.config(&pair).expect("a configuration"));
    let stop = CancellationToken::new();
    let task = tokio::spawn(renewal.run(pair, configs, Arc::new(|| at(NOW)), |_, _| {}, stop.clone()));
    // The certificate is there already, its key not yet.
    place(&home, &Pair { certificate: two.certificate.clone(), key: one.key.clone() });
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!seen.has_changed().expect("still there"));
    place(&home, &two);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(seen.has_changed().expect("still there"));
    seen.mark_unchanged();
    std::fs::remove_file(files_of(&home).0).expect("a file");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!seen.has_changed().expect("still there"));
    stop.cancel();
    task.await.expect("the task ends");
}

#[test]
fn a_certificate_whose_key_is_another_is_made_anew() {
    let home = dir();
    let authority = authority(home.path(), at(NOW)).expect("an authority");
    let first = ensure(home.path(), "admin", &Subject::admin(), &authority, at(NOW)).expect("a certificate");
    // A crash after the key of a new pair was renamed, and before its certificate was.
    let other = make(&Subject::admin(), &authority, at(NOW)).expect("a certificate");
    files::write_secret(&home.path().join("admin.key"), other.key.as_bytes()).expect("written");
    let second = ensure(home.path(), "admin", &Subject::admin(), &authority, at(NOW)).expect("a certificate");
    assert_ne!(second.certificate, first.certificate);
    let third = ensure(home.path(), "admin", &Subject::admin(), &authority, at(NOW)).expect("a certificate");
    assert_eq!((third.certificate, third.key), (second.certificate, second.key));
}

#[test]
fn of_two_files_none_is_replaced_unless_both_are_written() {
    let home = dir();
    let [first, second] = ["a", "b"].map(|name| home.path().join(name));
    files::write_secrets(&[(&first, b"old"), (&second, b"old")]).expect("written");
    let nowhere = home.path().join("c/missing");
    files::write_secrets(&[(&first, b"new"), (&nowhere, b"new")]).expect_err("no such directory");
    assert_eq!(std::fs::read(&first).expect("a file"), b"old");
    // A file that has its content is not written again, which a full disk would refuse.
    let before = std::fs::metadata(&second).expect("a file");
    files::write_secrets(&[(&first, b"new"), (&second, b"old")]).expect("written");
    let after = std::fs::metadata(&second).expect("a file");
    assert_eq!(std::fs::read(&first).expect("a file"), b"new");
    assert_eq!(before.ino(), after.ino());
    let names = std::fs::read_dir(home.path()).expect("a directory").count();
    assert_eq!(names, 2, "a draft was left behind");
}
