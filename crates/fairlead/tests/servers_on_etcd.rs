//! Do several servers on one etcd act as one? Many clients make Services through two servers while etcd is killed and comes
//! back: no address or port may be given twice, nothing acknowledged may be lost, and watches must miss nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::{Answer, Client};
use fairlead_testkit::{Etcd, Server, need};
use serde_json::{Value, json};

const SERVICES: usize = 2_000;
const CLIENTS: usize = 32;
const PATH: &str = "/api/v1/namespaces/default/services";
/// How long everything may take, on a machine with other work to do.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn two_servers_on_one_etcd_act_as_one() {
    if !need("two_servers_on_one_etcd_act_as_one", "etcd") {
        return;
    }
    let mut etcd = Etcd::start();
    let servers = [start(&etcd), start(&etcd)];
    let clients = servers.each_ref().map(Server::client);
    let watcher = watch(clients[1].clone(), version(&clients[1]));

    let made = make_services(&clients, || {
        etcd.kill();
        // Long enough for requests to fail, not for anybody to give up.
        thread::sleep(Duration::from_secs(1));
        etcd.restart();
    });

    let names: BTreeSet<String> = (0..SERVICES).map(name).collect();
    for client in &clients {
        let listed = list(client);
        assert_eq!(listed.keys().cloned().collect::<BTreeSet<_>>(), names, "what is listed is what was made");
        no_duplicates(listed.values().map(|service| service["spec"]["clusterIP"].to_string()));
        no_duplicates(listed.values().map(|service| service["spec"]["ports"][0]["nodePort"].to_string()));
        for (name, address) in &made {
            assert_eq!(&listed[name]["spec"]["clusterIP"], address, "{name} is as it was acknowledged");
        }
    }
    let seen = watcher.join().expect("the watcher does not fail");
    assert_eq!(seen, names, "the watch of one server shows what was made through both");
}

fn start(etcd: &Etcd) -> Server {
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &["--etcd-servers", &etcd.url()])
}

/// Makes all Services with many clients at a time, and calls `disturb` when a third is made. Gives the acknowledged addresses.
fn make_services(clients: &[Client; 2], disturb: impl FnOnce()) -> BTreeMap<String, Value> {
    let next = Arc::new(AtomicUsize::new(0));
    let made = Arc::new(Mutex::new(BTreeMap::new()));
    let workers = (0..CLIENTS).map(|worker| {
        let (client, next, made) = (clients[worker % 2].clone(), next.clone(), made.clone());
        thread::spawn(move || {
            while let Some(name) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < SERVICES).map(name) {
                if let Some(address) = make(&client, &name) {
                    made.lock().expect("no panic while held").insert(name, address);
                }
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    while next.load(Ordering::Relaxed) < SERVICES / 3 {
        thread::sleep(Duration::from_millis(5));
    }
    disturb();
    workers.into_iter().for_each(|worker| worker.join().expect("every Service is made"));
    Arc::into_inner(made).expect("all workers are done").into_inner().expect("no panic while held")
}

/// Makes one Service, trying again as long as the server says that the store is away. Gives the address in the answer;
/// nothing if an earlier try had been written though it was not acknowledged.
fn make(client: &Client, name: &str) -> Option<Value> {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    });
    let deadline = Instant::now() + PATIENCE;
    let mut failed = false;
    loop {
        assert!(Instant::now() < deadline, "{name} cannot be made");
        let answer = client.request("POST", PATH, &service.to_string()).expect("the server itself is never away");
        let body = json(&answer);
        match answer.status {
            201 => return Some(body["spec"]["clusterIP"].clone()),
            409 if failed && body["reason"] == "AlreadyExists" => return None,
            500..=599 => {
                assert_eq!(body["kind"], "Status", "a clean error: {}", answer.body);
                failed = true;
                thread::sleep(Duration::from_millis(50));
            }
            _ => panic!("{name}: {} {}", answer.status, answer.body),
        }
    }
}

/// Watches until every Service has been seen; resumes where it was whenever the answer ends.
fn watch(client: Client, from: String) -> thread::JoinHandle<BTreeSet<String>> {
    thread::spawn(move || {
        let (mut seen, mut version) = (BTreeSet::new(), from);
        let deadline = Instant::now() + PATIENCE;
        while seen.len() < SERVICES {
            assert!(Instant::now() < deadline, "{} of {SERVICES} seen", seen.len());
            let path = format!("{PATH}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
            // A connection that breaks is no loss as long as the next watch can go on from the last version.
            let _ = client.watch(&path, |line| {
                let event: Value = serde_json::from_str(line).expect("an event");
                let meta = &event["object"]["metadata"];
                match event["type"].as_str() {
                    Some("ADDED") => {
                        let name = meta["name"].as_str().expect("a name").to_owned();
                        assert!(seen.insert(name.clone()), "{name} is added twice");
                    }
                    Some("BOOKMARK") => {}
                    _ => panic!("nothing else happens: {line}"),
                }
                version = meta["resourceVersion"].as_str().expect("a version").to_owned();
                seen.len() < SERVICES
            });
        }
        seen
    })
}

/// The Services we made, by name, read from the store itself.
fn list(client: &Client) -> BTreeMap<String, Value> {
    let answer = client.get(PATH).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let items = json(&answer)["items"].as_array().expect("items").clone();
    let named = items.into_iter().map(|item| (item["metadata"]["name"].as_str().expect("a name").to_owned(), item));
    named.filter(|(name, _)| name != "kubernetes").collect()
}

fn version(client: &Client) -> String {
    let answer = client.get(PATH).expect("an answer");
    json(&answer)["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

fn name(number: usize) -> String {
    format!("service-{number}")
}

fn no_duplicates(values: impl Iterator<Item = String>) {
    let mut seen = BTreeSet::new();
    for value in values {
        assert!(value != "null" && seen.insert(value.clone()), "{value} is given twice, or not at all");
    }
}
