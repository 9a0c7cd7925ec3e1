//! What one request may cost.

use std::time::Duration;

use fairlead_server::{Admission, Authorization};
use serde_json::json;

use crate::world::{SERVICES, TestServer, admin, service, user};

/// Maximum size of an answer to a bad request.
const MAX_ANSWER: usize = 64 << 10;
/// The largest body the server reads.
const BODY: usize = 3 << 20;

async fn server() -> TestServer {
    TestServer::new(Admission::default(), Authorization::Rbac).await
}

#[tokio::test]
async fn an_option_of_bad_characters_is_one_short_mistake() {
    let server = server().await;
    let body = service("web", json!({})).to_string();
    for (option, count) in
        [("fieldManager", 4_000), ("fieldManager", 100), ("dryRun", 4_000), ("fieldValidation", 4_000)]
    {
        let path = format!("{SERVICES}?{option}={}", "%01".repeat(count));
        let answer = server.send(admin(), "POST", &path, body.clone()).await;
        assert_eq!(answer.code, 422, "{option} {count}: {}", answer.body);
        assert_eq!(answer.body["details"]["causes"].as_array().map(Vec::len), Some(1), "{option} {count}");
        assert!(answer.size < MAX_ANSWER, "{option} {count}: {}", answer.size);
    }
    for option in ["labelSelector", "fieldSelector", "continue", "resourceVersion", "limit", "resourceVersionMatch"] {
        for text in ["%01".repeat(8_000), "a,".repeat(12_000), "%F0%9F%92%A9".repeat(2_000)] {
            let answer = server.send(admin(), "GET", &format!("{SERVICES}?{option}={text}"), "").await;
            assert!((400..500).contains(&answer.code) || answer.code == 500, "{option}: {}", answer.code);
            assert!(answer.size < MAX_ANSWER, "{option}: {}", answer.size);
        }
    }
}

#[tokio::test]
async fn a_url_has_a_largest_length() {
    let server = server().await;
    let answer = server.send(admin(), "GET", &format!("{SERVICES}?labelSelector={}", "a".repeat(40_000)), "").await;
    assert_eq!((answer.code, answer.size < MAX_ANSWER), (414, true));
    let answer = server.send(admin(), "GET", &format!("{SERVICES}/{}", "a".repeat(20_000)), "").await;
    assert_eq!((answer.code, answer.size < MAX_ANSWER), (404, true));
}

#[tokio::test]
async fn a_body_of_mistakes_gets_a_short_answer_in_every_form() {
    let server = server().await;
    server.make(SERVICES, service("web", json!({}))).await;
    let ports = |count: usize| format!("[{}{{}}]", "{},".repeat(count - 1));
    let object = |ports: String| {
        format!(
            "{{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"web\"}},\"spec\":{{\"ports\":{ports}}}}}"
        )
    };
    let many = object(ports(24_000));
    let full = object(ports((BODY - 200) / 3));
    let unknown: String = (0..150_000).map(|at| format!("\"f{at}\":1,")).collect();
    let unknown = format!("{{{unknown}\"metadata\":{{\"name\":\"x\"}}}}");
    let one = format!("{SERVICES}/web");
    let strict = format!("{SERVICES}?fieldValidation=Strict");
    let json = "application/json";
    for (method, path, media, body) in [
        ("POST", SERVICES, json, &many),
        ("POST", SERVICES, json, &full),
        ("POST", SERVICES, "application/yaml", &many),
        ("POST", &strict, json, &unknown),
        ("PUT", &one, json, &many),
        ("PATCH", &one, "application/merge-patch+json", &many),
        ("PATCH", &one, "application/strategic-merge-patch+json", &many),
        ("PATCH", &format!("{one}?fieldManager=a&force=true"), "application/apply-patch+yaml", &many),
    ] {
        let answer = server.send_as(admin(), method, path, media, body.clone()).await;
        assert!((400..=500).contains(&answer.code), "{method} {media}: {}", answer.code);
        assert!(answer.size < MAX_ANSWER, "{method} {media}: {}", answer.size);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_answered_while_large_bodies_are_worked_on() {
    let server = std::sync::Arc::new(server().await);
    server.make(SERVICES, service("web", json!({}))).await;
    let keys: String = (0..90_000).map(|at| format!("\"key-{at}\":\"value\",")).collect();
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":{{{keys}\"z\":\"\"}}}}");
    let large: Vec<_> = (0..8)
        .map(|at| {
            let (server, body) = (server.clone(), body.clone());
            tokio::spawn(async move {
                let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
                server.send(user(&format!("u{}", at % 4), &["system:masters"]), "POST", path, body).await.code
            })
        })
        .collect();
    // A worker that a large body kept busy would answer none of these meanwhile.
    let mut answered = 0;
    let web = format!("{SERVICES}/web");
    while !large.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = server.send(admin(), "GET", &web, "");
        let answer = tokio::time::timeout(Duration::from_secs(30), asked).await.expect("others are answered");
        assert_eq!(answer.code, 200);
        answered += 1;
        tokio::task::yield_now().await;
    }
    assert!(answered > 100, "{answered}");
    for large in large {
        assert!([201, 413, 422, 429].contains(&large.await.expect("it ends")));
    }
}

#[tokio::test]
async fn reviews_are_bounded() {
    let server = server().await;
    let groups: Vec<String> = (0..1001).map(|at| format!("g{at}")).collect();
    let review = json!({"spec": {"groups": groups, "resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(server.send(admin(), "POST", path, review.to_string()).await.code, 422);
    let review = json!({"spec": {"token": "x", "audiences": ["a".repeat(5_000)]}});
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = server.send(admin(), "POST", path, review.to_string()).await;
    assert_eq!((answer.code, answer.size < MAX_ANSWER), (422, true));
}

#[tokio::test]
async fn a_role_whose_lists_multiply_is_refused_before_they_do() {
    let server = server().await;
    let binding = json!({
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    });
    server.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding).await;
    let words: Vec<String> = (0..2_000).map(|at| format!("w{at}")).collect();
    let rule = json!({"verbs": words, "apiGroups": words, "resources": words, "resourceNames": words});
    let role = json!({"metadata": {"name": "r"}, "rules": [rule]}).to_string();
    let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    // Until the binding reaches the server by its watch, the tenant may not write roles at all.
    let refused = async {
        loop {
            let answer = server.send(user("tenant", &["system:authenticated"]), "POST", path, role.clone()).await;
            let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
            assert_eq!((answer.code, answer.size < MAX_ANSWER), (403, true), "{message}");
            if message.contains("at most 10000 are compared") {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), refused).await.expect("the role is refused");
}
