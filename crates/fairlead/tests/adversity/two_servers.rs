//! Two servers on one etcd are one: they give no address or port twice, lose nothing, and show each other's writes, also
//! when etcd dies and comes back meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::connection::{Connection, Raw};
use fairlead_testkit::{Etcd, Server, full, need};
use serde_json::{Value, json};

use super::accounts::{self, Objects};
use super::mirror::Mirror;
use super::{PATIENCE, etcd_keys, no_panic, server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// How long etcd is away.
const OUTAGE: Duration = Duration::from_secs(2);
/// How long a client goes on asking for one thing.
const INSISTENCE: Duration = Duration::from_secs(60);

#[test]
#[allow(clippy::print_stdout, reason = "how much went wrong on the way is worth knowing")]
fn two_servers_on_one_etcd_lose_nothing_and_give_nothing_twice_though_etcd_dies() {
    let test = "two_servers_on_one_etcd_lose_nothing_and_give_nothing_twice_though_etcd_dies";
    if !(need(test, "etcd") && need(test, "etcdctl")) {
        return;
    }
    let (clients, count) = if full() { (32, 2_000) } else { (16, 400) };
    let mut etcd = Etcd::start();
    let servers = [server(&["--etcd-servers", &etcd.url()]), server(&["--etcd-servers", &etcd.url()])];
    let mut mirrors = [Mirror::new(servers[0].client()), Mirror::new(servers[1].client())];
    let (acknowledged, failures) = (AtomicUsize::new(0), Failures::default());
    let expected = thread::scope(|scope| {
        for mirror in &mut mirrors {
            scope.spawn(|| mirror.until("default/last"));
        }
        let client = |number| {
            let (mut clerk, acknowledged) = (Clerk::new(&servers, &failures, number), &acknowledged);
            scope.spawn(move || work(&mut clerk, number, count / clients, acknowledged))
        };
        let workers: Vec<_> = (0..clients).map(client).collect();
        interrupt(&mut etcd, &acknowledged, count / 3);
        let joined = workers.into_iter().flat_map(|worker| worker.join().expect("no client fails"));
        let mut expected: BTreeMap<String, Value> = joined.collect();
        // Seen by the mirrors after everything else.
        let last = Clerk::new(&servers, &failures, 1).insist("POST", SERVICES, &service("last", 0), &[201, 409]);
        expected.insert("default/last".into(), accounts::plain(&last.json()));
        expected
    });
    let (objects, _) = accounts::list(&servers[0].client(), "/api/v1/services");
    compare(&objects, &accounts::list(&servers[1].client(), "/api/v1/services").0, "what the servers list");
    println!("clean failures: {:?}", failures.told());
    assert!(!failures.told().is_empty(), "etcd was away, and nobody noticed");
    for mirror in &mirrors {
        println!("watches went on {} times, and began again {} times", mirror.resumed, mirror.relisted);
        compare(&mirror.objects, &objects, "what a watch told, and what is there");
    }
    check_acknowledged(&objects, &expected);
    accounts::balance(&servers[0].client(), &etcd_keys::value(&etcd, etcd_keys::NODE_PORTS));
    no_panic(&servers);
}

/// Kills etcd once enough was done, and brings it back.
fn interrupt(etcd: &mut Etcd, acknowledged: &AtomicUsize, after: usize) {
    let deadline = Instant::now() + INSISTENCE;
    while acknowledged.load(Ordering::Relaxed) < after && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    etcd.kill();
    thread::sleep(OUTAGE);
    etcd.restart();
}

/// Creates Services through both servers; deletes some and changes some. Gives what must be there at the end.
fn work(clerk: &mut Clerk<'_>, number: usize, count: usize, acknowledged: &AtomicUsize) -> Vec<(String, Value)> {
    let mut expected = Vec::new();
    for turn in 0..count {
        let name = format!("client{number}-{turn}");
        let path = format!("{SERVICES}/{name}");
        let mut made = clerk.insist("POST", SERVICES, &service(&name, number + turn), &[201, 409]);
        if made.status == 409 {
            // An earlier attempt, which got no answer, has made it.
            made = clerk.insist("GET", &path, &Value::Null, &[200]);
        }
        match turn % 8 {
            3 => drop(clerk.insist("DELETE", &path, &Value::Null, &[200, 404])),
            6 => {
                let change = json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": null}});
                let changed = clerk.insist("PATCH", &path, &change, &[200]);
                expected.push((format!("default/{name}"), accounts::plain(&changed.json())));
            }
            _ => expected.push((format!("default/{name}"), accounts::plain(&made.json()))),
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    expected
}

/// A Service of one of four sorts.
fn service(name: &str, sort: usize) -> Value {
    let mut spec = json!({
        "ipFamilyPolicy": "RequireDualStack",
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}],
    });
    match sort % 4 {
        0 => {}
        1 => spec["ipFamilyPolicy"] = json!("SingleStack"),
        2 => spec["type"] = json!("NodePort"),
        _ => {
            spec["type"] = json!("LoadBalancer");
            spec["externalTrafficPolicy"] = json!("Local");
            spec["ports"] = json!([{"port": 443}]);
        }
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// A client that asks the servers in turn until one does what it wants.
struct Clerk<'a> {
    connections: Vec<Connection>,
    failures: &'a Failures,
    turn: usize,
}

impl Clerk<'_> {
    fn new<'a>(servers: &[Server; 2], failures: &'a Failures, turn: usize) -> Clerk<'a> {
        let connect = |server: &Server| server.client().connect(PATIENCE).expect("the server listens");
        Clerk { connections: servers.iter().map(connect).collect(), failures, turn }
    }

    /// The first answer that is wanted. Those of an outage are clean and in time; the last of `wanted` may only follow one.
    fn insist(&mut self, method: &str, path: &str, body: &Value, wanted: &[u16]) -> Raw {
        let deadline = Instant::now() + INSISTENCE;
        let mut failed = false;
        while Instant::now() < deadline {
            let began = Instant::now();
            let answer = self.send(method, path, body);
            assert!(began.elapsed() < PATIENCE, "{method} {path} takes {:?}", began.elapsed());
            let at = wanted.iter().position(|status| *status == answer.status);
            if at == Some(0) || (failed && at.is_some()) {
                return answer;
            }
            self.failures.note(&answer);
            failed = true;
            thread::sleep(Duration::from_millis(50));
        }
        panic!("{method} {path} does not succeed in {INSISTENCE:?}");
    }

    /// The servers live throughout: they always answer.
    fn send(&mut self, method: &str, path: &str, body: &Value) -> Raw {
        self.turn += 1;
        let connection = &mut self.connections[self.turn % 2];
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        connection.send(method, path, media, &body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

/// What servers said when they could not do as asked, and how often.
#[derive(Debug, Default)]
struct Failures(Mutex<BTreeMap<String, usize>>);

impl Failures {
    /// A failure of the store is told as a Status of the server's side.
    fn note(&self, answer: &Raw) {
        let (status, text) = (answer.json(), String::from_utf8_lossy(&answer.body));
        assert!((500..=504).contains(&answer.status), "{}: {text}", answer.status);
        assert_eq!(status["kind"], "Status", "{text}");
        assert_eq!(status["status"], "Failure", "{text}");
        assert_eq!(status["code"], answer.status, "{text}");
        let message = status["message"].as_str().filter(|message| !message.is_empty()).expect("a message");
        let mut told = self.0.lock().expect("no panic while it is held");
        *told.entry(format!("{} {message}", answer.status)).or_default() += 1;
    }

    fn told(&self) -> BTreeMap<String, usize> {
        self.0.lock().expect("no panic while it is held").clone()
    }
}

/// Everything acknowledged is there as it was acknowledged, and nothing else but the Service of the API itself.
fn check_acknowledged(objects: &Objects, expected: &Objects) {
    let mut found = objects.clone();
    assert!(found.remove("default/kubernetes").is_some(), "the Service of the API");
    compare(&found, expected, "what is there, and what was acknowledged");
}

/// As `assert_eq`, with a message people can read.
fn compare(left: &Objects, right: &Objects, what: &str) {
    let names = |some: &Objects, other: &Objects| -> Vec<String> {
        some.iter().filter(|(name, object)| other.get(*name) != Some(object)).map(|(name, _)| name.clone()).collect()
    };
    let (left_only, right_only) = (names(left, right), names(right, left));
    let one = |objects: &Objects, names: &[String]| names.first().map(|name| objects[name].to_string());
    assert!(
        left_only.is_empty() && right_only.is_empty(),
        "{what} differ in {left_only:?} and {right_only:?}:\n{:?}\n{:?}",
        one(left, &left_only),
        one(right, &right_only)
    );
}

#[test]
fn servers_that_start_at_once_on_an_empty_etcd_all_start() {
    if !need("servers_that_start_at_once_on_an_empty_etcd_all_start", "etcd") {
        return;
    }
    for _ in 0..3 {
        let etcd = Etcd::start();
        let servers: Vec<Server> = thread::scope(|scope| {
            let start = || server(&["--etcd-servers", &etcd.url()]);
            let starting: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|starts| starts.join().expect("it starts")).collect()
        });
        let (services, _) = accounts::list(&servers[0].client(), "/api/v1/services");
        assert_eq!(services.keys().collect::<Vec<_>>(), ["default/kubernetes"]);
        accounts::balance(&servers[1].client(), &Value::Null);
    }
}

#[test]
fn one_of_many_gets_an_address_or_a_port_that_all_ask_for() {
    let test = "one_of_many_gets_an_address_or_a_port_that_all_ask_for";
    if !need(test, "etcd") {
        return;
    }
    let etcd = Etcd::start();
    let servers = [server(&["--etcd-servers", &etcd.url()]), server(&["--etcd-servers", &etcd.url()])];
    let asks = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    race(
        &servers,
        |name| asks(name, json!({"clusterIP": "10.0.7.7", "ports": [{"port": 80}]})),
        |name| {
            format!(
                "Service \"{name}\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.7.7\"]: failed to allocate IP \
                 10.0.7.7: provided IP is already allocated"
            )
        },
    );
    race(
        &servers,
        |name| asks(name, json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]})),
        |name| {
            format!(
                "Service \"{name}\" is invalid: spec.ports[0].nodePort: Invalid value: 30007: provided port is already \
                 allocated"
            )
        },
    );
    no_panic(&servers);
}

