//! A server on a store in memory, the ways into it, and controllers beside it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::{Kind, Look, Settings, kinds};
use fairlead_cluster::{Cluster, Error, Patch};
use fairlead_control::{Choice, Options};
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Local, Server};
use fairlead_store::Memory;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::{BoxError, ServiceExt};

/// How long something may take that should take a moment.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server, as one sees it who may do everything.
pub(crate) struct House {
    pub(crate) cluster: Cluster,
    stop: CancellationToken,
    _ends: DropGuard,
}

impl House {
    /// With controllers that share the server's memory.
    pub(crate) async fn near() -> House {
        House::new(|local| Cluster::new(local.clone(), Arc::new(local))).await
    }

    /// With controllers that see the server by requests alone, as they see a real cluster.
    pub(crate) async fn far() -> House {
        House::new(Cluster::over::<Local, _>).await
    }

    /// The same, but while it is `down` nobody answers at one path, as happens with extensions of the API.
    pub(crate) async fn far_without(path: &'static str, down: Arc<AtomicBool>) -> House {
        let answer = move |local: Local, request: Request<Full<Bytes>>| {
            let fails = down.load(Ordering::Relaxed) && request.uri().path() == path;
            async move {
                match fails {
                    true => Err(BoxError::from("nobody is there")),
                    false => Ok(local.oneshot(request).await?),
                }
            }
        };
        House::new(move |local| {
            let answer = answer.clone();
            Cluster::over(tower::service_fn(move |request| answer(local.clone(), request)))
        })
        .await
    }

    async fn new(door: impl Fn(Local) -> Cluster) -> House {
        let stop = CancellationToken::new();
        let authenticator = Authenticator::default();
        let server = Server::new(Arc::new(Memory::new()), options(), authenticator, None, stop.clone()).await;
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let user = User { name: "system:fairlead".to_owned(), groups, ..User::default() };
        let cluster = door(server.expect("a server").local(user));
        House { cluster, stop: stop.clone(), _ends: stop.drop_guard() }
    }

    /// Starts the named controllers.
    pub(crate) fn control(&self, controllers: &str) {
        self.control_with(controllers, Options::default());
    }

    /// The same with options of one's own.
    pub(crate) fn control_with(&self, controllers: &str, options: Options) {
        let choice = Choice::parse(controllers).expect("controllers");
        let options = Options { choice, ..options };
        tokio::spawn(fairlead_control::run(self.cluster.clone(), options, self.stop.clone()));
    }

    pub(crate) async fn make(&self, kind: &Kind, mut object: Value) -> Value {
        object.set("kind", kind.kind);
        object.set("apiVersion", kind.api_version());
        self.cluster.create(kind, &object).await.expect("made")
    }

    pub(crate) async fn namespace(&self, name: &str) -> Value {
        self.make(&kinds::NAMESPACE, json!({"metadata": {"name": name}})).await
    }

    /// A ConfigMap in the default namespace.
    pub(crate) async fn config_map(&self, name: &str, metadata: Value) -> Value {
        self.make(&kinds::CONFIG_MAP, named("default", name, metadata)).await
    }

    pub(crate) async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Value> {
        match self.cluster.get(kind, namespace, name).await {
            Ok(object) => Some(object),
            Err(Error::NotFound(_)) => None,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    pub(crate) async fn merge(&self, kind: &Kind, namespace: &str, name: &str, patch: Value) -> Value {
        self.cluster.patch(kind, namespace, name, &Patch::Merge(patch)).await.expect("patched")
    }

    /// Waits until an object is as it should be.
    pub(crate) async fn until(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let object = self.get(kind, namespace, name).await;
            match object {
                Some(object) if holds(&object) => return object,
                other => assert!(Instant::now() < end, "{name} did not become what it should: {other:?}"),
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until an object has gone.
    pub(crate) async fn until_gone(&self, kind: &Kind, namespace: &str, name: &str) {
        let end = Instant::now() + PATIENCE;
        while let Some(object) = self.get(kind, namespace, name).await {
            assert!(Instant::now() < end, "{name} is still there: {object}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// That an object stays for a while.
    pub(crate) async fn stays(&self, kind: &Kind, namespace: &str, name: &str) {
        for _ in 0..30 {
            sleep(Duration::from_millis(10)).await;
            assert!(self.get(kind, namespace, name).await.is_some(), "{name} has gone");
        }
    }

    /// Waits for an Event about an object, and returns its message.
    pub(crate) async fn event(&self, namespace: &str, name: &str, reason: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let path = format!("/api/v1/namespaces/{namespace}/events");
            let events = self.cluster.request(fairlead_cluster::Method::GET, &path, None).await.expect("events");
            let about =
                |event: &&Value| event.text("reason") == reason && event.at("involvedObject").text("name") == name;
            if let Some(event) = events.list("items").iter().find(about) {
                return event.text("message").to_owned();
            }
            assert!(Instant::now() < end, "no Event {reason} about {name}: {events}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// An object with metadata.
pub(crate) fn named(namespace: &str, name: &str, mut metadata: Value) -> Value {
    metadata.set("name", name);
    if !namespace.is_empty() {
        metadata.set("namespace", namespace);
    }
    json!({"metadata": metadata})
}

/// A Pod on a Node, or on none.
pub(crate) fn pod(namespace: &str, name: &str, node: &str) -> Value {
    let mut pod = named(namespace, name, json!({}));
    pod.set("spec", json!({"nodeName": node, "containers": [{"name": "c", "image": "none"}]}));
    pod
}

/// Whether a condition is so.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> (&'a str, &'a str, &'a str) {
    let conditions = object.at("status").list("conditions");
    let found = conditions.iter().find(|condition| condition.text("type") == kind);
    found.map_or(("", "", ""), |found| (found.text("status"), found.text("reason"), found.text("message")))
}

fn options() -> fairlead_server::Options {
    fairlead_server::Options {
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
