//! The account of a Pod, and the volume with its token.

use std::time::Duration;

use fairlead_server::{Admission, Authorization};
use serde_json::{Value, json};

use crate::world::{TestServer, admin};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

async fn server() -> TestServer {
    let admission = Admission { service_accounts: true, ..Admission::default() };
    TestServer::new(admission, Authorization::Rbac).await
}

async fn server_with(accounts: &[Value]) -> TestServer {
    let server = server().await;
    for account in accounts {
        server.make(ACCOUNTS, account.clone()).await;
    }
    server
}

fn account(name: &str, more: Value) -> Value {
    let mut account = json!({"metadata": {"name": name}});
    for (key, value) in more.as_object().expect("fields") {
        account[key] = value.clone();
    }
    account
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (key, value) in spec.as_object().expect("fields") {
        pod["spec"][key] = value.clone();
    }
    pod
}

async fn refused(server: &TestServer, pod: Value, why: &str) {
    let answer = server.send(admin(), "POST", PODS, pod.to_string()).await;
    let message = format!("pods \"p\" is forbidden: {why}");
    assert_eq!((answer.code, answer.body["message"].as_str()), (403, Some(&*message)), "{}", answer.body);
    assert_eq!(answer.body["reason"], "Forbidden");
}

#[tokio::test]
async fn a_pod_that_names_no_account_gets_the_default_one_and_its_token() {
    let server = server_with(&[account("default", json!({}))]).await;
    let init = json!([{"name": "i", "image": "i"}]);
    let made = server.make(PODS, pod(json!({"initContainers": init}))).await;
    let spec = &made["spec"];
    assert_eq!((&spec["serviceAccountName"], &spec["serviceAccount"]), (&json!("default"), &json!("default")));
    let name = spec["volumes"][0]["name"].as_str().expect("a volume").to_owned();
    let random = name.strip_prefix("kube-api-access-").expect("the prefix");
    assert_eq!(random.len(), 5, "{name}");
    // The text, because the order of fields is part of what kube-apiserver answers.
    assert_eq!(
        spec["volumes"].to_string(),
        format!(
            r#"[{{"name":"{name}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}},{{"downwardAPI":{{"items":[{{"path":"namespace","fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.namespace"}}}}]}}}}],"defaultMode":420}}}}]"#
        )
    );
    let mount = format!(r#"[{{"name":"{name}","readOnly":true,"mountPath":"{MOUNT_PATH}"}}]"#);
    for list in ["containers", "initContainers"] {
        assert_eq!(spec[list][0]["volumeMounts"].to_string(), mount, "{list}");
    }
    // An update of the object as it came back changes nothing.
    let answer = server.send(admin(), "PUT", &format!("{PODS}/p"), made.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    assert_eq!(answer.body["spec"], *spec);
}

#[tokio::test]
async fn what_a_container_has_at_the_place_of_the_token_stays() {
    let server = server_with(&[account("default", json!({}))]).await;
    let mine = json!({"name": "kube-api-access-mine", "emptyDir": {}});
    let there = json!({"name": "kube-api-access-mine", "mountPath": MOUNT_PATH});
    let containers = json!([
        {"name": "a", "image": "i", "volumeMounts": [there]},
        {"name": "b", "image": "i", "volumeMounts": [{"name": "kube-api-access-mine", "mountPath": "/elsewhere"}]},
    ]);
    let made = server.make(PODS, pod(json!({"containers": containers, "volumes": [mine]}))).await;
    let mounts = |index: usize| made["spec"]["containers"][index]["volumeMounts"].as_array().expect("mounts").clone();
    assert_eq!(mounts(0), [there]);
    let second: Vec<_> = mounts(1).iter().map(|mount| mount["mountPath"].clone()).collect();
    assert_eq!(second, ["/elsewhere", MOUNT_PATH]);
    // The Pod's own volume of that name is the one that is mounted.
    assert_eq!(made["spec"]["volumes"].as_array().expect("volumes").len(), 1);
    assert_eq!(mounts(1)[1]["name"], "kube-api-access-mine");
}

#[tokio::test]
async fn pod_and_account_say_whether_the_token_is_mounted_and_the_pod_wins() {
    let server = server_with(&[
        account("default", json!({})),
        account("closed", json!({"automountServiceAccountToken": false})),
    ])
    .await;
    let table = [
        (json!({}), true),
        (json!({"automountServiceAccountToken": false}), false),
        (json!({"serviceAccountName": "closed"}), false),
        (json!({"serviceAccount": "closed"}), false),
        (json!({"serviceAccountName": "closed", "automountServiceAccountToken": true}), true),
    ];
    for (spec, mounted) in table {
        let answer = server.send(admin(), "POST", &format!("{PODS}?dryRun=All"), pod(spec.clone()).to_string()).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
        assert_eq!(answer.body["spec"]["volumes"].is_array(), mounted, "{spec}");
    }
}

#[tokio::test]
async fn secrets_for_images_come_from_the_account_unless_the_pod_names_its_own() {
    let secrets = json!([{"name": "one"}, {"name": "two"}]);
    let server = server_with(&[account("default", json!({"imagePullSecrets": secrets}))]).await;
    let path = format!("{PODS}?dryRun=All");
    let answer = server.send(admin(), "POST", &path, pod(json!({})).to_string()).await;
    assert_eq!(answer.body["spec"]["imagePullSecrets"], secrets);
    let own = json!([{"name": "three"}]);
    let answer = server.send(admin(), "POST", &path, pod(json!({"imagePullSecrets": own})).to_string()).await;
    assert_eq!(answer.body["spec"]["imagePullSecrets"], own);
}

#[tokio::test]
async fn a_pod_of_an_account_that_is_not_there_is_refused() {
    let server = server_with(&[account("default", json!({}))]).await;
    let why = "error looking up service account default/robot: serviceaccount \"robot\" not found";
    refused(&server, pod(json!({"serviceAccountName": "robot"})), why).await;
}

#[tokio::test(start_paused = true)]
async fn the_account_default_is_waited_for() {
    let server = server().await;
    let why = "error looking up service account default/default: serviceaccount \"default\" not found";
    refused(&server, pod(json!({})), why).await;
    // As a controller makes it, a moment after the namespace.
    let text = pod(json!({})).to_string();
    let made = server.send(admin(), "POST", PODS, text);
    let account = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.make(ACCOUNTS, account("default", json!({}))).await;
    };
    let (answer, ()) = tokio::join!(made, account);
    assert_eq!(answer.code, 201, "{}", answer.body);
}

#[tokio::test]
async fn a_mirror_pod_is_left_as_it_is_and_names_nothing_of_the_api() {
    let server = server().await;
    let mirror = |spec: Value| {
        let mut pod = pod(spec);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        pod["spec"]["nodeName"] = "n1".into();
        pod
    };
    refused(&server, mirror(json!({"serviceAccountName": "x"})), "a mirror pod may not reference service accounts")
        .await;
    let volume = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    refused(&server, mirror(json!({"volumes": volume})), "a mirror pod may not reference secrets").await;
    let variable = json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]);
    let container = json!([{"name": "c", "image": "i", "env": variable}]);
    refused(&server, mirror(json!({"containers": container})), "a mirror pod may not reference secrets").await;
    let source = json!([{"serviceAccountToken": {"path": "token"}}]);
    let volume = json!([{"name": "v", "projected": {"sources": source}}]);
    let why = "a mirror pod may not use ServiceAccountToken volume projections";
    refused(&server, mirror(json!({"volumes": volume})), why).await;
    let made = server.make(PODS, mirror(json!({}))).await;
    assert!(made["spec"]["serviceAccountName"].is_null() && made["spec"]["volumes"].is_null(), "{made}");
}

