//! An API server on a store in memory that Nodes reach over the network, and that can be away.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Settings, kinds};
use fairlead_cluster::{Cluster, Patch, Selection};
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Local, Options, Server};
use fairlead_store::Memory;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tower::Service;

pub(crate) struct Api {
    runtime: Runtime,
    local: Local,
    listener: TcpListener,
    serving: CancellationToken,
    _stop: tokio_util::sync::DropGuard,
}

impl Api {
    /// Listens here, in the network namespace the listener is in.
    pub(crate) fn new(listener: TcpListener) -> Api {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let stop = CancellationToken::new();
        let server = Server::new(Arc::new(Memory::new()), options(), Authenticator::default(), None, stop.clone());
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let user = User { name: "admin".to_owned(), groups, ..User::default() };
        let local = runtime.block_on(server).unwrap().local(user);
        listener.set_nonblocking(true).unwrap();
        let mut api = Api { runtime, local, listener, serving: CancellationToken::new(), _stop: stop.drop_guard() };
        api.come_back();
        api
    }

    /// Answers nobody any more, and breaks off what is under way.
    pub(crate) fn go_away(&self) {
        self.serving.cancel();
    }

    pub(crate) fn come_back(&mut self) {
        self.serving = CancellationToken::new();
        let (serving, local, listener) = (self.serving.clone(), self.local.clone(), self.listener.try_clone().unwrap());
        self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Some(Ok((stream, _))) = serving.run_until_cancelled(listener.accept()).await {
                let (serving, local) = (serving.clone(), local.clone());
                tokio::spawn(async move {
                    let answer = move |request: http::Request<hyper::body::Incoming>| local.clone().call(request);
                    let answer = hyper::service::service_fn(answer);
                    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                    drop(serving.run_until_cancelled(connection).await);
                });
            }
        });
    }

    fn cluster(&self) -> Cluster {
        Cluster::new(self.local.clone(), Arc::new(self.local.clone()))
    }

    pub(crate) fn add_node(&self, name: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.runtime.block_on(self.cluster().create(&kinds::NODE, &node)).unwrap();
    }

    /// The Service the address is of.
    pub(crate) fn add_service(&self, name: &str) {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        });
        self.runtime.block_on(self.cluster().create(&kinds::SERVICE, &service)).unwrap();
    }

    pub(crate) fn patch_node(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.runtime.block_on(self.cluster().patch(&kinds::NODE, "", name, &patch)).unwrap();
    }

    /// The names of Leases.
    pub(crate) fn leases(&self) -> Vec<String> {
        let all = Selection::all(&kinds::LEASE).in_namespace("kube-node-lease");
        let list = self.runtime.block_on(async { self.cluster().list(&all).await }).unwrap();
        list.objects.iter().map(|object| object.key.name.to_string()).collect()
    }

    /// The heartbeat of a Node: its stamp, and how long it is good for if that is said.
    pub(crate) fn beat(&self, node: &str) -> Option<(String, Option<u64>)> {
        let name = format!("fairlead-announcer-{node}");
        let lease = self.cluster();
        let lease = self.runtime.block_on(async { lease.get(&kinds::LEASE, "kube-node-lease", &name).await }).ok()?;
        let spec = &lease["spec"];
        Some((spec["renewTime"].as_str()?.to_owned(), spec["leaseDurationSeconds"].as_u64()))
    }

    /// The messages of Events with a reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let path = "/api/v1/namespaces/default/events";
        let events = self.runtime.block_on(self.cluster().request(fairlead_cluster::Method::GET, path, None)).unwrap();
        let items = events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == reason);
        items.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }
}

fn options() -> Options {
    Options {
        settings: Settings {
            service_ranges: vec!["10.0.0.0/16".parse().unwrap()],
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
