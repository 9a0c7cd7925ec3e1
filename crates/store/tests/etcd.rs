//! What only etcd can do to us: go away and come back, forget, hold foreign values, ask for certificates.

#[path = "support/objects.rs"]
mod objects;

use std::time::Duration;

use fairlead_store::{Backend, Draft, Error, Etcd, EtcdOptions, EtcdTls, Event, Guard, Outcome, Revision, Watch};
use fairlead_testkit::{Etcd as EtcdProcess, Relay, need};
use objects::{all, decode, delete, draft, guarded, put, stored, txn, write};
use tokio::time::timeout;

const PODS: &str = "/registry/pods/";
const A: &str = "/registry/pods/default/a";
const SERVICE: &str = "/registry/services/specs/default/web";

fn options(endpoints: &[String]) -> EtcdOptions {
    let request_timeout = Duration::from_secs(2);
    EtcdOptions { endpoints: endpoints.to_vec(), request_timeout, ..EtcdOptions::default() }
}

async fn connect(etcd: &EtcdProcess) -> Etcd {
    Etcd::connect(&options(&[etcd.url()]), decode).await.expect("etcd answers")
}

/// Tries until etcd is back.
async fn write_again(store: &Etcd, text: &str) -> Revision {
    in_time(async {
        loop {
            if let Ok(Outcome::Done(revision)) = store.commit(txn([put(A, text)])).await {
                return revision;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(90), future).await.expect("within 90 s")
}

async fn next(watch: &mut Watch) -> Result<Vec<Event>, Error> {
    in_time(watch.next()).await
}

#[tokio::test]
async fn a_watch_goes_on_after_etcd_was_away() {
    if !need("a_watch_goes_on_after_etcd_was_away", "etcd") {
        return;
    }
    let mut etcd = EtcdProcess::start();
    let store = connect(&etcd).await;
    let first = write(&store, [put(A, "1")]).await;
    let mut watch = store.watch(PODS, first).await.expect("watch");
    write(&store, [put(A, "2")]).await;
    assert_eq!(next(&mut watch).await.expect("events").len(), 1);
    etcd.kill();
    let error = store.commit(txn([put(A, "lost")])).await.expect_err("it is away");
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    etcd.restart();
    let other = connect(&etcd).await;
    let third = write(&other, [put(A, "3")]).await;
    let fourth = write_again(&store, "4").await;
    let mut seen = Vec::new();
    while seen.last() != Some(&fourth) {
        seen.extend(next(&mut watch).await.expect("events").iter().map(|event| event.revision));
    }
    assert_eq!(seen, [third, fourth]);
}

#[tokio::test]
async fn watchers_start_over_when_etcd_forgot_what_they_missed() {
    if !need("watchers_start_over_when_etcd_forgot_what_they_missed", "etcd") {
        return;
    }
    let mut etcd = EtcdProcess::start();
    let store = connect(&etcd).await;
    for n in 0..10 {
        write(&store, [put(A, &n.to_string())]).await;
    }
    let now = store.revision().await.expect("read");
    let mut watch = store.watch(PODS, now).await.expect("watch");
    etcd.restart_empty();
    // As after a restore from an old backup: revisions went back.
    let error = next(&mut watch).await.expect_err("what it knows is not the past of what is there");
    assert!(matches!(error, Error::Compacted { .. }), "{error}");
    let at = write_again(&store, "new").await;
    assert!(at < now);
    let mut watch = store.watch(PODS, at).await.expect("watch");
    let next_write = write(&store, [put(A, "newer")]).await;
    assert_eq!(next(&mut watch).await.expect("events")[0].revision, next_write);
}

#[tokio::test]
async fn a_watch_reaches_back_into_the_history_of_etcd() {
    if !need("a_watch_reaches_back_into_the_history_of_etcd", "etcd") {
        return;
    }
    let etcd = EtcdProcess::start();
    let writer = connect(&etcd).await;
    let first = write(&writer, [put(A, "1")]).await;
    for n in 2..=5 {
        write(&writer, [put(A, &n.to_string()), put(SERVICE, "x")]).await;
    }
    let store = connect(&etcd).await;
    let mut watch = store.watch(PODS, first).await.expect("watch");
    let mut seen: Vec<u64> = Vec::new();
    while seen.len() < 4 {
        seen.extend(next(&mut watch).await.expect("events").iter().map(|event| event.revision.0));
    }
    // From here on the window serves it.
    let gone = write(&writer, [delete(A)]).await;
    let last = next(&mut watch).await.expect("events");
    assert!(last.len() == 1 && last[0].deleted && last[0].entry.json == stored("5", gone));
    assert_eq!(seen, (first.0 + 1..=first.0 + 4).collect::<Vec<_>>());
    assert!(watch.progress() >= gone);

    writer.compact(gone).await.expect("compacted");
    let error = connect(&etcd).await.watch(PODS, first).await.expect_err("forgotten");
    assert!(matches!(error, Error::Compacted { requested, .. } if requested == first), "{error}");
}

#[tokio::test]
async fn a_dead_endpoint_is_passed_over() {
    if !need("a_dead_endpoint_is_passed_over", "etcd") {
        return;
    }
    let etcd = EtcdProcess::start();
    let dead = "http://127.0.0.1:1".to_owned();
    let store = Etcd::connect(&options(&[dead.clone(), etcd.url()]), decode).await.expect("one answers");
    let start = store.revision().await.expect("read");
    let mut watch = store.watch(PODS, start).await.expect("watch");
    write(&store, [put(A, "1")]).await;
    assert_eq!(next(&mut watch).await.expect("events").len(), 1);
    let error = Etcd::connect(&options(&[dead]), decode).await.expect_err("none answers");
    assert!(matches!(&error, Error::Unavailable(why) if why.contains("refused")), "{error}");
}

#[tokio::test]
async fn a_member_that_falls_silent_is_left() {
    if !need("a_member_that_falls_silent_is_left", "etcd") {
        return;
    }
    let members = EtcdProcess::cluster::<3>();
    let urls: Vec<String> = members.iter().map(EtcdProcess::url).collect();
    // Nothing here ends because of a time limit of the store.
    let options = EtcdOptions { request_timeout: Duration::from_secs(600), ..options(&urls) };
    let store = Etcd::connect(&options, decode).await.expect("etcd answers");
    let mut last = write(&store, [put(A, "0")]).await;
    let mut watch = store.watch(PODS, last).await.expect("watch");
    // One of them is the member that the store uses, and one is the leader.
    for (number, frozen) in members.iter().enumerate() {
        frozen.freeze();
        // Its only guard makes sure that it is not applied twice, so that it can be sent to another
        // member.
        let update = guarded([Guard::At(A.into(), last)], [put(A, &format!("{number}"))]);
        let revision = match in_time(store.commit(update)).await {
            Ok(Outcome::Done(revision)) => revision,
            // Sent twice, and the read that shows what became of it met the election of a leader.
            Err(Error::Unavailable(why)) if why.contains("may have happened") => {
                in_time(async {
                    loop {
                        if let Ok(Some(entry)) = store.get(A).await {
                            return entry.revision;
                        }
                    }
                })
                .await
            }
            outcome => panic!("{outcome:?}"),
        };
        let events = next(&mut watch).await.expect("events");
        assert_eq!(events.iter().map(|event| event.revision).collect::<Vec<_>>(), [revision]);
        last = revision;
        frozen.thaw();
        // The cluster needs this member's vote when the next one freezes.
        in_time(async { while Etcd::connect(&self::options(&[frozen.url()]), decode).await.is_err() {} }).await;
    }
}

/// A store that reaches one member of etcd in two ways, which to the store are two members.
struct TwoWays {
    etcd: EtcdProcess,
    relays: [Relay; 2],
    store: Etcd,
    /// Index of the relay that the store has selected.
    used: usize,
}

impl TwoWays {
    async fn start() -> TwoWays {
        let etcd = EtcdProcess::start();
        let target = etcd.address().parse().expect("an address");
        let relays = [Relay::start(target), Relay::start(target)];
        let urls = relays.each_ref().map(|relay| format!("http://{}", relay.address()));
        let options = EtcdOptions { request_timeout: Duration::from_secs(600), ..options(&urls) };
        let store = Etcd::connect(&options, decode).await.expect("etcd answers");
        let used = relays.iter().position(|relay| relay.accepted() > 0).expect("the store is connected");
        TwoWays { etcd, relays, store, used }
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_reported_as_done_if_its_value_is_there() {
    if !need("a_write_whose_answer_was_lost_is_reported_as_done_if_its_value_is_there", "etcd") {
        return;
    }
    let TwoWays { etcd, relays, store, used } = TwoWays::start().await;
    let direct = connect(&etcd).await;
    let first = write(&direct, [put(A, "1"), put(SERVICE, "1")]).await;
    relays[used].mute();
    let update = guarded([Guard::At(A.into(), first)], [put(A, "2"), delete(SERVICE)]);
    let outcome = in_time(store.commit(update)).await.expect("the other way works");
    let found = direct.get(A).await.expect("read").expect("there");
    assert_eq!(outcome, Outcome::Done(found.revision));
    assert!(found.revision > first);
    assert_eq!(found.json, stored("2", found.revision));
    assert!(direct.get(SERVICE).await.expect("read").is_none());
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_may_have_happened() {
    if !need("a_delete_whose_answer_was_lost_may_have_happened", "etcd") {
        return;
    }
    let TwoWays { etcd, relays, store, used } = TwoWays::start().await;
    let direct = connect(&etcd).await;
    let first = write(&direct, [put(A, "1")]).await;
    relays[used].mute();
    // The key is gone, but another client may have deleted it.
    let removal = in_time(store.commit(guarded([Guard::At(A.into(), first)], [delete(A)]))).await;
    assert!(matches!(&removal, Err(Error::Unavailable(why)) if why.contains("may have happened")), "{removal:?}");
    assert!(direct.get(A).await.expect("read").is_none());
}

#[tokio::test]
async fn a_slow_member_gets_each_request_once() {
    if !need("a_slow_member_gets_each_request_once", "etcd") {
        return;
    }
    let TwoWays { etcd, relays, store, used } = TwoWays::start().await;
    let other = &relays[1 - used];
    // Only the selected member ever answers, however late.
    other.mute();
    let first = write(&store, [put(A, "1")]).await;
    etcd.freeze();
    let thaw = async {
        // The other member is asked once the selected one was silent for a second.
        while other.accepted() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        etcd.thaw();
    };
    // Sent twice, the delete would be refused the second time, and end in doubt.
    let removal = store.commit(guarded([Guard::At(A.into(), first)], [delete(A)]));
    let (outcome, ()) = in_time(async { tokio::join!(removal, thaw) }).await;
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_prefix_keeps_clusters_apart() {
    if !need("the_prefix_keeps_clusters_apart", "etcd") {
        return;
    }
    let etcd = EtcdProcess::start();
    let usual = connect(&etcd).await;
    let raw = EtcdOptions { prefix: "/".into(), ..options(&[etcd.url()]) };
    let raw = Etcd::connect(&raw, decode).await.expect("etcd answers");
    let other = EtcdOptions { prefix: "/teams/blue/".into(), ..options(&[etcd.url()]) };
    let other = Etcd::connect(&other, decode).await.expect("etcd answers");
    let start = usual.revision().await.expect("read");
    let mut watch = other.watch(PODS, start).await.expect("watch");
    write(&usual, [put(A, "usual")]).await;
    let at = write(&other, [put(A, "other")]).await;
    assert_eq!(other.get(A).await.expect("read").expect("there").json, stored("other", at));
    assert_eq!(other.range(all(PODS)).await.expect("read").entries.len(), 1);
    let events = next(&mut watch).await.expect("events");
    assert!(events.len() == 1 && &*events[0].entry.key == A && events[0].revision == at);
    // Where it really is.
    let there = raw.get("/registry/teams/blue/pods/default/a").await.expect("read").expect("there");
    assert_eq!(there.revision, at);
    assert!(raw.get("/registry/registry/pods/default/a").await.expect("read").is_some());
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_named() {
    if !need("a_value_that_cannot_be_read_is_named", "etcd") {
        return;
    }
    let etcd = EtcdProcess::start();
    let store = connect(&etcd).await;
    let start = write(&store, [put(A, "1")]).await;
    let mut pods = store.watch(PODS, start).await.expect("watch");
    let mut services = store.watch("/registry/services/specs/", start).await.expect("watch");
    let rubbish = Draft { json: "k8s\0rubbish".into(), gap: 0 };
    let rubbish = fairlead_store::Write::Put("/registry/pods/default/bad".into(), rubbish);
    write(&store, [rubbish, put(SERVICE, "1")]).await;
    let error = store.get("/registry/pods/default/bad").await.expect_err("rubbish");
    assert!(matches!(&error, Error::Damaged { key, .. } if key == "/registry/pods/default/bad"), "{error}");
    assert!(matches!(store.range(all(PODS)).await, Err(Error::Damaged { .. })));
    // Watchers of Pods must list again, and learn of it there; others are not troubled.
    assert!(matches!(next(&mut pods).await, Err(Error::Compacted { .. })));
    assert_eq!(next(&mut services).await.expect("events").len(), 1);
}

#[tokio::test]
async fn foreign_encodings_are_decoded_and_json_is_written() {
    if !need("foreign_encodings_are_decoded_and_json_is_written", "etcd") {
        return;
    }
    fn both(key: &str, value: &[u8]) -> Result<Draft, String> {
        match value.strip_prefix(b"k8s\0") {
            Some(text) => Ok(draft(std::str::from_utf8(text).map_err(|error| error.to_string())?)),
            None => decode(key, value),
        }
    }
    let etcd = EtcdProcess::start();
    let store = Etcd::connect(&options(&[etcd.url()]), both).await.expect("etcd answers");
    let foreign = Draft { json: "k8s\0hello".into(), gap: 0 };
    let at = write(&store, [fairlead_store::Write::Put(A.into(), foreign)]).await;
    assert_eq!(store.get(A).await.expect("read").expect("there").json, stored("hello", at));
    let at = write(&store, [put(A, "json")]).await;
    // The one who knows JSON only reads it.
    assert_eq!(connect(&etcd).await.get(A).await.expect("read").expect("there").json, stored("json", at));
}

#[tokio::test]
async fn compaction_goes_in_rounds() {
    if !need("compaction_goes_in_rounds", "etcd") {
        return;
    }
    let etcd = EtcdProcess::start();
    let store = connect(&etcd).await;
    let first = write(&store, [put(A, "1")]).await;
    write(&store, [put(A, "2")]).await;
    let old = || fairlead_store::Range { at: Some(first), ..all(PODS) };
    let check = async {
        while store.range(old()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(store.range(old()).await.is_ok());
    tokio::select! {
        () = store.compact_every(Duration::from_millis(100)) => {}
        () = in_time(check) => {}
    }
    assert!(matches!(store.range(old()).await, Err(Error::Compacted { .. })));
    assert_eq!(store.range(all(PODS)).await.expect("read").entries.len(), 1);
}

#[tokio::test]
async fn certificates_are_shown_and_checked() {
    if !need("certificates_are_shown_and_checked", "etcd") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let authority = authority();
    let (server, client) = (issue(&authority), issue(&authority));
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("write");
        path.display().to_string()
    };
    let ca = authority.pem.clone();
    let etcd = EtcdProcess::start_with(&[
        format!("--cert-file={}", file("server.pem", &server.0)),
        format!("--key-file={}", file("server.key", &server.1)),
        format!("--trusted-ca-file={}", file("ca.pem", &ca)),
        "--client-cert-auth=true".to_owned(),
    ]);
    let url = format!("https://{}", etcd.address());
    let with = |tls| EtcdOptions { tls, ..options(std::slice::from_ref(&url)) };
    let identity = Some((client.0.into_bytes(), client.1.into_bytes()));
    let store = Etcd::connect(&with(EtcdTls { ca: Some(ca.clone().into()), client: identity.clone() }), decode).await;
    write(&store.expect("both sides are who they say"), [put(A, "1")]).await;
    for tls in [
        EtcdTls { ca: Some(ca.into()), client: None },
        EtcdTls { ca: Some(self::authority().pem.into()), client: identity.clone() },
        EtcdTls { ca: None, client: identity },
    ] {
        let error = Etcd::connect(&with(tls), decode).await.expect_err("not to be trusted");
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}

struct Authority {
    pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

fn authority() -> Authority {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    Authority { pem, issuer: rcgen::Issuer::new(params, key) }
}

fn issue(authority: &Authority) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    params.extended_key_usages =
        vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth, rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}
