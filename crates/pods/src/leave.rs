//! How a Pod goes: in an order in which nobody loses a request.
//!
//! ```text
//! deletion seen --> EndpointSlices no longer list it as ready --> every proxy has programmed that --> connections end (a while)
//!               --> preStop hook --> SIGTERM --> SIGKILL when its time is over
//! ```
//! All of it takes no longer than the Pod's grace period.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::programmed::await_programmed;
use fairlead_cluster::{Event, Key, Object, Selection, Severity, Step};
use fairlead_probe::{Handler, look};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::container::Run;
use crate::exec;
use crate::node::Node;
use crate::sockets;
use crate::unit::Role;

/// A process whose hook took all the time still has this much.
const AT_LEAST: Duration = Duration::from_secs(2);
/// How often connections are counted.
const COUNT: Duration = Duration::from_millis(50);

/// A Pod that goes.
pub(crate) struct Leaving {
    pub(crate) node: Arc<Node>,
    pub(crate) pod: Arc<Value>,
    pub(crate) stops: Vec<Stop>,
    /// Everything is over then.
    pub(crate) deadline: Instant,
    /// Whether the API still has it: others are to learn that it goes.
    pub(crate) known: bool,
}

/// A container that is to be stopped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) run: Run,
    pub(crate) container: Value,
    pub(crate) role: Role,
    pub(crate) address: String,
}

impl Leaving {
    /// Ends all containers.
    pub(crate) async fn leave(self) {
        if self.known && !self.stops.is_empty() {
            self.withdraw().await;
        }
        let mains = self.stops.iter().filter(|stop| stop.role != Role::Sidecar);
        join_all(mains.map(|stop| stop.stop(&self.node, &self.pod, self.deadline, stop.usual()))).await;
        for sidecar in self.stops.iter().rev().filter(|stop| stop.role == Role::Sidecar) {
            sidecar.stop(&self.node, &self.pod, self.deadline, sidecar.usual()).await;
        }
    }

    /// Waits until nobody sends new connections, and those there are have ended.
    async fn withdraw(&self) {
        let name = self.pod.at("metadata").text("name");
        let left = self.deadline.saturating_duration_since(Instant::now());
        let began = Instant::now();
        match timeout(left / 2, out_of_service(self)).await {
            Ok(Ok(false)) => return,
            Ok(Ok(true)) => {}
            Ok(Err(why)) => tracing::warn!(pod = name, why, "a Pod goes that others may still send to"),
            Err(_) => tracing::warn!(pod = name, "a Pod goes that others may still send to: it took too long"),
        }
        tracing::debug!(pod = name, took = ?began.elapsed(), "nobody is sent to the Pod any more");
        let left = self.deadline.saturating_duration_since(Instant::now());
        let _ = timeout((left / 2).min(self.node.settings.drain), self.drained()).await;
    }

    async fn drained(&self) {
        let runs: Vec<&Run> = self.stops.iter().map(|stop| &stop.run).collect();
        let ports = self.pod.at("spec").flag("hostNetwork").then(|| ports(&self.pod));
        while sockets::served(&runs, ports.as_deref()) > 0 {
            sleep(COUNT).await;
        }
    }
}

/// The ports a Pod says it serves.
fn ports(pod: &Value) -> Vec<u16> {
    let containers = pod.at("spec").list("containers").iter();
    let ports = containers.flat_map(|container| container.list("ports"));
    ports.filter_map(|port| u16::try_from(port.int("containerPort")).ok()).collect()
}

/// Waits until no EndpointSlice lists the Pod as ready and every proxy knows. False: none lists it at all.
async fn out_of_service(leaving: &Leaving) -> Result<bool, String> {
    let meta = leaving.pod.at("metadata");
    let selection = Selection::all(&kinds::ENDPOINT_SLICE).in_namespace(meta.text("namespace"));
    let mut steps = leaving.node.cluster.follow(selection);
    let mut listings = Listings { uid: meta.text("uid").to_owned(), ..Listings::default() };
    while let Some(step) = steps.next().await {
        listings.hear(step);
        if listings.complete && !listings.listed {
            return Ok(false);
        }
        if listings.complete && !listings.ready.values().any(|ready| *ready) {
            if listings.newest == 0 {
                return Ok(true);
            }
            let left = leaving.deadline.saturating_duration_since(Instant::now());
            let done = await_programmed(&leaving.node.cluster, "proxy", listings.newest, left).await;
            return done.map(|()| true).map_err(|error| error.to_string());
        }
    }
    Ok(false)
}

/// Which slices list a Pod.
#[derive(Default)]
struct Listings {
    uid: String,
    complete: bool,
    /// Whether as ready.
    ready: BTreeMap<Key, bool>,
    /// Some list it, or did.
    listed: bool,
    /// Those of them that proxies follow.
    proxied: BTreeSet<Key>,
    /// The newest revision of such a one; 0: there is none.
    newest: u64,
}

/// What proxies do not follow: of such a slice they can say nothing.
const NOT_PROXIED: [&str; 2] = ["service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"];

