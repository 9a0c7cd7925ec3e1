//! A server on a store in memory, and the ways into it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::{Settings, kinds};
use fairlead_cluster::Cluster;
use fairlead_server::auth::certificate::Authorities;
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::serve::certificates::renewal::{Renewal, Source};
use fairlead_server::serve::certificates::{self, Subject};
use fairlead_server::serve::{self, Limits, kubeconfig};
use fairlead_server::{Admission, Authorization, Local, Options, Server};
use fairlead_store::Memory;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A running server.
pub(crate) struct House {
    pub(crate) store: Arc<Memory>,
    pub(crate) server: Server,
    stop: CancellationToken,
    _ends: DropGuard,
}

impl House {
    pub(crate) async fn new() -> House {
        House::believing(Authenticator::default()).await
    }

    async fn believing(authenticator: Authenticator) -> House {
        let (store, stop) = (Arc::new(Memory::new()), CancellationToken::new());
        let server = Server::new(store.clone(), options(), authenticator, None, stop.clone()).await.expect("a server");
        House { store, server, stop: stop.clone(), _ends: stop.drop_guard() }
    }

    /// The way in for a user.
    pub(crate) fn local(&self, name: &str, group: &str) -> Local {
        let groups = vec![group.to_owned(), "system:authenticated".to_owned()];
        self.server.local(User { name: name.to_owned(), groups, ..User::default() })
    }

    /// In process, as one who may do everything.
    pub(crate) fn cluster(&self) -> Cluster {
        let local = self.local("system:fairlead", "system:masters");
        Cluster::new(local.clone(), Arc::new(local))
    }
}

/// A server on a port of its own, and the kubeconfig that leads to it.
pub(crate) async fn on_the_network() -> (House, Cluster, TempDir) {
    let (dir, now) = (tempfile::tempdir().expect("a directory"), Timestamp::now());
    let authority = certificates::authority(dir.path(), now).expect("an authority");
    let client_authorities = vec![authority.certificate.clone()];
    let authorities = Authorities::new(&client_authorities).expect("authorities");
    let source = Source::Own(dir.path().to_owned(), Subject::server(["127.0.0.1".to_owned()]));
    let renewal = Renewal { source, authority, client_authorities };
    let house = House::believing(Authenticator { certificates: Some(authorities), ..Authenticator::default() }).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let pair = renewal.pair(now).expect("a pair");
    let (configs, tls) = watch::channel(renewal.config(&pair).expect("a configuration"));
    let (server, stop) = (house.server.clone(), house.stop.clone());
    tokio::spawn(async move {
        serve::serve(listener, tls, server, Limits { drain: Duration::ZERO, ..Limits::default() }, stop).await;
        drop(configs);
    });
    let admin = certificates::ensure(dir.path(), "admin", &Subject::admin(), &renewal.authority, now).expect("a pair");
    let text = kubeconfig::render(&kubeconfig::server_url(address), &renewal.authority.pem, &admin);
    let file = dir.path().join("kubeconfig");
    std::fs::write(&file, text).expect("a file");
    let cluster = Cluster::connect(Some(&file)).await.expect("a way in");
    (house, cluster, dir)
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

/// A ConfigMap with one label and one value.
pub(crate) fn config_map(namespace: &str, name: &str, label: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": label}},
        "data": {"key": value},
    })
}

/// Makes a ConfigMap and returns its revision.
pub(crate) async fn make(cluster: &Cluster, namespace: &str, name: &str, label: &str) -> u64 {
    let made = cluster.create(&kinds::CONFIG_MAP, &config_map(namespace, name, label, "1")).await.expect("made");
    revision(&made)
}

pub(crate) fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a resourceVersion")
}

/// The text of a stored object, as somebody else might have put it there.
pub(crate) fn draft(text: &str) -> fairlead_store::Draft {
    let gap = text.find("\"metadata\":{").expect("metadata") + "\"metadata\":{".len();
    fairlead_store::Draft { json: Bytes::copy_from_slice(text.as_bytes()), gap }
}
