//! Three servers on three members of etcd while members and servers freeze and die: is every
//! acknowledged write kept, does every read show it, and does every watch show each change once and
//! in order?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::{Etcd, Server, full, need};
use serde_json::{Value, json};

use super::{PATIENCE, no_panic, server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Objects that are changed, each by a client of its own.
const COUNTERS: usize = 6;
/// Rounds of all faults.
const ROUNDS: usize = 3;
/// Changes that must be acknowledged after a fault before the next one.
const PROGRESS: u64 = 60;
/// How long it may take until all goes on after a fault.
const RECOVERY: Duration = Duration::from_secs(120);

/// What all clients share.
struct Clients {
    servers: Vec<Client>,
    /// The newest acknowledged value of each counter.
    acknowledged: Vec<AtomicU64>,
    /// Acknowledged changes of all.
    changes: AtomicU64,
    reads: AtomicU64,
    /// Requests without a good answer.
    failures: AtomicU64,
    over: AtomicBool,
}

/// Ends the clients, also when a fault cannot be made.
struct EndsClients<'a>(&'a Clients);

impl Drop for EndsClients<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl Clients {
    fn over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// One request through one of the servers. `None`: nothing is known of what became of it.
    fn send(&self, turn: usize, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let client = &self.servers[turn % self.servers.len()];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = client
            .connect(PATIENCE)
            .and_then(|mut connection| connection.send(method, path, "application/json", &body));
        match answer {
            Ok(answer) if answer.status < 429 => Some((answer.status, answer.json())),
            _ => {
                self.failures.fetch_add(1, Ordering::SeqCst);
                // A server that is down refuses at once.
                thread::sleep(Duration::from_millis(20));
                None
            }
        }
    }

    /// Sends a request to one server after the other until one answers.
    fn insist(&self, turn: usize, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let deadline = Instant::now() + RECOVERY;
        let mut turn = turn;
        loop {
            if let Some(answer) = self.send(turn, method, path, body) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{method} {path}: no server answers");
            turn += 1;
        }
    }
}

fn counter(number: usize) -> String {
    format!("{CONFIG_MAPS}/counter-{number}")
}

fn value(object: &Value) -> u64 {
    object["data"]["value"].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{object}"))
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("every object has one")
}

/// Counts one object up. No two stored values are equal, and none is left out.
fn count(clients: &Clients, number: usize) {
    let (path, mut turn) = (counter(number), number);
    let (_, mut known) = clients.insist(turn, "GET", &path, &Value::Null);
    while !clients.over() {
        turn += 1;
        let next = value(&known) + 1;
        let mut object = known.clone();
        object["data"]["value"] = json!(next.to_string());
        let answer = clients.send(turn, "PUT", &path, &object);
        if let Some((200, changed)) = answer {
            clients.acknowledged[number].store(next, Ordering::SeqCst);
            clients.changes.fetch_add(1, Ordering::SeqCst);
            known = changed;
            continue;
        }
        assert!(matches!(answer, None | Some((409, _))), "{answer:?}");
        let (status, found) = clients.insist(turn, "GET", &path, &Value::Null);
        assert_eq!(status, 200, "{found}");
        assert!([next - 1, next].contains(&value(&found)), "{} is there, {next} was written last", value(&found));
        known = found;
    }
}

