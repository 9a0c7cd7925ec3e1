//! Can a real kube-apiserver work on the same etcd beside us? Each must see what the other makes, and neither may give away
//! what the other has given.

mod metallb;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::need::program;
use fairlead_testkit::server::ADMIN_TOKEN;
use fairlead_testkit::{Etcd, Server, free_port, need};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::mirror::Mirror;
use super::{FLAGS, PATIENCE, accounts, etcd_keys, server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
/// Services made through each of the two.
const COUNT: usize = 60;
/// How long kube-apiserver may take to get ready.
const START: Duration = Duration::from_secs(120);

#[test]
fn a_kube_apiserver_on_the_same_etcd_shares_everything() {
    let test = "a_kube_apiserver_on_the_same_etcd_shares_everything";
    if !["etcd", "etcdctl", "kube-apiserver"].iter().all(|what| need(test, what)) {
        return;
    }
    let etcd = Etcd::start();
    let ours = server(&["--etcd-servers", &etcd.url()]);
    let theirs = KubeApiserver::start(&etcd, &ours);
    let mut mirrors = [Mirror::new(ours.client()), Mirror::new(theirs.client.clone())];
    thread::scope(|scope| {
        for mirror in &mut mirrors {
            scope.spawn(|| mirror.until("default/last"));
        }
        let workers: Vec<_> = [("ours", ours.client()), ("theirs", theirs.client.clone())]
            .into_iter()
            .flat_map(|pair| [(pair.clone(), 0), (pair, 1)])
            .map(|((who, client), half)| scope.spawn(move || make(&client, who, half)))
            .collect();
        workers.into_iter().for_each(|worker| worker.join().expect("no client fails"));
        send(&theirs.client, "POST", SERVICES, &service("last", 0), 201);
    });
    let (services, _) = accounts::list(&ours.client(), "/api/v1/services");
    let (seen_there, _) = accounts::list(&theirs.client, "/api/v1/services");
    assert_eq!(services.keys().collect::<Vec<_>>(), seen_there.keys().collect::<Vec<_>>(), "what each lists");
    assert_eq!(services, seen_there, "objects as each shows them");
    for mirror in &mirrors {
        assert_eq!(mirror.objects, services, "what a watch told");
    }
    accounts::balance(&ours.client(), &etcd_keys::value(&etcd, etcd_keys::NODE_PORTS));
    cross(&ours.client(), &theirs.client);
    accounts::balance(&theirs.client, &etcd_keys::value(&etcd, etcd_keys::NODE_PORTS));
    assert!(!ours.log().contains("panicked"), "{}", ours.log());
}

fn make(client: &Client, who: &str, half: usize) {
    for number in (half..COUNT).step_by(2) {
        send(client, "POST", SERVICES, &service(&format!("{who}-{number}"), number), 201);
    }
}

/// Each changes and deletes what the other made, and is refused what the other gave away.
fn cross(ours: &Client, theirs: &Client) {
    for (client, whose) in [(ours, "theirs"), (theirs, "ours")] {
        for number in 0..COUNT / 2 {
            let path = format!("{SERVICES}/{whose}-{number}");
            match number % 3 {
                0 => drop(send(client, "DELETE", &path, &Value::Null, 200)),
                1 => drop(send(client, "PATCH", &path, &json!({"spec": {"type": "ClusterIP"}}), 200)),
                _ => {
                    let object = send(client, "GET", &path, &Value::Null, 200);
                    let mut thief = service("thief", 1);
                    // Of two addresses kube-apiserver may leave the other one booked for a while.
                    thief["spec"]["ipFamilyPolicy"] = json!("SingleStack");
                    thief["spec"]["clusterIP"] = object["spec"]["clusterIP"].clone();
                    send(client, "POST", SERVICES, &thief, 422);
                }
            }
        }
    }
}

fn service(name: &str, number: usize) -> Value {
    let sort = if number.is_multiple_of(2) { "NodePort" } else { "ClusterIP" };
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": sort, "ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80, "protocol": "TCP"}]},
    })
}

fn send(client: &Client, method: &str, path: &str, body: &Value, wanted: u16) -> Value {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let mut connection = client.connect(PATIENCE).expect("the server listens");
    let answer = connection.send(method, path, media, &body).expect("the server answers");
    assert_eq!(answer.status, wanted, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

/// A running kube-apiserver.
struct KubeApiserver {
    child: Child,
    client: Client,
    home: TempDir,
    address: SocketAddr,
    /// The file with the certificate its own can be checked with.
    authority: String,
}

impl KubeApiserver {
    /// Starts it with the certificates and keys of our server, and waits until it is ready.
    fn start(etcd: &Etcd, ours: &Server) -> KubeApiserver {
        let home = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str| home.path().join(name).display().to_string();
        let pki = |name: &str| ours.data_dir().join("pki").join(name).display().to_string();
        fs::write(home.path().join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n"))
            .expect("a token file");
        let port = free_port();
        let child = Command::new(program("kube-apiserver").expect("the test asked for kube-apiserver"))
            .args(FLAGS)
            .args(["--etcd-servers", &etcd.url()])
            .args(["--bind-address", "127.0.0.1", "--secure-port", &port.to_string()])
            // Where it would be found if it told anybody; without this it looks for a default route.
            .args(["--advertise-address", "192.0.2.1"])
            .args(["--cert-dir", &file("certificates")])
            .args(["--tls-cert-file", &pki("server.crt"), "--tls-private-key-file", &pki("server.key")])
            .args(["--token-auth-file", &file("tokens.csv"), "--authorization-mode", "AlwaysAllow"])
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            // Tokens are of no interest here; any pair of keys will do.
            .args(["--service-account-key-file", &pki("server.crt")])
            .args(["--service-account-signing-key-file", &pki("server.key")])
            .args(["--endpoint-reconciler-type", "none"])
            .stdout(Stdio::null())
            .stderr(File::create(home.path().join("log")).expect("a log"))
            .spawn()
            .expect("kube-apiserver is there");
        let (address, authority) = (SocketAddr::from(([127, 0, 0, 1], port)), pki("ca.crt"));
        let client =
            Client::new(address, &fs::read(&authority).expect("the server has made its authority"), ADMIN_TOKEN);
        let mut server = KubeApiserver { child, client, home, address, authority };
        server.wait();
        server
    }

    /// A file with which to be its administrator.
    fn kubeconfig(&self) -> String {
        let file = self.home.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://{}", self.address), "certificate-authority": self.authority,
            }}],
            "users": [{"name": "admin", "user": {"token": ADMIN_TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "admin"}}],
        });
        fs::write(&file, text.to_string()).expect("a kubeconfig");
        file.display().to_string()
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + START;
        while !self.client.get("/readyz").is_ok_and(|answer| answer.status == 200) {
            let ended = self.child.try_wait().expect("it is ours");
            let log = || fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < deadline, "kube-apiserver does not get ready:\n{}", log());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for KubeApiserver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
