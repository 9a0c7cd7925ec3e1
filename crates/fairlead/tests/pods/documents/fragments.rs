//! Pieces of manifests that the documents say to add to a LoadBalancer: each is added to one, and does what it says.

use serde_json::Value;
use tempfile::TempDir;

use super::world::{From::Outside, World};
use super::{INGRESS, MANIFESTS, until};

/// The file of pieces of each document.
pub(crate) const FILES: &[&str] = &["s0-fragments", "s1-fragments", "s2-fragments", "s3-fragments", "s4-fragments"];

/// What the documents' values name: addresses, a certificate, groups and a bucket.
const CONFIG: &str = "pools:
- {name: asked, addresses: [78.11.24.19/32, 146.148.47.156/32], autoAssign: false}
- {name: any, addresses: [192.0.2.127/32]}
- {name: inside, addresses: [10.99.0.0/24], scheme: internal}
certificates:
  arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012:
    {certificate: HOME/cert.pem, key: HOME/key.pem}
securityGroups: {sg-53fae93f: [203.0.113.0/24], sg-42efd82e: [198.51.100.0/24]}
buckets: {my-bucket: {directory: HOME/logs}}
";

/// The Service the pieces are added to. HTTP is what its Pods speak.
const SERVICE: &str = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-service"}, "spec": {
    "type": "LoadBalancer", "selector": {"app": "MyApp"}, "ports": [
        {"name": "http", "port": 80, "targetPort": 9376},
        {"name": "https", "port": 443, "targetPort": 9376},
        {"name": "other", "port": 8443, "targetPort": 9376}]}}"#;

/// The configuration of load balancers, with what it names.
pub(crate) fn files() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().display().to_string();
    let pair = rcgen::generate_simple_self_signed(["shop.example".to_owned()]).unwrap();
    std::fs::write(home.path().join("cert.pem"), pair.cert.pem()).unwrap();
    std::fs::write(home.path().join("key.pem"), pair.signing_key.serialize_pem()).unwrap();
    std::fs::create_dir(home.path().join("logs")).unwrap();
    std::fs::write(home.path().join("balancer.yaml"), CONFIG.replace("HOME", &path)).unwrap();
    home
}

/// Adds each to a Service of its own.
pub(crate) fn check(world: &World) {
    for file in FILES {
        let text = std::fs::read_to_string(format!("{MANIFESTS}/{file}.yaml")).unwrap();
        for piece in text.split("---\n").skip(1) {
            world.create("services", SERVICE);
            add(world, &format!("{file}: {piece}"), &serde_saphyr::from_str(piece).unwrap());
            world.delete("services/my-service");
            // Its load balancer goes first.
            until(world, "the Service is gone", "", || world.field("services/my-service", "/metadata/name"));
        }
    }
}

/// It is kept, unless it is no annotation: their values are texts. Then it has an effect, or an Event says why it has none.
#[track_caller]
fn add(world: &World, what: &str, piece: &Value) {
    let answer = world.api("PATCH", "services/my-service", &piece.to_string());
    let annotations = piece["metadata"]["annotations"].as_object();
    if annotations.is_some_and(|all| all.values().any(|value| !value.is_string())) {
        assert!(answer["code"] == 400 || answer["code"] == 422, "{what}: {answer}");
        return;
    }
    for (name, value) in annotations.into_iter().flatten() {
        assert_eq!(answer["metadata"]["annotations"][name], *value, "{what}: {answer}");
    }
    for (name, value) in piece["spec"].as_object().into_iter().flatten() {
        assert_eq!(answer["spec"][name], *value, "{what}: {answer}");
    }
    let said = |word: &str| annotations.into_iter().flatten().any(|(name, _)| name.contains(word));
    if annotations.is_some_and(|all| all.values().any(|value| value == "(https|http|ssl|tcp)")) {
        // The documents list what may be said there.
        let events = || world.field("events", "/items/*/message");
        until(world, what, "true", || events().contains("http, https, ssl or tcp").to_string());
        return;
    }
    let internal =
        said("internal") || said("address-type") || said("cloud-provider-ip-type") || said("google") || said("gke");
    let address = if internal { "10.99.0.1" } else { "192.0.2.127" };
    until(world, what, address, || world.field("services/my-service", INGRESS));
    let needs = ["backend-protocol", "ssl-cert", "proxy-protocol", "access-log", "draining", "idle-timeout"];
    let mode = if needs.iter().any(|word| said(word)) { "Proxy" } else { "VIP" };
    until(world, what, mode, || world.field("services/my-service", "/status/loadBalancer/ingress/*/ipMode"));
    answered(world, what, address, piece, &said);
}

/// Whether a client outside is answered, as far as it can be one.
#[track_caller]
fn answered(world: &World, what: &str, address: &str, piece: &Value, said: &dyn Fn(&str) -> bool) {
    if said("proxy-protocol") || said("ssl-cert") {
        // The Pods do not read the header, the client speaks no TLS: both have tests of their own.
        return;
    }
    let elsewhere = piece["spec"]["loadBalancerSourceRanges"].is_array();
    let expected = if elsewhere { "" } else { "MyApp:9376" };
    until(world, what, expected, || world.get(Outside, &format!("{address}:80")));
}
