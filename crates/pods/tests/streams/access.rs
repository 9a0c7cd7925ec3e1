//! Who may have streams, and who may make Pods with privileges.

use fairlead_api::kinds::pod::privileges::ANNOTATION;
use fairlead_server::serve::certificates::{Purpose, Subject};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::house::{Done, House, Way, annotation, chain, key, pair};

async fn role(house: &House, user: &str, rules: Value) {
    let metadata = json!({"name": user});
    let role =
        json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata, "rules": rules});
    house.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", &role).await;
    let binding = json!({
        "kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata,
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": user, "apiGroup": "rbac.authorization.k8s.io"},
    });
    house.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", &binding).await;
}

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources})
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_get_gets_no_stream() {
    let Some(house) = House::new("who_may", Way::Memory).await else { return };
    role(&house, "reader", json!([rule(&["get"], "", &["pods", "pods/exec"])])).await;
    role(&house, "writer", json!([rule(&["get", "create"], "", &["pods", "pods/exec"])])).await;
    let exec = async |token: &str| house.run(house.command_as(token, &["exec", "p", "--", "echo", "hi"]), b"").await;
    let refused: Done = exec("reader-token").await;
    refused.check(1, "", "cannot create resource \"pods/exec\" in API group \"\" in the namespace \"default\"");
    exec("writer-token").await.check(0, "hi\n", "");
}

async fn create(house: &House, token: &str, name: &str, pod: Value) -> Done {
    let mut pod = pod;
    pod["kind"] = json!("Pod");
    pod["apiVersion"] = json!("v1");
    pod["metadata"]["name"] = json!(name);
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "host"}]);
    }
    let command = house.command_as(token, &["create", "-f", "-"]);
    house.run(command, pod.to_string().as_bytes()).await
}

