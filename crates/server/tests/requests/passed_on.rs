//! Requests that are passed on to Pods and Nodes, as far as they need no network; evictions; and answers that are no objects.

use std::convert::Infallible;

use fairlead_server::{Admission, Authorization, NodeDialer};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tower::Service;

use crate::world::{SERVICES, TestServer, admin};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn server() -> TestServer {
    TestServer::new(Admission::default(), Authorization::Rbac).await
}

/// Makes a Pod that runs, with these fields of its status.
async fn make_pod(server: &TestServer, name: &str, status: Value) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeName": "n"});
    server.make(PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
    report(server, name, status).await
}

/// Writes these fields of the status of a Pod, as its Node does.
async fn report(server: &TestServer, name: &str, status: Value) -> Value {
    let patch = json!({"status": status}).to_string();
    let path = format!("{PODS}/{name}/status");
    let answer = server.send_as(admin(), "PATCH", &path, "application/merge-patch+json", patch).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    answer.body
}

async fn refused(server: &TestServer, path: &str, code: u16, why: &str) {
    let answer = server.send(admin(), "GET", path, "").await;
    assert_eq!((answer.code, answer.body["message"].as_str()), (code, Some(why)), "{path}: {}", answer.body);
}

#[tokio::test]
async fn a_request_goes_to_the_address_of_a_pod_and_nowhere_else() {
    let server = server().await;
    let addresses = [
        ("none", ""),
        ("loopback", "127.0.0.1"),
        ("metadata", "169.254.169.254"),
        ("multicast", "239.1.2.3"),
        ("loopback6", "::1"),
    ];
    for (name, ip) in addresses {
        let ips = if ip.is_empty() { json!([]) } else { json!([{"ip": ip}]) };
        make_pod(&server, name, json!({"phase": "Running", "podIP": ip, "podIPs": ips})).await;
        refused(&server, &format!("{PODS}/{name}/proxy/"), 400, "address not allowed").await;
        refused(&server, &format!("{PODS}/https:{name}:443/proxy/"), 400, "address not allowed").await;
    }
    make_pod(&server, "p", json!({"phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]})).await;
    refused(&server, &format!("{PODS}/gopher:p:80/proxy/"), 400, "invalid pod request \"gopher:p:80\"").await;
    refused(&server, &format!("{PODS}/a:b:c:d/proxy/"), 400, "invalid pod request \"a:b:c:d\"").await;
    refused(&server, &format!("{PODS}/p:web/proxy/"), 400, "invalid pod request: \"web\" is no port number").await;
    refused(&server, &format!("{PODS}/p:0/proxy/"), 400, "invalid pod request: \"0\" is no port number").await;
    refused(&server, &format!("{PODS}/absent:80/proxy/"), 404, "pods \"absent\" not found").await;
}

/// A server with a Node `n` that has a range for Pods and an address of its own.
async fn server_with_range() -> TestServer {
    let server = server().await;
    let addresses = json!([{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "192.0.2.7"}]);
    let node = json!({
        "metadata": {"name": "n"},
        "spec": {"podCIDRs": ["10.244.1.0/24", "fd00:1::/64"]},
        "status": {"addresses": addresses},
    });
    server.make("/api/v1/nodes", node).await;
    server
}

/// Pods of the Node `n` as their Node reports them: name, hostNetwork, address, and true if the
/// Node may give a Pod that address.
const REPORTED: [(&str, bool, &str, bool); 8] = [
    ("own", false, "10.244.1.9", true),
    ("own6", false, "fd00:1::9", true),
    ("other-node", false, "10.244.2.9", false),
    ("elsewhere", false, "198.51.100.1", false),
    ("elsewhere6", false, "fd00:2::9", false),
    ("machine", false, "192.0.2.7", false),
    ("host", true, "192.0.2.7", true),
    ("host-elsewhere", true, "192.0.2.8", false),
];

async fn report_pods(server: &TestServer) {
    for (name, host_network, ip, _) in REPORTED {
        let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeName": "n", "hostNetwork": host_network});
        server.make(PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        report(server, name, json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]})).await;
    }
}

#[tokio::test]
async fn a_node_cannot_lead_the_proxy_of_its_pods_elsewhere() {
    let server = server_with_range().await;
    report_pods(&server).await;
    for (name, _, _, allowed) in REPORTED {
        // The address is checked before the port, so nothing is sent.
        let path = format!("{PODS}/{name}:web/proxy/");
        let why = if allowed { "invalid pod request: \"web\" is no port number" } else { "address not allowed" };
        refused(&server, &path, 400, why).await;
    }
}

/// Maximum number of logs, commands, port-forwards and proxied requests of one user.
const STREAMS: usize = 250;

#[tokio::test]
async fn requests_that_are_passed_on_count_as_streams_of_their_user() {
    let server = server_with_range().await;
    report_pods(&server).await;
    for (name, _, ip, _) in REPORTED {
        server.make(SERVICES, json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})).await;
        let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
        let slice = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": family,
            "ports": [{"name": "", "port": 80}],
            "endpoints": [{"addresses": [ip], "targetRef": {"kind": "Pod", "namespace": "default", "name": name}}],
        });
        server.make("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice).await;
    }
    let dialer = NodeDialer::local();
    dialer.add("n", || {
        let (near, far) = tokio::io::duplex(4096);
        let answer = hyper::service::service_fn(|_: Request<hyper::body::Incoming>| async {
            let never = futures_util::stream::pending::<Result<hyper::body::Frame<bytes::Bytes>, Infallible>>();
            Ok::<_, Infallible>(http::Response::new(http_body_util::StreamBody::new(never)))
        });
        let agent = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), answer);
        tokio::spawn(async move { drop(agent.await) });
        near
    });
    server.server.reach_nodes_by(dialer);
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let request = Request::get("/api/v1/nodes/n/proxy/metrics").body(Full::new(bytes::Bytes::new()));
        let answer = server.server.local(admin()).call(request.expect("a request")).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    // With all streams in use nothing is sent, and what may not be reached is still told apart.
    for (name, _, _, allowed) in REPORTED {
        let answer = server.send(admin(), "GET", &format!("{PODS}/{name}:80/proxy/"), "").await;
        assert_eq!(answer.code, if allowed { 429 } else { 400 }, "{name}: {}", answer.body);
        let answer = server.send(admin(), "GET", &format!("{SERVICES}/{name}/proxy/"), "").await;
        assert_eq!(answer.code, if allowed { 429 } else { 503 }, "{name}: {}", answer.body);
        let why = answer.body["message"].as_str().unwrap_or_default();
        let want = if allowed { "too many logs, commands" } else { "no endpoints available for service" };
        assert!(why.starts_with(want), "{name}: {why}");
    }
    drop(open);
}

