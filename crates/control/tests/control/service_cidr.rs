//! Ranges of cluster IPs, and the end of them.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::Delete;
use fairlead_control::Options;
use serde_json::{Value, json};

use crate::house::{House, condition};

const TERMINATING: &str =
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";

fn control(house: &House) {
    let options = Options { service_cidr_grace_period: Duration::ZERO, ..Options::default() };
    house.control_with("service-cidr-controller", options);
}

async fn range(house: &House, name: &str, cidr: &str) {
    house.make(&kinds::SERVICE_CIDR, json!({"metadata": {"name": name}, "spec": {"cidrs": [cidr]}})).await;
    house.until(&kinds::SERVICE_CIDR, "", name, |range| condition(range, "Ready").0 == "True").await;
}

async fn service(house: &House, ip: &str) {
    let spec = json!({"clusterIP": ip, "ports": [{"port": 80}]});
    house.make(&kinds::SERVICE, json!({"metadata": {"namespace": "default", "name": "web"}, "spec": spec})).await;
}

async fn delete(house: &House, name: &str) {
    house.cluster.delete(&kinds::SERVICE_CIDR, "", name, &Delete::default()).await.expect("deleted");
}

fn held(range: &Value) -> bool {
    condition(range, "Ready") == ("False", "Terminating", TERMINATING)
}

#[tokio::test]
async fn every_range_is_kept_and_ready() {
    for house in [House::near().await, House::far().await] {
        control(&house);
        range(&house, "more", "10.9.0.0/24").await;
        for name in ["kubernetes", "more"] {
            let told = |range: &Value| condition(range, "Ready") == ("True", "", "Kubernetes Service CIDR is ready");
            let range = house.until(&kinds::SERVICE_CIDR, "", name, told).await;
            assert_eq!(range.at("metadata").texts("finalizers"), ["networking.k8s.io/service-cidr-finalizer"]);
        }
    }
}

#[tokio::test]
async fn a_range_without_addresses_in_use_goes() {
    let house = House::near().await;
    control(&house);
    range(&house, "more", "10.9.0.0/24").await;
    delete(&house, "more").await;
    house.until_gone(&kinds::SERVICE_CIDR, "", "more").await;
}

#[tokio::test]
async fn a_range_waits_for_its_addresses() {
    for house in [House::near().await, House::far().await] {
        control(&house);
        range(&house, "more", "10.9.0.0/24").await;
        service(&house, "10.9.0.7").await;
        delete(&house, "more").await;
        house.until(&kinds::SERVICE_CIDR, "", "more", held).await;
        house.stays(&kinds::SERVICE_CIDR, "", "more").await;
        house.cluster.delete(&kinds::SERVICE, "default", "web", &Delete::default()).await.expect("deleted");
        house.until_gone(&kinds::SERVICE_CIDR, "", "more").await;
    }
}

#[tokio::test]
async fn another_range_with_the_same_addresses_lets_it_go() {
    for other in ["10.9.0.0/16", "10.9.0.0/24", "10.9.0.0/28"] {
        let house = House::near().await;
        control(&house);
        range(&house, "more", "10.9.0.0/24").await;
        service(&house, "10.9.0.7").await;
        delete(&house, "more").await;
        house.until(&kinds::SERVICE_CIDR, "", "more", held).await;
        range(&house, "other", other).await;
        house.until_gone(&kinds::SERVICE_CIDR, "", "more").await;
    }
}

#[tokio::test]
async fn nothing_is_taken_from_a_range_on_its_way_out() {
    let house = House::near().await;
    control(&house);
    range(&house, "more", "10.9.0.0/24").await;
    service(&house, "10.9.0.7").await;
    delete(&house, "more").await;
    let spec = json!({"clusterIP": "10.9.0.8", "ports": [{"port": 80}]});
    let late = json!({"metadata": {"namespace": "default", "name": "late"}, "spec": spec});
    let refused = house.cluster.create(&kinds::SERVICE, &late).await;
    assert!(refused.is_err(), "{refused:?}");
}