async fn granted(house: &House, name: &str) -> String {
    let pod = house.cluster.get(&fairlead_api::kinds::POD, "default", name).await.expect("the Pod");
    annotation(&pod, ANNOTATION).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_are_granted_to_who_may_use_them_and_to_nobody_else() {
    let Some(house) = House::new("privileges", Way::Memory).await else { return };
    let pods = rule(&["get", "create", "patch", "update"], "", &["pods", "pods/binding", "pods/status"]);
    role(&house, "writer", json!([pods])).await;
    role(&house, "root", json!([pods, rule(&["use"], "fairlead.dev", &["hostprivileges"])])).await;
    let asks = json!({"metadata": {}, "spec": {"hostNetwork": true}});
    let done = create(&house, "writer-token", "a", asks.clone()).await;
    done.check(0, "pod/a created\n", "Warning: spec.hostNetwork: a node of Fairlead does not run this Pod");
    assert_eq!(granted(&house, "a").await, "");
    create(&house, "root-token", "b", asks.clone()).await.check(0, "pod/b created\n", "");
    assert_eq!(granted(&house, "b").await, "granted");
    create(&house, "admin-token", "d", asks).await.check(0, "pod/d created\n", "");
    assert_eq!(granted(&house, "d").await, "granted");
    create(&house, "root-token", "e", json!({"metadata": {}, "spec": {}})).await.check(0, "pod/e created\n", "");
    assert_eq!(granted(&house, "e").await, "", "nothing was asked for");
    let image = json!({"metadata": {}, "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "nginx"}]}});
    create(&house, "writer-token", "f", image).await.check(0, "pod/f created\n", "");
    assert_eq!(granted(&house, "f").await, "", "it does not run on the file system of its Node");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_the_note_of_privileges() {
    let Some(house) = House::new("nobody", Way::Memory).await else { return };
    let why = "metadata.annotations[fairlead.dev/host-privileges]: Forbidden: is set by the server alone";
    let forged = json!({"metadata": {"annotations": {ANNOTATION: "granted"}}, "spec": {}});
    create(&house, "admin-token", "a", forged).await.check(1, "", why);
    house.kubectl(&["annotate", "pod", "p", &format!("{ANNOTATION}=granted")], b"").await.check(1, "", why);
    let status = ["patch", "pod", "p", "--subresource=status", "--type=merge", "-p"];
    let patch = json!({"metadata": {"annotations": {ANNOTATION: "granted"}}}).to_string();
    house.kubectl(&[&status[..], &[&patch]].concat(), b"").await.check(1, "", why);
    let binding = json!({
        "kind": "Binding", "apiVersion": "v1", "metadata": {"name": "nowhere", "annotations": {ANNOTATION: "granted"}},
        "target": {"kind": "Node", "name": "n"},
    });
    let path = "/api/v1/namespaces/default/pods/nowhere/binding";
    house.kubectl(&["create", "--raw", path, "-f", "-"], binding.to_string().as_bytes()).await.check(1, "", "");
    assert_eq!(granted(&house, "nowhere").await, "");
    // What is granted stays when an update leaves it out.
    create(&house, "admin-token", "b", json!({"metadata": {}, "spec": {"hostPID": true}})).await.check(
        0,
        "pod/b created\n",
        "",
    );
    house.kubectl(&["annotate", "pod", "b", &format!("{ANNOTATION}-")], b"").await;
    assert_eq!(granted(&house, "b").await, "granted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_hears_nobody_but_the_api_server() {
    let Some(house) = House::new("a_node", Way::Tls).await else { return };
    let node = house.cluster.get(&fairlead_api::kinds::NODE, "", "n").await.expect("the Node");
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64().expect("a port");
    let port = u16::try_from(port).expect("a port");
    let ask = async |group: Option<&str>, name: &str| -> String {
        let purpose = Purpose::Client(group.unwrap_or("others").to_owned());
        let client = pair(&house.dir, Subject { name: name.to_owned(), purpose });
        talk(port, &house, Some((chain(&client), key(&client)))).await
    };
    assert!(ask(Some("system:masters"), "x").await.contains("200 OK"));
    assert!(ask(None, "kube-apiserver-kubelet-client").await.contains("200 OK"));
    assert_eq!(ask(None, "somebody").await, "");
    assert_eq!(talk(port, &house, None).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_that_begin_no_handshake_do_not_keep_the_api_server_out() {
    let Some(house) = House::new("strangers", Way::Tls).await else { return };
    let node = house.cluster.get(&fairlead_api::kinds::NODE, "", "n").await.expect("the Node");
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64().expect("a port");
    let port = u16::try_from(port).expect("a port");
    // Each connects again as soon as it is disconnected.
    let connected = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut strangers = tokio::task::JoinSet::new();
    for _ in 0..3000 {
        let connected = connected.clone();
        strangers.spawn(async move {
            loop {
                let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
                socket.bind(([127, 0, 0, 7], 0).into()).expect("a port");
                let Ok(mut stream) = socket.connect(([127, 0, 0, 1], port).into()).await else { continue };
                connected.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let _ = stream.read(&mut [0; 1]).await;
            }
        });
    }
    while connected.load(std::sync::atomic::Ordering::SeqCst) < 1500 {
        tokio::task::yield_now().await;
    }
    let purpose = Purpose::Client("system:masters".to_owned());
    let client = pair(&house.dir, Subject { name: "x".to_owned(), purpose });
    // Each would wait behind strangers for most of their time for the handshake, 10 s: for minutes
    // together. The limit is far from that, and far from what a busy machine needs.
    let served = async {
        for _ in 0..30 {
            let answer = talk(port, &house, Some((chain(&client), key(&client)))).await;
            assert!(answer.contains("200 OK"), "{answer:?}");
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), served).await.expect("the API server is answered");
}

type Credentials = (Vec<rustls::pki_types::CertificateDer<'static>>, rustls::pki_types::PrivateKeyDer<'static>);

/// What a node answers to who asks for its health.
async fn talk(port: u16, house: &House, credentials: Option<Credentials>) -> String {
    use tokio::io::AsyncWriteExt;
    let mut roots = rustls::RootCertStore::empty();
    let authority = std::fs::read_to_string(house.dir.path().join("authority.pem")).expect("an authority");
    for root in fairlead_server::serve::tls::certificates(&authority).expect("certificates") {
        roots.add(root).expect("an authority");
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
    let builder = builder.with_root_certificates(roots);
    let config = match credentials {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("TLS"),
        None => builder.with_no_client_auth(),
    };
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let name = rustls::pki_types::ServerName::try_from("n").expect("a name");
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let Ok(mut stream) = connector.connect(name, stream).await else { return String::new() };
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: n\r\nconnection: close\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