impl Listings {
    fn hear(&mut self, step: Step) {
        match step {
            Step::Listing | Step::Trouble(_) => {}
            Step::Objects(objects) => objects.iter().for_each(|object| self.put(object)),
            Step::Listed(_) => self.complete = true,
            Step::Changed(events, _) => events.iter().for_each(|event| match event {
                Event::Put(object) => self.put(object),
                Event::Delete(key, revision) => {
                    self.ready.remove(key);
                    if self.proxied.remove(key) {
                        self.newest = self.newest.max(*revision);
                    }
                }
            }),
        }
    }

    fn put(&mut self, object: &Object) {
        let slice: Value = serde_json::from_slice(&object.json).unwrap_or_default();
        let ours = |endpoint: &&Value| endpoint.at("targetRef").text("uid") == self.uid;
        let mut mine = slice.list("endpoints").iter().filter(ours).peekable();
        let before = self.ready.contains_key(&object.key);
        if mine.peek().is_some() {
            // Nothing said counts as ready.
            let ready = mine.any(|endpoint| endpoint.at("conditions").flag_opt("ready") != Some(false));
            self.ready.insert(object.key.clone(), ready);
        } else {
            self.ready.remove(&object.key);
        }
        if before || self.ready.contains_key(&object.key) {
            self.listed = true;
            let labels = slice.at("metadata").at("labels");
            if NOT_PROXIED.iter().all(|label| labels.at(label).is_null()) {
                self.proxied.insert(object.key.clone());
                self.newest = self.newest.max(object.revision);
            }
        }
    }
}

impl Stop {
    /// What is said of a container that is merely to end.
    fn usual(&self) -> String {
        format!("Stopping container {}", self.container.text("name"))
    }

    /// Ends a container: its hook, a signal, and no mercy when its time is over.
    pub(crate) async fn stop(&self, node: &Node, pod: &Value, deadline: Instant, why: String) {
        let name = self.container.text("name");
        node.tell(pod, Severity::Normal, "Killing", why);
        let mut ended = std::pin::pin!(self.run.ended());
        let hook = self.container.at("lifecycle").at("preStop");
        if hook.is_object() {
            let done = tokio::select! {
                done = timeout_at(deadline, self.hook(node, hook)) => done.unwrap_or(Err("it took too long".to_owned())),
                _ = &mut ended => return,
            };
            if let Err(why) = done {
                tracing::debug!(container = name, why, "a preStop hook failed");
                node.tell(pod, Severity::Warning, "FailedPreStopHook", "PreStopHook failed");
            }
        }
        let until = if hook.is_object() { deadline.max(Instant::now() + AT_LEAST) } else { deadline };
        if Instant::now() < until {
            self.run.signal(signal(self.container.at("lifecycle").text("stopSignal"))).await;
            if timeout_at(until, &mut ended).await.is_ok() {
                return;
            }
        }
        if self.run.shares_processes() {
            self.run.kill_all().await;
            if timeout(AT_LEAST, &mut ended).await.is_ok() {
                return;
            }
        }
        self.run.kill().await;
        let _ = timeout(AT_LEAST, ended).await;
    }

    /// Runs a hook.
    pub(crate) async fn hook(&self, node: &Node, hook: &Value) -> Result<(), String> {
        if hook.map("sleep").is_some() {
            sleep(Duration::from_secs(hook.at("sleep").int("seconds").unsigned_abs())).await;
            return Ok(());
        }
        match Handler::read(hook, &self.container, &self.address).map_err(|why| why.to_string())? {
            Handler::Exec(words) => match exec::run(&node.settings, &self.run, words, None).await? {
                (0, _) => Ok(()),
                (code, said) => Err(format!("exit status {code}: {said}")),
            },
            Handler::Look(check) => {
                let outcome = look(&check, Duration::from_secs(3600)).await;
                if outcome.is_success() { Ok(()) } else { Err(outcome.message().to_owned()) }
            }
        }
    }
}

/// The number of a signal by its name; SIGTERM for none.
fn signal(name: &str) -> u8 {
    const NAMES: [(&str, u8); 31] = [
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGQUIT", 3),
        ("SIGILL", 4),
        ("SIGTRAP", 5),
        ("SIGABRT", 6),
        ("SIGBUS", 7),
        ("SIGFPE", 8),
        ("SIGKILL", 9),
        ("SIGUSR1", 10),
        ("SIGSEGV", 11),
        ("SIGUSR2", 12),
        ("SIGPIPE", 13),
        ("SIGALRM", 14),
        ("SIGTERM", 15),
        ("SIGSTKFLT", 16),
        ("SIGCHLD", 17),
        ("SIGCONT", 18),
        ("SIGSTOP", 19),
        ("SIGTSTP", 20),
        ("SIGTTIN", 21),
        ("SIGTTOU", 22),
        ("SIGURG", 23),
        ("SIGXCPU", 24),
        ("SIGXFSZ", 25),
        ("SIGVTALRM", 26),
        ("SIGPROF", 27),
        ("SIGWINCH", 28),
        ("SIGIO", 29),
        ("SIGPWR", 30),
        ("SIGSYS", 31),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map_or(15, |(_, number)| *number)
}