#[tokio::test]
async fn who_may_not_use_the_proxy_of_a_pod_is_refused() {
    let server = server().await;
    make_pod(&server, "p", json!({"phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]})).await;
    let ann = crate::world::user("ann", &["system:authenticated"]);
    for (method, verb) in [("GET", "get"), ("POST", "create"), ("PUT", "update"), ("DELETE", "delete")] {
        let answer = server.send(ann.clone(), method, &format!("{PODS}/p:80/proxy/x"), "").await;
        let why = format!("cannot {verb} resource \"pods/proxy\" in API group \"\" in the namespace \"default\"");
        assert_eq!(answer.code, 403, "{}", answer.body);
        assert!(answer.body["message"].as_str().is_some_and(|said| said.contains(&why)), "{}", answer.body);
    }
}

/// A server with a Node `n` in this process, whose agent answers with the path it was asked for.
async fn server_with_node(port: u16) -> TestServer {
    let server = server().await;
    let endpoint = json!({"kubeletEndpoint": {"Port": port}});
    server.make("/api/v1/nodes", json!({"metadata": {"name": "n"}, "status": {"daemonEndpoints": endpoint}})).await;
    let dialer = NodeDialer::local();
    dialer.add("n", || {
        let (near, far) = tokio::io::duplex(4096);
        let answer = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
            let path = request.uri().to_string();
            Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::from(path))))
        });
        let agent = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), answer);
        tokio::spawn(async move { drop(agent.await) });
        near
    });
    server.server.reach_nodes_by(dialer);
    server
}

async fn text(server: &TestServer, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Full::new(bytes::Bytes::new())).expect("a request");
    let answer = server.server.local(admin()).call(request).await.expect("an answer");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test]
