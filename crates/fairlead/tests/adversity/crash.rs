//! Does the program keep its word when it is killed? Clients write, the process dies at some moment, and whatever it had
//! acknowledged must be there when it comes back, whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fairlead_store::{Backend, Embedded, Range};
use fairlead_testkit::https::Client;
use fairlead_testkit::https::connection::Connection;
use fairlead_testkit::{Server, full};
use fastrand::Rng;
use serde_json::{Value, json};

use super::accounts::{self, Objects};
use super::mirror::Mirror;
use super::{PATIENCE, etcd_keys, server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const CLIENTS: usize = 8;
/// Services each client makes, changes and deletes.
const NAMES: usize = 5;
/// What a client marks each of its writes with.
const MARK: &str = "mark";

#[test]
#[allow(clippy::print_stdout, reason = "a failure is to be had again with the same seed")]
fn a_killed_server_has_every_acknowledged_write_and_no_half_written_one() {
    let (rounds, seed) = (if full() { 500 } else { 20 }, fastrand::u64(..));
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut server = server(&[]);
    let mut mirror = Mirror::new(server.client());
    let mut books: Vec<Book> = (0..CLIENTS).map(|number| Book::new(number, random.fork())).collect();
    let mut acknowledged = 0;
    for round in 0..rounds {
        let life = Duration::from_millis(random.u64(5..150));
        acknowledged += live_and_die(&mut server, &mut books, &mut mirror, life);
        let stored = read_copy(&server.data_dir());
        accounts::check(&stored.services, &stored.addresses, &stored.ports);
        server.restart();
        let client = server.client();
        let (services, revision) = accounts::list(&client, "/api/v1/services");
        assert_eq!(services, stored.services, "round {round}: the list, and what the store had");
        for book in &mut books {
            assert!(revision >= book.newest, "round {round}: revision {revision} after {}", book.newest);
            book.audit(&services);
        }
        go_on(&client, &mut mirror, revision);
    }
    assert!(acknowledged > rounds * CLIENTS / 2, "only {acknowledged} writes in {rounds} rounds");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// Lets clients write and a mirror watch until the server is killed. Gives the number of acknowledged writes.
fn live_and_die(server: &mut Server, books: &mut [Book], mirror: &mut Mirror, life: Duration) -> usize {
    let client = server.client();
    thread::scope(|scope| {
        scope.spawn(|| mirror.until_cut());
        let writers: Vec<_> = books.iter_mut().map(|book| scope.spawn(|| book.write(&client))).collect();
        thread::sleep(life);
        server.kill();
        writers.into_iter().map(|writer| writer.join().expect("no client fails")).sum()
    })
}

/// The watch goes on from the last event before the death, or says that it cannot; then the list shows the truth.
fn go_on(client: &Client, mirror: &mut Mirror, revision: u64) {
    assert!(revision >= mirror.revision, "an event of {} was told and is lost, {revision} is newest", mirror.revision);
    let mut connection = client.connect(PATIENCE).expect("the server listens");
    let (path, body) = match mirror.objects.contains_key("default/beacon") {
        false => (SERVICES.to_owned(), json!({"metadata": {"name": "beacon"}, "spec": {"ports": [{"port": 1}]}})),
        true => (format!("{SERVICES}/beacon"), json!({"metadata": {"annotations": {MARK: revision.to_string()}}})),
    };
    let method = if path == SERVICES { "POST" } else { "PATCH" };
    let media = if method == "POST" { "application/json" } else { "application/merge-patch+json" };
    let lit = connection.send(method, &path, media, body.to_string().as_bytes()).expect("the server answers");
    assert!(matches!(lit.status, 200 | 201), "{}", String::from_utf8_lossy(&lit.body));
    if !mirror.catch_up(accounts::revision(&lit.json())) {
        mirror.relist();
    }
    assert_eq!(mirror.objects, accounts::list(client, "/api/v1/services").0, "what a watch told, and what is there");
}

/// What one client knows of its Services.
struct Book {
    client: usize,
    random: Rng,
    count: u64,
    /// What was acknowledged last of each; nothing if it was deleted.
    known: BTreeMap<String, Value>,
    /// The write that got no answer.
    pending: Option<Pending>,
    /// The newest revision in an answer.
    newest: u64,
}

struct Pending {
    name: String,
    what: What,
    mark: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Create,
    Change,
    Delete,
}

impl Book {
    fn new(client: usize, random: Rng) -> Book {
        Book { client, random, count: 0, known: BTreeMap::new(), pending: None, newest: 0 }
    }

    /// Writes until the server is gone; gives the number of acknowledged writes.
    fn write(&mut self, client: &Client) -> usize {
        let Ok(mut connection) = client.connect(PATIENCE) else { return 0 };
        let mut acknowledged = 0;
        while self.write_one(&mut connection) {
            acknowledged += 1;
        }
        acknowledged
    }

    fn write_one(&mut self, connection: &mut Connection) -> bool {
        self.count += 1;
        let name = format!("client{}-{}", self.client, self.random.usize(..NAMES));
        let mark = format!("{}-{}", self.client, self.count);
        let what = match self.known.contains_key(&name) {
            false => What::Create,
            true if self.random.u8(..3) == 0 => What::Delete,
            true => What::Change,
        };
        let path = format!("{SERVICES}/{name}");
        let body = body(&name, &mark, self.random.u8(..3)).to_string();
        self.pending = Some(Pending { name: name.clone(), what, mark });
        let sent = match what {
            What::Create => connection.send("POST", SERVICES, "application/json", body.as_bytes()),
            What::Change => connection.send("PATCH", &path, "application/merge-patch+json", body.as_bytes()),
            What::Delete => connection.send("DELETE", &path, "application/json", b""),
        };
        let Ok(answer) = sent else { return false };
        assert!(matches!(answer.status, 200 | 201), "{what:?}: {}", String::from_utf8_lossy(&answer.body));
        self.pending = None;
        let object = accounts::plain(&answer.json());
        match what {
            What::Delete => drop(self.known.remove(&name)),
            _ => {
                self.newest = accounts::revision(&object);
                self.known.insert(name, object);
            }
        }
        true
    }

    /// Compares with what is there after the death, and takes that for known.
    fn audit(&mut self, services: &Objects) {
        for number in 0..NAMES {
            let name = format!("client{}-{number}", self.client);
            let found = services.get(&format!("default/{name}"));
            let pending = self.pending.as_ref().filter(|pending| pending.name == name);
            let happened = pending.is_some_and(|pending| pending.happened(self.known.get(&name), found));
            let known = self.known.get(&name);
            assert!(happened || found == known, "{name}: found {found:?}, acknowledged {known:?}");
            match found {
                Some(object) => drop(self.known.insert(name, object.clone())),
                None => drop(self.known.remove(&name)),
            }
        }
        self.pending = None;
    }
}

impl Pending {
    /// Whether what is there is what this write makes.
    fn happened(&self, before: Option<&Value>, found: Option<&Value>) -> bool {
        let marked = |object: &Value| object["metadata"]["annotations"][MARK] == self.mark;
        let uid = |object: &Value| object["metadata"]["uid"].clone();
        match self.what {
            What::Create => found.is_some_and(marked),
            What::Change => found.is_some_and(|object| marked(object) && before.map(uid) == Some(uid(object))),
            What::Delete => found.is_none(),
        }
    }
}

/// A Service, or a change to it: sorts differ in the addresses and ports they need.
fn body(name: &str, mark: &str, sort: u8) -> Value {
    let (sort, policy) = match sort {
        0 => ("ClusterIP", Value::Null),
        1 => ("NodePort", json!("Cluster")),
        _ => ("LoadBalancer", json!("Local")),
    };
    json!({
        "metadata": {"name": name, "annotations": {MARK: mark}},
        "spec": {
            "type": sort, "externalTrafficPolicy": policy, "ipFamilyPolicy": "PreferDualStack",
            "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}],
        },
    })
}

/// What the store of a dead server holds.
struct Stored {
    services: Objects,
    addresses: Objects,
    ports: Value,
}

/// Opens a copy: the server itself shall be the one that recovers its files.
fn read_copy(data_dir: &Path) -> Stored {
    let copy = tempfile::tempdir().expect("a temporary directory");
    copy_files(data_dir, copy.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Embedded::open(copy.path()).expect("a store that was killed opens");
        let mut stored = Stored { services: Objects::new(), addresses: Objects::new(), ports: Value::Null };
        let all = store.range(Range { prefix: "/registry/".into(), ..Range::default() }).await.expect("a list");
        for entry in &all.entries {
            let object = accounts::plain(&serde_json::from_slice(&entry.json).expect("JSON"));
            if entry.key.starts_with("/registry/services/specs/") {
                stored.services.insert(accounts::name(&object), object);
            } else if entry.key.starts_with("/registry/ipaddresses/") {
                stored.addresses.insert(accounts::name(&object), object);
            } else if &*entry.key == etcd_keys::NODE_PORTS {
                stored.ports = object;
            }
        }
        stored
    })
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
}