/// Thirty-two clients ask at once for what only one can have; the others hear why.
fn race(servers: &[Server; 2], object: impl Fn(&str) -> Value + Sync, refusal: impl Fn(&str) -> String + Sync) {
    const CLIENTS: usize = 32;
    let start = Barrier::new(CLIENTS);
    let failures = Failures::default();
    let run = |number: usize| {
        let mut clerk = Clerk::new(servers, &failures, number);
        let name = format!("racer-{number}");
        start.wait();
        let answer = clerk.send("POST", SERVICES, &object(&name));
        match answer.status {
            201 => true,
            _ => {
                assert_eq!((answer.status, answer.json()["message"].as_str()), (422, Some(refusal(&name).as_str())));
                false
            }
        }
    };
    let winners: Vec<String> = thread::scope(|scope| {
        let run = &run;
        let racers: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || (number, run(number)))).collect();
        let ran = racers.into_iter().map(|racer| racer.join().expect("no client fails"));
        ran.filter(|(_, won)| *won).map(|(number, _)| format!("racer-{number}")).collect()
    });
    assert_eq!(winners.len(), 1, "{winners:?}");
    Clerk::new(servers, &failures, 0).insist("DELETE", &format!("{SERVICES}/{}", winners[0]), &Value::Null, &[200]);
}
