//! The ConfigMap with the certificate authority in every namespace.

use fairlead_api::{Look, kinds};
use fairlead_cluster::Delete;
use fairlead_control::Options;
use serde_json::{Value, json};

use crate::house::{House, named};

const NAME: &str = "kube-root-ca.crt";
const CERTIFICATES: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

fn control(house: &House, certificates: &str) {
    let options = Options { root_ca: Some(certificates.to_owned()), ..Options::default() };
    house.control_with("root-ca-certificate-publisher-controller,namespace-controller", options);
}

/// Waits until the ConfigMap of a namespace is as kube-controller-manager writes it.
async fn published(house: &House, namespace: &str, certificates: &str) -> Value {
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
        internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
    let right = |map: &Value| {
        *map.at("data") == json!({"ca.crt": certificates})
            && map.at("metadata").at("annotations").text("kubernetes.io/description") == description
    };
    house.until(&kinds::CONFIG_MAP, namespace, NAME, right).await
}

#[tokio::test]
async fn every_namespace_has_the_certificate_authority() {
    for house in [House::near().await, House::far().await] {
        house.namespace("before").await;
        control(&house, CERTIFICATES);
        house.namespace("after").await;
        for namespace in ["default", "kube-system", "before", "after"] {
            published(&house, namespace, CERTIFICATES).await;
        }
    }
}

#[tokio::test]
async fn what_is_changed_or_deleted_is_restored() {
    for house in [House::near().await, House::far().await] {
        control(&house, CERTIFICATES);
        let first = published(&house, "default", CERTIFICATES).await;
        let patch = json!({"data": {"ca.crt": "another", "more": "x"}, "metadata": {"labels": {"of": "mine"}}});
        house.merge(&kinds::CONFIG_MAP, "default", NAME, patch).await;
        let restored = published(&house, "default", CERTIFICATES).await;
        assert_eq!(restored.at("metadata").text("uid"), first.at("metadata").text("uid"));
        // Labels are their writer's.
        assert_eq!(restored.at("metadata").at("labels").text("of"), "mine");

        let patch = json!({"metadata": {"annotations": null}});
        house.merge(&kinds::CONFIG_MAP, "default", NAME, patch).await;
        published(&house, "default", CERTIFICATES).await;

        house.cluster.delete(&kinds::CONFIG_MAP, "default", NAME, &Delete::default()).await.expect("deleted");
        let again = published(&house, "default", CERTIFICATES).await;
        assert_ne!(again.at("metadata").text("uid"), first.at("metadata").text("uid"));
    }
}

#[tokio::test]
async fn another_authority_replaces_the_former_one_at_the_next_start() {
    let house = House::near().await;
    let data = json!({"ca.crt": "of an earlier start"});
    let mut map = named("default", NAME, json!({}));
    map.set("data", data);
    house.make(&kinds::CONFIG_MAP, map).await;
    control(&house, CERTIFICATES);
    published(&house, "default", CERTIFICATES).await;
}

#[tokio::test]
async fn a_namespace_that_is_deleted_goes_with_its_copy() {
    let house = House::near().await;
    control(&house, CERTIFICATES);
    house.namespace("short").await;
    published(&house, "short", CERTIFICATES).await;
    house.cluster.delete(&kinds::NAMESPACE, "", "short", &Delete::default()).await.expect("deleted");
    house.until_gone(&kinds::NAMESPACE, "", "short").await;
}