/// Reads the counters through all servers: none may show less than was acknowledged before.
fn read(clients: &Clients) {
    let mut turn = 0;
    while !clients.over() {
        turn += 1;
        let number = turn % COUNTERS;
        let acknowledged = clients.acknowledged[number].load(Ordering::SeqCst);
        if let Some((200, found)) = clients.send(turn / COUNTERS, "GET", &counter(number), &Value::Null) {
            assert!(value(&found) >= acknowledged, "{} was read, {acknowledged} was acknowledged", value(&found));
            clients.reads.fetch_add(1, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Creates objects and deletes every other one. Returns the names that must be there, and those
/// that must not.
fn create(clients: &Clients, number: usize) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut there, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let mut turn = number;
    while !clients.over() {
        turn += 1;
        let name = format!("made-{number}-{turn}");
        let made = clients.send(turn, "POST", CONFIG_MAPS, &json!({"metadata": {"name": name}}));
        let Some((201, _)) = made else { continue };
        if turn.is_multiple_of(2) {
            there.insert(name);
        } else if let Some((200, _)) = clients.send(turn + 1, "DELETE", &format!("{CONFIG_MAPS}/{name}"), &Value::Null)
        {
            gone.insert(name);
        }
        thread::sleep(Duration::from_millis(20));
    }
    (there, gone)
}

/// Follows the counters through one server after the other until they are at `last`, which is told
/// at the end. Returns the number of events.
fn follow(clients: &Clients, number: usize, last: &dyn Fn() -> Option<Vec<u64>>) -> u64 {
    let (_, list) = clients.insist(number, "GET", CONFIG_MAPS, &Value::Null);
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for object in list["items"].as_array().into_iter().flatten() {
        let name = object["metadata"]["name"].as_str().expect("every object has one").to_owned();
        if name.starts_with("counter-") {
            seen.insert(name, value(object));
        }
    }
    let (mut newest, mut events, mut turn) = (revision(&list), 0, number);
    let mut silent_since = Instant::now();
    loop {
        let done = |seen: &BTreeMap<String, u64>| {
            last().is_some_and(|last| (0..COUNTERS).all(|number| seen[&format!("counter-{number}")] == last[number]))
        };
        if done(&seen) {
            return events;
        }
        assert!(silent_since.elapsed() < RECOVERY, "no event for {RECOVERY:?}");
        let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=5&resourceVersion={newest}");
        let client = &clients.servers[turn % clients.servers.len()];
        turn += 1;
        let lines = client.connect(PATIENCE).and_then(|connection| connection.follow(&path));
        let Ok(Ok(lines)) = lines else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        for line in lines.map_while(Result::ok) {
            let event: Value = serde_json::from_str(&line).expect("an event a line");
            let object = &event["object"];
            if event["type"] == "ERROR" {
                assert_ne!(object["code"], 410, "changes were missed: {object}");
                break;
            }
            assert!(revision(object) > newest, "an event of {} after {newest}: {event}", revision(object));
            newest = revision(object);
            silent_since = Instant::now();
            let name = object["metadata"]["name"].as_str().expect("every object has one");
            if let Some(before) = seen.get_mut(name) {
                assert_eq!(value(object), *before + 1, "{name}: a change was left out, or came twice");
                *before += 1;
                events += 1;
            }
        }
    }
}

/// Breaks one thing after the other, and waits after each until all goes on.
fn break_things(clients: &Clients, members: &mut [Etcd; 3], servers: &mut [Server]) {
    const FROZEN: Duration = Duration::from_secs(5);
    let pause = || thread::sleep(FROZEN);
    let _end = EndsClients(clients);
    for round in 0..ROUNDS {
        let at = round % 3;
        for fault in 0..6 {
            match fault {
                0 | 1 => {
                    // Over all rounds and faults each member, so the leader, too.
                    let frozen = &members[(at + fault) % 3];
                    frozen.freeze();
                    pause();
                    frozen.thaw();
                }
                2 => {
                    members[at].kill();
                    pause();
                    members[at].restart();
                }
                3 => {
                    let frozen = [&members[at], &members[(at + 1) % 3]];
                    frozen.iter().for_each(|member| member.freeze());
                    pause();
                    frozen.iter().for_each(|member| member.thaw());
                }
                4 => {
                    servers[at].kill();
                    pause();
                    servers[at].restart_unready();
                }
                _ => {
                    servers[at].signal("STOP");
                    pause();
                    servers[at].signal("CONT");
                }
            }
            let (before, deadline) = (clients.changes.load(Ordering::SeqCst), Instant::now() + RECOVERY);
            while clients.changes.load(Ordering::SeqCst) < before + PROGRESS {
                assert!(Instant::now() < deadline, "fault {fault} of round {round}: it does not go on");
                thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "how much was done is worth knowing")]
fn nothing_acknowledged_is_lost_while_members_of_etcd_and_servers_freeze_and_die() {
    let test = "nothing_acknowledged_is_lost_while_members_of_etcd_and_servers_freeze_and_die";
    if !full() || !need(test, "etcd") {
        return;
    }
    let mut members = Etcd::cluster::<3>();
    let urls = members.each_ref().map(Etcd::url).join(",");
    let mut servers: Vec<Server> = (0..3).map(|_| server(&["--etcd-servers", &urls])).collect();
    let clients = Clients {
        servers: servers.iter().map(Server::client).collect(),
        acknowledged: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
        changes: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        failures: AtomicU64::new(0),
        over: AtomicBool::new(false),
    };
    for number in 0..COUNTERS {
        let object = json!({"metadata": {"name": format!("counter-{number}")}, "data": {"value": "0"}});
        assert_eq!(clients.insist(number, "POST", CONFIG_MAPS, &object).0, 201);
    }
    let last = std::sync::OnceLock::new();
    let (made, events) = thread::scope(|scope| {
        let (clients, last) = (&clients, &last);
        let counting: Vec<_> = (0..COUNTERS).map(|number| scope.spawn(move || count(clients, number))).collect();
        let reading: Vec<_> = (0..2).map(|_| scope.spawn(move || read(clients))).collect();
        let making: Vec<_> = (0..2).map(|number| scope.spawn(move || create(clients, number))).collect();
        let following: Vec<_> =
            (0..3).map(|number| scope.spawn(move || follow(clients, number, &|| last.get().cloned()))).collect();
        break_things(clients, &mut members, &mut servers);
        for client in counting.into_iter().chain(reading) {
            client.join().expect("no client finds anything wrong");
        }
        let made: Vec<_> = making.into_iter().map(|client| client.join().expect("no client fails")).collect();
        let values: Vec<u64> = (0..COUNTERS)
            .map(|number| value(&clients.insist(number, "GET", &counter(number), &Value::Null).1))
            .collect();
        last.set(values).expect("it is set once");
        let watched = following.into_iter().map(|client| client.join().expect("no watch misses anything"));
        (made, watched.collect::<Vec<u64>>())
    });
    let (_, list) = clients.insist(0, "GET", CONFIG_MAPS, &Value::Null);
    let names: BTreeSet<String> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    for (there, gone) in &made {
        assert!(there.is_subset(&names), "lost: {:?}", there.difference(&names).collect::<Vec<_>>());
        assert!(gone.is_disjoint(&names), "back again: {:?}", gone.intersection(&names).collect::<Vec<_>>());
    }
    for (number, acknowledged) in clients.acknowledged.iter().enumerate() {
        let found = value(&clients.insist(number, "GET", &counter(number), &Value::Null).1);
        let acknowledged = acknowledged.load(Ordering::SeqCst);
        assert!(found >= acknowledged, "counter-{number}: {found} is there, {acknowledged} was acknowledged");
    }
    println!(
        "{} changes acknowledged, {} reads, {events:?} events watched, {} requests without a good answer",
        clients.changes.load(Ordering::SeqCst),
        clients.reads.load(Ordering::SeqCst),
        clients.failures.load(Ordering::SeqCst),
    );
    no_panic(&servers);
}