#[tokio::test]
async fn an_account_that_enforces_its_secrets_allows_no_others() {
    let annotations = json!({"name": "default", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}});
    let server = server_with(&[json!({
        "metadata": annotations, "secrets": [{"name": "known"}], "imagePullSecrets": [{"name": "pull"}],
    })])
    .await;
    let volume = |secret: &str| json!([{"name": "v", "secret": {"secretName": secret}}]);
    let because = "is not allowed because service account default does not reference that";
    let why = format!("volume with secret.secretName=\"other\" {because} secret");
    refused(&server, pod(json!({"volumes": volume("other")})), &why).await;
    let variable = json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]);
    let container = json!([{"name": "c", "image": "i", "env": variable}]);
    let why = format!("container c with envVar V referencing secret.secretName=\"other\" {because} secret");
    refused(&server, pod(json!({"containers": container})), &why).await;
    let container = json!([{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]);
    let why = format!("container c with envFrom referencing secret.secretName=\"other\" {because} secret");
    refused(&server, pod(json!({"containers": container})), &why).await;
    let why = format!("imagePullSecrets[0].name=\"other\" {because} imagePullSecret");
    refused(&server, pod(json!({"imagePullSecrets": [{"name": "other"}]})), &why).await;
    server.make(PODS, pod(json!({"volumes": volume("known")}))).await;
}

#[tokio::test]
async fn without_the_plugin_a_pod_stays_as_it_was_sent() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let made = server.make(PODS, pod(json!({}))).await;
    assert!(made["spec"]["serviceAccountName"].is_null() && made["spec"]["volumes"].is_null(), "{made}");
}
