//! Pieces of manifests that the documents say to add to a LoadBalancer: for clouds to read, and kept for them as they are.

use serde_json::Value;

use super::MANIFESTS;
use super::world::World;

/// The file of pieces of each document.
pub(crate) const FILES: &[&str] = &["s0-fragments", "s1-fragments", "s2-fragments", "s3-fragments", "s4-fragments"];

/// Merges each into the Service that is there.
pub(crate) fn check(world: &World) {
    for file in FILES {
        let text = std::fs::read_to_string(format!("{MANIFESTS}/{file}.yaml")).unwrap();
        for piece in text.split("---\n").skip(1) {
            merge(world, &format!("{file}: {piece}"), &serde_saphyr::from_str(piece).unwrap());
        }
    }
}

/// It is kept, unless it is no annotation: their values are texts.
#[track_caller]
fn merge(world: &World, what: &str, piece: &Value) {
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
}
