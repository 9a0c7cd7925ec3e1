//! Deployments and the other kinds that make Pods, without controllers.

use fairlead_server::{Admission, Authorization};
use serde_json::{Value, json};

use crate::world::{Answer, TestServer, admin, user};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

async fn server() -> TestServer {
    TestServer::new(Admission::default(), Authorization::AlwaysAllow).await
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "img:1"}]},
            },
        },
    })
}

async fn patch(server: &TestServer, path: &str, media: &str, body: &Value) -> Answer {
    server.send_as(admin(), "PATCH", path, media, body.to_string()).await
}

/// `manager operation apiVersion subresource: fields` for each entry.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or("-").to_owned();
    let line = |entry: &Value| {
        let names = ["manager", "operation", "apiVersion", "subresource"].map(|field| text(entry, field));
        format!("{}: {}", names.join(" "), entry["fieldsV1"])
    };
    entries.iter().map(line).collect()
}

#[tokio::test]
async fn a_deployment_keeps_status_and_spec_apart_and_counts_generations() {
    let server = server().await;
    let mut sent = deployment();
    sent["status"] = json!({"replicas": 7});
    let made = server.make(DEPLOYMENTS, sent).await;
    assert_eq!((&made["status"], &made["metadata"]["generation"]), (&json!({}), &json!(1)));
    let path = format!("{DEPLOYMENTS}/web");
    let status = json!({"spec": {"replicas": 9}, "status": {"replicas": 1, "observedGeneration": 1}});
    let answer = patch(&server, &format!("{path}/status"), MERGE, &status).await.body;
    assert_eq!((&answer["spec"]["replicas"], &answer["status"]["replicas"]), (&json!(2), &json!(1)));
    assert_eq!(answer["metadata"]["generation"], 1);
    let answer = patch(&server, &path, MERGE, &json!({"spec": {"paused": true}, "status": null})).await.body;
    assert_eq!((&answer["metadata"]["generation"], &answer["status"]["replicas"]), (&json!(2), &json!(1)));
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "x"}}}});
    let answer = patch(&server, &path, MERGE, &other).await;
    assert_eq!(answer.code, 422);
    let message = answer.body["message"].as_str().expect("a message");
    assert!(
        message.contains("spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable"),
        "{message}"
    );
    // Strict decoding goes down into the template.
    let mut odd = deployment();
    odd["spec"]["template"]["spec"]["containers"][0]["prots"] = json!([]);
    let answer = server.send(admin(), "POST", &format!("{DEPLOYMENTS}?fieldValidation=Strict"), odd.to_string()).await;
    let message = answer.body["message"].as_str().expect("a message");
    assert!(
        message.ends_with("strict decoding error: unknown field \"spec.template.spec.containers[0].prots\""),
        "{message}"
    );
}

