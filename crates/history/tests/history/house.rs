//! A server on a store, with a history beside it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairlead_api::source::Source;
use fairlead_api::{Kind, Settings, kinds};
use fairlead_cluster::{Cluster, Patch};
use fairlead_history::{Bounds, History, Item, Moment, Subject, Timeline, Wish};
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Local, Options, Server};
use fairlead_store::{Backend, Memory};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(90);
/// As much as nobody fills.
pub(crate) const ROOMY: Bounds = Bounds { size: 64 << 20, age: Duration::from_secs(3600) };

/// A server.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) cluster: Cluster,
}

/// A history that is being kept.
pub(crate) struct Kept {
    pub(crate) history: History,
    stop: CancellationToken,
    keeper: JoinHandle<()>,
}

impl House {
    pub(crate) async fn new() -> House {
        House::on(Arc::new(Memory::new())).await
    }

    pub(crate) async fn on(store: Arc<dyn Backend>) -> House {
        let stop = CancellationToken::new();
        let server = Server::new(store, options(), Authenticator::default(), None, stop).await.expect("a server");
        let local = local(&server);
        let cluster = Cluster::new(local.clone(), Arc::new(local)).managed_by("tester");
        House { server, cluster }
    }

    /// Keeps the history of this server in a directory, and waits until it has begun.
    pub(crate) async fn keep(&self, dir: &Path, bounds: Bounds) -> Kept {
        self.keep_from(dir, bounds, Arc::new(local(&self.server))).await
    }

    /// The same, reading by another way.
    pub(crate) async fn keep_from(&self, dir: &Path, bounds: Bounds, source: Arc<dyn Source>) -> Kept {
        let cluster = Cluster::new(local(&self.server), source);
        let stop = CancellationToken::new();
        let server = self.server.clone();
        let who = Arc::new(move |revision| server.writer(revision));
        let history = History::new(bounds, Arc::new(Timestamp::now), Some(who));
        let keeper = history.keep(dir, cluster, stop.clone());
        Kept { history, stop, keeper }
    }

    pub(crate) async fn make(&self, name: &str) -> Value {
        self.cluster.create(&kinds::SERVICE, &service(name)).await.expect("made")
    }

    /// Sets the target port of a Service.
    pub(crate) async fn retarget(&self, name: &str, port: Value) {
        let patch = json!({"spec": {"ports": [{"port": 80, "targetPort": port}]}});
        let patch = Patch::Merge(patch);
        self.cluster.patch(&kinds::SERVICE, "default", name, &patch).await.expect("patched");
    }

    pub(crate) async fn remove(&self, kind: &'static fairlead_api::Kind, name: &str) {
        self.cluster.delete(kind, "default", name, &Default::default()).await.expect("deleted");
    }
}

impl Kept {
    /// Waits until the past of something satisfies `enough`.
    pub(crate) async fn until(&self, subject: &str, enough: impl Fn(&[Item]) -> bool) -> Timeline {
        let wish = Wish { subject: Some(subject.parse().expect("a subject")), since: None, limit: 1000 };
        let started = Instant::now();
        loop {
            let timeline = self.history.timeline(wish.clone()).await.expect("an answer");
            if enough(&timeline.items) {
                return timeline;
            }
            assert!(started.elapsed() < PATIENCE, "it did not come: {timeline:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until everything written so far of Services, EndpointSlices and Pods is kept: each kind comes by a way of its own, and what
    /// is written last comes last.
    pub(crate) async fn settled(&self, house: &House) {
        let name = format!("mark-{}", next());
        let pod = json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        self.marked(house, &kinds::SERVICE, service(&name), &format!("svc/default/{name}")).await;
        self.marked(house, &kinds::ENDPOINT_SLICE, slice(&name, &[]), &format!("endpointslice/default/{name}-x")).await;
        self.marked(house, &kinds::POD, pod, &format!("pod/default/{name}")).await;
    }

    /// Makes something and waits until it is told.
    async fn marked(&self, house: &House, kind: &'static Kind, object: Value, subject: &str) {
        let wish = Wish { subject: Some(subject.parse().expect("a subject")), since: None, limit: 1 };
        house.cluster.create(kind, &object).await.expect("made");
        let name = object["metadata"]["name"].as_str().expect("it has one").to_owned();
        let (began, mut round) = (Instant::now(), 0);
        // The history may begin after it was made: then only a change of it is told.
        while self.history.timeline(wish.clone()).await.expect("an answer").items.is_empty() {
            assert!(began.elapsed() < PATIENCE, "nothing is kept of {subject}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            round += 1;
            let patch = Patch::Merge(json!({"metadata": {"labels": {"round": round.to_string()}}}));
            house.cluster.patch(kind, "default", &name, &patch).await.expect("patched");
        }
    }

    pub(crate) async fn moment(&self, subject: &str, at: Timestamp) -> Moment {
        let subject: Subject = subject.parse().expect("a subject");
        self.history.moment(subject, Some(at)).await.expect("it is kept")
    }

    /// Ends in order.
    pub(crate) fn end(self) {
        self.stop.cancel();
        self.keeper.join().expect("it ends");
    }
}

/// A number that nobody else has.
fn next() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The way in, as one who may do everything.
pub(crate) fn local(server: &Server) -> Local {
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    server.local(User { name: "alice".to_owned(), groups, ..User::default() })
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 9376}]},
    })
}

pub(crate) fn slice(service: &str, endpoints: &[(&str, bool)]) -> Value {
    let endpoint = |(address, ready): &(&str, bool)| json!({"addresses": [address], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": format!("pod-{address}")}});
    json!({
        "metadata": {"namespace": "default", "name": format!("{service}-x"), "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 9376, "protocol": "TCP"}],
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
    })
}

pub(crate) fn lines(items: &[Item]) -> Vec<&str> {
    items.iter().flat_map(|item| item.lines.iter().map(String::as_str)).collect()
}

fn options() -> Options {
    Options {
        settings: Settings {
            service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        },
        extra_kinds: Vec::new(),
        admission: Admission::default(),
        advertise: SocketAddr::from(([127, 0, 0, 1], 6443)),
        authorization: Authorization::Rbac,
        request_timeout: Duration::from_secs(60),
        backup: None,
    }
}
