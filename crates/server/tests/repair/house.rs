//! A server, a way in as somebody who may do everything, and a way around it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::Settings;
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Options, Server};
use fairlead_store::{Backend, Draft, Embedded, Memory, Range, Txn, Write};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::Service;

pub(crate) const MAP: &str = "/registry/ranges/servicenodeports";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
pub(crate) const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
pub(crate) const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

pub(crate) struct House {
    pub(crate) store: Arc<dyn Backend>,
    pub(crate) server: Server,
    _ends: DropGuard,
    _dir: Option<TempDir>,
}

impl House {
    /// One on each store.
    pub(crate) async fn each() -> [House; 2] {
        let dir = tempfile::tempdir().expect("a directory");
        let embedded = Embedded::open(dir.path()).expect("a store");
        [House::memory().await, House::on(Arc::new(embedded), Some(dir)).await]
    }

    pub(crate) async fn memory() -> House {
        House::on(Arc::new(Memory::new()), None).await
    }

    async fn on(store: Arc<dyn Backend>, dir: Option<TempDir>) -> House {
        let stop = CancellationToken::new();
        let server = Server::new(store.clone(), options(), Authenticator::default(), None, stop.clone());
        House { store, server: server.await.expect("a server"), _ends: stop.drop_guard(), _dir: dir }
    }

    /// Another server on the same store.
    pub(crate) async fn neighbour(&self) -> House {
        House::on(self.store.clone(), None).await
    }

    /// A request; what is refused fails the test.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, answer) = self.try_send(method, path, body).await;
        assert!((200..300).contains(&code), "{method} {path}: {answer}");
        answer
    }

    pub(crate) async fn try_send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let groups = vec!["system:masters".to_owned()];
        let mut local = self.server.local(User { name: "admin".to_owned(), groups, ..User::default() });
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let answer =
            local.call(request.body(Full::new(Bytes::from(body))).expect("a request")).await.expect("an answer");
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Creates a Service; returns it with its first address.
    pub(crate) async fn service(&self, name: &str, spec: Value) -> (Value, String) {
        let service = self.send("POST", SERVICES, json!({"metadata": {"name": name}, "spec": spec})).await;
        let ip = service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        (service, ip)
    }

    /// Writes past the server.
    pub(crate) async fn put(&self, key: &str, object: &Value) {
        let mut object = object.clone();
        object["metadata"].as_object_mut().expect("metadata").shift_remove("resourceVersion");
        let text = object.to_string();
        let gap = text.find("\"metadata\":{").expect("metadata") + "\"metadata\":{".len();
        self.write(Write::Put(key.into(), Draft { json: text.into(), gap })).await;
    }

    pub(crate) async fn delete(&self, key: &str) {
        self.write(Write::Delete(key.into())).await;
    }

    async fn write(&self, write: Write) {
        self.store.commit(Txn { guards: Vec::new(), writes: vec![write] }).await.expect("written");
    }

    /// An object in the store.
    pub(crate) async fn get(&self, key: &str) -> Option<Value> {
        let entry = self.store.get(key).await.expect("the store answers")?;
        Some(serde_json::from_slice(&entry.json).expect("an object"))
    }

    /// All objects but Events, without what every write changes.
    pub(crate) async fn world(&self) -> BTreeMap<String, Value> {
        let page = self.store.range(Range { prefix: "/registry/".into(), ..Range::default() }).await;
        let entries = page.expect("the store answers").entries;
        let kept = entries.iter().filter(|entry| !entry.key.starts_with("/registry/events/"));
        let plain = |json: &[u8]| {
            let mut object: Value = serde_json::from_slice(json).expect("an object");
            for field in ["uid", "resourceVersion", "creationTimestamp"] {
                object["metadata"].as_object_mut().expect("metadata").shift_remove(field);
            }
            object
        };
        kept.map(|entry| (entry.key.to_string(), plain(&entry.json))).collect()
    }

    /// `Kind/name Reason: message` of all Events, sorted.
    pub(crate) async fn events(&self) -> Vec<String> {
        let list = self.send("GET", "/apis/events.k8s.io/v1/events", Value::Null).await;
        let line = |event: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (about, kind) = (&event["regarding"], text(&event["type"]));
            assert_eq!(kind, "Warning");
            format!(
                "{}/{} {}: {}",
                text(&about["kind"]),
                text(&about["name"]),
                text(&event["reason"]),
                text(&event["note"])
            )
        };
        let mut lines: Vec<String> = list["items"].as_array().expect("a list").iter().map(line).collect();
        lines.sort();
        lines
    }

    /// Makes a pass at a second; returns what was found, mended and reported.
    pub(crate) async fn pass(&self, second: i64) -> (usize, usize, usize) {
        let now = jiff::Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let done = self.server.repair_at(now).await.expect("a pass");
        (done.found, done.mended, done.reported)
    }

    /// Makes a pass that must find nothing and write nothing.
    pub(crate) async fn idle_pass(&self, second: i64) {
        let before = self.store.revision().await.expect("a revision");
        assert_eq!(self.pass(second).await, (0, 0, 0));
        assert_eq!(self.store.revision().await.expect("a revision"), before);
    }
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
        advertise: SocketAddr::from(([192, 0, 2, 1], 6443)),
        authorization: Authorization::Rbac,
        request_timeout: Duration::from_secs(60),
        backup: None,
    }
}