#[tokio::test]
async fn a_scale_is_the_count_of_its_object() {
    let server = server().await;
    let made = server.make(&format!("{DEPLOYMENTS}?fieldManager=kubectl"), deployment()).await;
    let (path, scale) = (format!("{DEPLOYMENTS}/web"), format!("{DEPLOYMENTS}/web/scale"));
    let found = server.send(admin(), "GET", &scale, "").await.body;
    assert_eq!((&found["kind"], &found["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(found["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!(
        (&found["spec"], &found["status"]),
        (&json!({"replicas": 2}), &json!({"replicas": 0, "selector": "app=web"}))
    );

    let mut new = found.clone();
    new["spec"]["replicas"] = 5.into();
    let answer = server.send(admin(), "PUT", &format!("{scale}?fieldManager=hpa"), new.to_string()).await;
    assert_eq!(
        (answer.code, &answer.body["kind"], &answer.body["spec"]),
        (200, &json!("Scale"), &json!({"replicas": 5}))
    );
    let object = server.send(admin(), "GET", &path, "").await.body;
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(5), &json!(2)));
    // The count has changed hands.
    let owners = managers(&object);
    assert!(owners.contains(&r#"hpa Update apps/v1 scale: {"f:spec":{"f:replicas":{}}}"#.to_owned()), "{owners:#?}");
    assert!(owners.iter().filter(|owner| owner.contains("f:replicas")).count() == 1, "{owners:#?}");

    // The version is a condition, as for the object itself.
    let answer = server.send(admin(), "PUT", &scale, new.to_string()).await;
    assert_eq!((answer.code, &answer.body["reason"]), (409, &json!("Conflict")));
    let answer = patch(&server, &scale, MERGE, &json!({"spec": {"replicas": 0}})).await;
    assert_eq!((answer.code, &answer.body["spec"]), (200, &json!({})));
    assert_eq!(server.send(admin(), "GET", &path, "").await.body["spec"]["replicas"], 0);
    let answer = patch(&server, &scale, MERGE, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(answer.code, 422);
    assert_eq!(
        answer.body["message"],
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    let answer = patch(&server, &format!("{DEPLOYMENTS}/none/scale"), MERGE, &json!({"spec": {"replicas": 1}})).await;
    assert_eq!(answer.code, 404);
    let answer = server.send(admin(), "DELETE", &scale, "").await;
    assert_eq!((answer.code, answer.allow.as_str()), (405, "GET, PUT, PATCH"));
    let answer = server.send(admin(), "GET", "/apis/apps/v1/namespaces/default/daemonsets/x/scale", "").await;
    assert_eq!(answer.code, 404);
}

#[tokio::test]
async fn server_side_apply_shares_a_deployment() {
    let server = server().await;
    let path = format!("{DEPLOYMENTS}/web");
    let apply = |manager: &str, path: &str| format!("{path}?fieldManager={manager}");
    let mut config = deployment();
    config["apiVersion"] = "apps/v1".into();
    config["kind"] = "Deployment".into();
    let answer = patch(&server, &apply("alice", &path), APPLY, &config).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    // Another container is added by its name, the first stays.
    let other = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "img:2"}]}}},
    });
    let answer = patch(&server, &apply("bob", &path), APPLY, &other).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    let containers = answer.body["spec"]["template"]["spec"]["containers"].as_array().expect("containers").clone();
    assert_eq!(containers.iter().map(|c| c["name"].as_str().expect("a name")).collect::<Vec<_>>(), ["c", "sidecar"]);
    // The count belongs to alice.
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 4},
    });
    let answer = patch(&server, &apply("hpa", &format!("{path}/scale")), APPLY, &scale).await;
    assert_eq!(answer.code, 409, "{}", answer.body);
    let forced = format!("{}&force=true", apply("hpa", &format!("{path}/scale")));
    let answer = patch(&server, &forced, APPLY, &scale).await;
    assert_eq!((answer.code, &answer.body["spec"]["replicas"]), (200, &json!(4)), "{}", answer.body);
    let owners = managers(&server.send(admin(), "GET", &path, "").await.body);
    assert!(owners.contains(&r#"hpa Apply apps/v1 scale: {"f:spec":{"f:replicas":{}}}"#.to_owned()), "{owners:#?}");
    // Without the count alice's configuration has no conflict any more.
    config["spec"].as_object_mut().expect("a spec").remove("replicas");
    let answer = patch(&server, &apply("alice", &path), APPLY, &config).await;
    assert_eq!((answer.code, &answer.body["spec"]["replicas"]), (200, &json!(4)), "{}", answer.body);
}

#[tokio::test]
async fn every_workload_can_be_made_shown_and_deleted() {
    let server = server().await;
    let revision = json!({"metadata": {"name": "web"}, "data": {"spec": {}}, "revision": 1});
    let template = json!({"metadata": {"name": "web"}, "template": deployment()["spec"]["template"]});
    let mut controller = deployment();
    controller["spec"]["selector"] = json!({"app": "web"});
    let mut daemons = deployment();
    daemons["spec"].as_object_mut().expect("a spec").remove("replicas");
    for (path, object) in [
        ("/apis/apps/v1/namespaces/default/deployments", deployment()),
        ("/apis/apps/v1/namespaces/default/replicasets", deployment()),
        ("/apis/apps/v1/namespaces/default/statefulsets", deployment()),
        ("/apis/apps/v1/namespaces/default/daemonsets", daemons),
        ("/apis/apps/v1/namespaces/default/controllerrevisions", revision),
        ("/api/v1/namespaces/default/replicationcontrollers", controller),
        ("/api/v1/namespaces/default/podtemplates", template),
    ] {
        let made = server.make(path, object).await;
        let one = format!("{path}/web");
        // What is stored is what the rules make of it: a PUT of the same changes nothing.
        let again = server.send(admin(), "PUT", &one, made.to_string()).await;
        assert_eq!(again.code, 200, "{path}: {}", again.body);
        assert_eq!(again.body["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "{path}");
        let answer = server.send(admin(), "DELETE", &one, r#"{"propagationPolicy": "Background"}"#).await;
        assert_eq!(answer.code, 200, "{path}");
        assert_eq!(server.send(admin(), "GET", &one, "").await.code, 404, "{path}");
    }
}

#[tokio::test]
async fn pods_of_a_replication_controller_are_orphaned_unless_the_request_says_otherwise() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    let mut controller = deployment();
    controller["spec"]["selector"] = json!({"app": "web"});
    server.make(path, controller).await;
    let one = format!("{path}/web");
    assert_eq!(server.send(admin(), "DELETE", &one, "").await.code, 200);
    let left = server.send(admin(), "GET", &one, "").await.body;
    assert_eq!(left["metadata"]["finalizers"], json!(["orphan"]));
}

#[tokio::test]
async fn the_roles_of_users_hold_the_workloads() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let rules = |role: &str| format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to-{role}");
    let edit = server.send(admin(), "GET", &rules("edit"), "").await.body.to_string();
    let view = server.send(admin(), "GET", &rules("view"), "").await.body.to_string();
    for resource in ["deployments/scale", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers"] {
        assert!(edit.contains(&format!("\"{resource}\"")) && view.contains(&format!("\"{resource}\"")), "{resource}");
    }
    assert_eq!(server.send(user("nobody", &[]), "GET", DEPLOYMENTS, "").await.code, 403);
}
