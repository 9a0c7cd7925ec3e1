//! What a session may do: look at everything but secrets; change things only if its link was made for that, and only if the page
//! itself asks.

use fairlead_testkit::Server;
use serde_json::json;

use crate::browser::{PROGRAM, PROOF, SERVICES, read, service, sign_in, text};

#[test]
fn who_looks_sees_everything_but_secrets_and_changes_nothing() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, false);
    for path in [
        "/api/v1/services",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/events",
        "/api/v1/namespaces/default/endpoints",
        "/apis/discovery.k8s.io/v1/endpointslices",
        "/apis/networking.k8s.io/v1/servicecidrs",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/fairlead:viewer",
        "/api",
        "/version",
    ] {
        assert_eq!(browser.try_get(path).0, 200, "{path}");
    }
    for path in [
        "/api/v1/secrets",
        "/api/v1/namespaces/kube-system/secrets/any",
        "/fairlead/backup",
        "/metrics",
        "/api/v1/namespaces/default/services/kubernetes/proxy/",
        "/api/v1/namespaces/default/pods/any/exec?command=id",
        "/api/v1/nodes/any/proxy/",
    ] {
        assert_eq!(browser.try_get(path).0, 403, "{path}");
    }
    for (method, path) in [
        ("POST", SERVICES),
        ("DELETE", "/api/v1/namespaces/default/services/kubernetes"),
        ("PATCH", "/api/v1/namespaces/default/services/kubernetes"),
        ("POST", "/fairlead/v1/links"),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token"),
    ] {
        let answer = browser.send(method, path, &service("web"));
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.body);
        assert!(answer.body.contains("fairlead ui --write"), "{}", answer.body);
    }
}

#[test]
fn who_writes_changes_services_but_gets_no_further() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, true);
    let made = browser.send("POST", SERVICES, &service("web"));
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(browser.send("DELETE", &format!("{SERVICES}/web"), &json!({})).status, 200);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "fairlead:viewers"}],
    });
    for (path, body) in [
        ("/api/v1/namespaces/default/secrets", &secret),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding),
        ("/fairlead/v1/links", &json!({"write": true})),
        ("/api/v1/namespaces/default/serviceaccounts/default/token", &json!({})),
    ] {
        assert_eq!(browser.send("POST", path, body).status, 403, "{path}");
    }
    assert_eq!(browser.try_get("/api/v1/secrets").0, 403);
    let acting =
        browser.client.with_header("Impersonate-User", "admin").with_header("Impersonate-Group", "system:masters");
    assert_eq!(acting.get("/api/v1/secrets").unwrap().status, 403);
}

#[test]
fn a_write_that_the_page_did_not_send_is_refused() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, true);
    let own = format!("https://{}", browser.client.address());
    let other = sign_in(&server, true);
    let cases: [(u16, &[(&str, &str)]); 7] = [
        (401, &[]),
        (401, &[("Origin", &own)]),
        (403, &[(PROOF, &browser.proof)]),
        (401, &[(PROOF, &other.proof), ("Origin", &own)]),
        (403, &[(PROOF, &browser.proof), ("Origin", "https://evil.test")]),
        (403, &[(PROOF, &browser.proof), ("Origin", "null")]),
        (403, &[(PROOF, &browser.proof), ("Origin", &own), ("Sec-Fetch-Site", "cross-site")]),
    ];
    for (code, headers) in cases {
        let client = headers.iter().fold(browser.bare.clone(), |client, (name, value)| client.with_header(name, value));
        let answer = client.request("POST", SERVICES, &service("web").to_string()).unwrap();
        assert_eq!(answer.status, code, "{headers:?}: {}", answer.body);
    }
    assert_eq!(browser.send("POST", SERVICES, &service("web")).status, 201);
}

#[test]
fn a_session_opens_no_stream() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, true);
    let client = browser.client.with_header("Upgrade", "websocket").with_header("Connection", "Upgrade");
    let answer = client.get("/api/v1/services?watch=1").unwrap();
    assert_eq!(answer.status, 403, "{}", answer.body);
}

/// Questions, and whether a server alone can answer them to whoever may ask.
const QUESTIONS: [(&str, u16); 11] = [
    ("services", 200),
    ("services?watch=1&since=1", 410),
    ("services/default/kubernetes", 200),
    ("explain?name=kubernetes", 200),
    ("traffic", 404),
    ("nodes", 200),
    ("balancers", 404),
    ("trace?from=node&to=svc/kubernetes:443", 200),
    ("dns?name=web", 404),
    ("history", 200),
    ("history/at?subject=svc/default/kubernetes", 200),
];

#[test]
fn a_role_for_paths_alone_gives_away_no_objects() {
    let server = Server::start(PROGRAM, &[]);
    let admin = server.client();
    let post = |path: &str, body: &serde_json::Value| {
        let made = admin.request("POST", path, &body.to_string()).unwrap();
        assert_eq!(made.status, 201, "{path}: {}", made.body);
        read(&made)
    };
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(accounts, &json!({"metadata": {"name": "ann"}}));
    let token = text(&post(&format!("{accounts}/ann/token"), &json!({}))["status"], "token");
    let ann = admin.with_token(&token);
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([
        {"verbs": ["get"], "nonResourceURLs": ["*"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]},
    ]);
    post(&format!("{roles}/clusterroles"), &json!({"metadata": {"name": "paths"}, "rules": rules}));
    let bind = |name: &str, role: &str, place: &str| {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        let ann = json!({"kind": "ServiceAccount", "namespace": "default", "name": "ann"});
        post(place, &json!({"metadata": {"name": name}, "roleRef": role, "subjects": [ann]}));
    };
    let (everywhere, here) =
        (format!("{roles}/clusterrolebindings"), format!("{roles}/namespaces/default/rolebindings"));
    bind("paths", "paths", &everywhere);
    // Who may read one namespace may not read of all of them.
    bind("viewer", "fairlead:viewer", &here);
    let ask = |path: &str| ann.get(&format!("/fairlead/v1/{path}")).unwrap();
    let begun = |path: &str, code: u16| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while ask(path).status != code {
            assert!(std::time::Instant::now() < until, "{path}: {}", ask(path).body);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    // Roles are followed: a moment passes until they hold.
    begun("session", 200);
    for (path, _) in QUESTIONS {
        let refused = ask(path);
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        assert!(refused.body.contains("cannot list resource"), "{path}: {}", refused.body);
    }
    assert_eq!(ask("nothing").status, 404);

    bind("viewer", "fairlead:viewer", &everywhere);
    begun("services", 200);
    for (path, code) in QUESTIONS {
        assert_eq!(ask(path).status, code, "{path}: {}", ask(path).body);
    }
}
