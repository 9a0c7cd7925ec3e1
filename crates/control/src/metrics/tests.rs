use fairlead_api::view::EndpointSlice;
use fairlead_endpoints::Changes;
use serde_json::json;

use super::*;

/// A slice with endpoints of these numbers, by its name and its port.
fn slice(name: &str, port: u16, endpoints: &[u8]) -> EndpointSlice {
    let endpoints: Vec<_> = endpoints.iter().map(|last| json!({"addresses": [format!("10.0.0.{last}")]})).collect();
    let slice = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"port": port, "protocol": "TCP"}]});
    serde_json::from_value(slice).expect("it is a slice")
}

fn check(metrics: &Metrics, want: &[&str]) {
    let text = metrics.text(Format::Prometheus);
    for want in want {
        let line = format!("endpoint_slice_controller_{want}");
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
}

#[test]
fn a_service_adds_its_slices_to_the_sums_and_takes_them_along() {
    let metrics = Metrics::new();
    let meter = metrics.slices();
    let (mut one, mut other) = (Share::default(), Share::default());
    let (near, far) = (slice("a", 80, &[1, 2, 3]), slice("b", 81, &[4]));
    meter.decided(&mut one, &[], &Changes { create: vec![near.clone(), far.clone()], ..Changes::default() }, 2);
    meter.decided(&mut other, &[&far], &Changes::default(), 2);
    // Three endpoints of one kind want two slices of two; those with another port one of their own.
    check(&metrics, &["num_endpoint_slices 3", "desired_endpoint_slices 4", "endpoints_desired 5"]);
    drop(one);
    check(&metrics, &["num_endpoint_slices 1", "desired_endpoint_slices 1", "endpoints_desired 1"]);
}

#[test]
fn an_endpoint_that_moves_to_another_slice_is_neither_added_nor_removed() {
    let metrics = Metrics::new();
    let (old, kept) = (slice("a", 80, &[1, 2]), slice("k", 80, &[7]));
    let changes = Changes {
        create: vec![slice("b", 80, &[3])],
        update: vec![slice("a", 80, &[2])],
        delete: vec!["c".to_owned()],
        ..Changes::default()
    };
    let gone = slice("c", 80, &[3, 4, 5]);
    metrics.slices().decided(&mut Share::default(), &[&old, &kept, &gone], &changes, 100);
    // 3 has moved; 1, 4 and 5 are gone.
    check(&metrics, &["endpoints_added_per_sync_sum 0.0", "endpoints_removed_per_sync_sum 3.0"]);
}
