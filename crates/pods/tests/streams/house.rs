//! An API server on a port of its own, a node behind it, and kubectl in front.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, Settings};
use fairlead_cluster::{Cluster, Method};
use fairlead_pods::api::{Api, Peers};
use fairlead_server::auth::token_file::TokenFile;
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::serve::certificates::{Pair, Purpose, Subject, authority, make};
use fairlead_server::serve::{self, Limits, tls};
use fairlead_server::{Admission, Authorization, NodeDialer, Server};
use fairlead_store::Memory;
use jiff::Timestamp;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::host::Plain;

/// How long a command of kubectl may take.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKENS: &str =
    "admin-token,admin,1,system:masters\nreader-token,reader,2\nwriter-token,writer,3\nroot-token,root,4\n";

/// How the server reaches the node, and how kubectl speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In the same process, by WebSocket.
    Memory,
    /// Over the network, by WebSocket.
    Tls,
    /// In the same process, by SPDY as older clients do.
    Spdy,
}

/// A running house.
pub(crate) struct House {
    pub(crate) dir: TempDir,
    pub(crate) host: Arc<Plain>,
    pub(crate) cluster: Cluster,
    address: SocketAddr,
    kubectl: PathBuf,
    way: Way,
    _ends: DropGuard,
}

impl House {
    /// With a Pod `p` of one container `c`, a Pod `two` of two, and one `nowhere`. `None`: there is no kubectl.
    pub(crate) async fn new(test: &str, way: Way) -> Option<House> {
        if !fairlead_testkit::need(test, "kubectl") {
            return None;
        }
        let kubectl = fairlead_testkit::Kubectl::find()?.path;
        let dir = tempfile::tempdir().expect("a directory");
        let stop = CancellationToken::new();
        let tokens = TokenFile::parse(TOKENS).expect("tokens");
        let authenticator = Authenticator { tokens, ..Authenticator::default() };
        let server = Server::new(Arc::new(Memory::new()), options(), authenticator, None, stop.clone()).await;
        let server = server.expect("a server");
        let host = Arc::new(Plain::default());
        let port = reach(&server, Api::new(host.clone()), way, &dir, &stop).await;
        let address = listen(&server, &dir, &stop).await;
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let local = server.local(User { name: "test".to_owned(), groups, ..User::default() });
        let cluster = Cluster::new(local.clone(), Arc::new(local));
        let house = House { dir, host, cluster, address, kubectl, way, _ends: stop.drop_guard() };
        house.furnish(port).await;
        Some(house)
    }

    async fn furnish(&self, port: u16) {
        let endpoint = json!({"kubeletEndpoint": {"Port": port}});
        let addresses = json!([{"type": "InternalIP", "address": "127.0.0.1"}]);
        let status = json!({"addresses": addresses, "daemonEndpoints": endpoint});
        let node = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": status});
        self.post("/api/v1/nodes", &node).await;
        for (name, node, containers) in [("p", "n", &["c"][..]), ("two", "n", &["c", "d"]), ("nowhere", "", &["c"])] {
            let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name, "image": "host"})).collect();
            let spec = json!({"nodeName": node, "containers": containers});
            let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec});
            self.post("/api/v1/namespaces/default/pods", &pod).await;
        }
        let running = json!({"status": {"phase": "Running"}});
        for name in ["p", "two"] {
            let patch = fairlead_cluster::Patch::Merge(running.clone());
            self.cluster.patch_status(&fairlead_api::kinds::POD, "default", name, &patch).await.expect("patched");
        }
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Value {
        self.cluster.request(Method::POST, path, Some(object)).await.expect("made")
    }

    /// A command of kubectl's, by the administrator.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_as("admin-token", arguments)
    }

    pub(crate) fn command_as(&self, token: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("HOME", self.dir.path())
            .env("KUBECONFIG", "/dev/null")
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", (self.way != Way::Spdy).to_string())
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", (self.way != Way::Spdy).to_string())
            .args(["--server", &format!("https://{}", self.address), "--token", token])
            .arg("--certificate-authority")
            .arg(self.dir.path().join("authority.pem"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl with some input.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &[u8]) -> Done {
        self.run(self.command(arguments), input).await
    }

    pub(crate) async fn run(&self, mut command: Command, input: &[u8]) -> Done {
        let mut child: Child = command.stdin(Stdio::piped()).spawn().expect("kubectl");
        let mut stdin = child.stdin.take().expect("an input");
        let feed = async {
            // One that has ended reads no more.
            let _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let both = futures_util::future::join(feed, child.wait_with_output());
        let ((), output) = timeout(PATIENCE, both).await.expect("kubectl did not end");
        Done::of(output.expect("kubectl"))
    }
}

/// What kubectl said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    fn of(output: Output) -> Done {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    #[track_caller]
    pub(crate) fn check(&self, code: i32, out: &str, err: &str) {
        assert_eq!((self.code, self.out.as_str()), (code, out), "{}", self.err);
        assert!(self.err.contains(err), "{:?} is not in {:?}", err, self.err);
    }
}

/// Says how the node is reached, and returns its port.
async fn reach(server: &Server, api: Api, way: Way, dir: &TempDir, stop: &CancellationToken) -> u16 {
    if way != Way::Tls {
        let dialer = NodeDialer::local();
        dialer.add("n", move || api.connect());
        server.reach_nodes_by(dialer);
        return 0;
    }
    let ours = authority(dir.path(), Timestamp::now()).expect("an authority");
    let serving = pair(dir, Subject::node("n"));
    let client = pair(dir, Subject { name: "x".to_owned(), purpose: Purpose::Client("system:masters".to_owned()) });
    let peers = Peers { authorities: vec![ours.certificate.clone()], chain: chain(&serving), key: key(&serving) };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let config = peers.config().expect("TLS");
    tokio::spawn(fairlead_pods::api::serve(listener, config, api, stop.clone()));
    let dialer = NodeDialer::over_tls(vec![ours.certificate], chain(&client), key(&client)).expect("TLS");
    server.reach_nodes_by(dialer);
    port
}

pub(crate) fn pair(dir: &TempDir, subject: Subject) -> Pair {
    let now = Timestamp::now();
    make(&subject, &authority(dir.path(), now).expect("an authority"), now).expect("a certificate")
}

pub(crate) fn chain(pair: &Pair) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    tls::certificates(&pair.certificate).expect("certificates")
}

pub(crate) fn key(pair: &Pair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key")
}

/// Opens the API server's own port.
async fn listen(server: &Server, dir: &TempDir, stop: &CancellationToken) -> SocketAddr {
    let ours = authority(dir.path(), Timestamp::now()).expect("an authority");
    std::fs::write(dir.path().join("authority.pem"), &ours.pem).expect("written");
    let pair = pair(dir, Subject::server([]));
    let config = tls::server_config(&pair.certificate, &pair.key, &[ours.certificate]).expect("TLS");
    let (_, configs) = watch::channel(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve::serve(listener, configs, server.clone(), Limits::default(), stop.clone()));
    address
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

/// What an object's field says.
pub(crate) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object.at("metadata").at("annotations").text(name)
}