async fn an_agent_is_asked_with_and_without_its_port_and_no_other_port() {
    for (given, port) in [(0, 10250), (10260, 10260)] {
        let server = server_with_node(given).await;
        let names = ["n".to_owned(), format!("n:{port}"), format!("https:n:{port}"), format!("http:n:{port}")];
        for name in names {
            let answer = text(&server, &format!("/api/v1/nodes/{name}/proxy/metrics?a=b")).await;
            assert_eq!(answer, (200, "/metrics?a=b".to_owned()), "{name}");
        }
        let request = Request::get("/api/v1/nodes/n/proxy/metrics").body(Full::new(bytes::Bytes::new()));
        let answer = server.server.local(admin()).call(request.expect("a request")).await.expect("an answer");
        let policy = answer.headers().get("content-security-policy").map(|value| value.to_str().expect("text"));
        assert_eq!(policy, Some("sandbox allow-scripts allow-forms"));
        let why = format!("nodes \"n:22\" is forbidden: of a node, only port {port} of its agent is reached");
        refused(&server, "/api/v1/nodes/n:22/proxy/metrics", 403, &why).await;
        refused(&server, "/api/v1/nodes/ftp:n:22/proxy/metrics", 400, "invalid node request \"ftp:n:22\"").await;
        refused(&server, "/api/v1/nodes/absent:10250/proxy/metrics", 404, "nodes \"absent\" not found").await;
        let (code, _) = text(&server, "/api/v1/nodes/n:10250/proxy/exec/default/p/c").await;
        assert_eq!(code, 403);
    }
}

#[tokio::test]
async fn an_evicted_pod_is_told_why_and_goes() {
    let server = server().await;
    let evict = async |name: &str, eviction: Value| {
        server.send(admin(), "POST", &format!("{PODS}/{name}/eviction"), eviction.to_string()).await
    };
    let eviction = |name: &str, options: Value| json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}, "deleteOptions": options});
    let made = make_pod(&server, "p", json!({"phase": "Running"})).await;
    let (uid, version) = (made["metadata"]["uid"].clone(), made["metadata"]["resourceVersion"].clone());

    let answer = evict("p", eviction("other", json!({}))).await;
    assert_eq!(answer.body["message"], "name in URL does not match name in Eviction object");
    assert_eq!(evict("absent", eviction("absent", json!({}))).await.code, 404);
    for preconditions in [json!({"uid": "another"}), json!({"resourceVersion": "1"})] {
        let answer = evict("p", eviction("p", json!({"preconditions": preconditions}))).await;
        assert_eq!((answer.code, answer.body["reason"].as_str()), (409, Some("Conflict")), "{}", answer.body);
    }
    let answer = evict("p", eviction("p", json!({"dryRun": ["All"]}))).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let pod = server.send(admin(), "GET", &format!("{PODS}/p"), "").await.body;
    assert_eq!(pod["metadata"]["resourceVersion"], version, "what was refused or only tried changed the Pod");

    let preconditions = json!({"uid": uid, "resourceVersion": version});
    let options = json!({"gracePeriodSeconds": 7, "preconditions": preconditions});
    let answer = evict("p", eviction("p", options)).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}"#;
    assert_eq!(answer.body.to_string(), status);
    let pod = server.send(admin(), "GET", &format!("{PODS}/p"), "").await.body;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
    let condition = &pod["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("DisruptionTarget"), &json!("True")));
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert_eq!(condition["message"], "Eviction API: evicting");

    // One that never ran goes at once.
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    server.make(PODS, json!({"metadata": {"name": "waiting"}, "spec": spec})).await;
    assert_eq!(evict("waiting", eviction("waiting", Value::Null)).await.code, 201);
    assert_eq!(server.send(admin(), "GET", &format!("{PODS}/waiting"), "").await.code, 404);
}

#[tokio::test]
async fn what_is_no_object_is_not_to_be_had_as_a_table() {
    let server = server().await;
    let attributes = json!({"verb": "get", "resource": "pods"});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ask = async |accept: &str| {
        let body = json!({"spec": {"resourceAttributes": attributes}}).to_string();
        let request = Request::post(reviews).header("content-type", "application/json").header("accept", accept);
        let request = request.body(Full::new(bytes::Bytes::from(body))).expect("a request");
        let answer = server.server.local(admin()).call(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice::<Value>(&body).unwrap_or_default())
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (code, body) = ask(table).await;
    assert_eq!((code, body["reason"].as_str()), (406, Some("NotAcceptable")), "{body}");
    let (code, body) = ask(&format!("{table},application/json")).await;
    assert_eq!((code, &body["status"]["allowed"]), (201, &json!(true)), "{body}");
}
