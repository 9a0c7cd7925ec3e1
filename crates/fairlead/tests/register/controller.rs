//! The controller that looks at hand-made slices, and removes registrations nobody keeps.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::house::{A, B, House, Thing, eventually, in_house};

const CONTROLLER: &[&str] = &["--controllers=endpointslice-health-controller"];
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// A slice somebody made by hand.
fn slice(check: &str, port: u16, addresses: &[&str]) -> Value {
    let endpoints: Vec<Value> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    json!({
        "metadata": {
            "name": "by-hand",
            "labels": {"kubernetes.io/service-name": "web"},
            "annotations": {
                "fairlead.dev/health-check": check,
                "fairlead.dev/health-check-interval": "1s",
                "fairlead.dev/health-check-timeout": "10s",
                "fairlead.dev/health-check-unhealthy-threshold": "1",
            },
        },
        "addressType": "IPv4",
        "ports": [{"port": port}],
        "endpoints": endpoints,
    })
}

/// Which endpoints are ready, as the slice says.
fn ready(house: &House) -> Vec<Option<bool>> {
    let slices = house.slices();
    let endpoints = slices[0]["endpoints"].as_array().expect("endpoints").iter();
    endpoints.map(|endpoint| endpoint["conditions"]["ready"].as_bool()).collect()
}

#[track_caller]
fn until_ready(house: &House, expect: &[Option<bool>]) {
    let found = eventually(|| (ready(house) == expect).then_some(()));
    assert!(found.is_some(), "{:?} and not {expect:?}:\n{}", ready(house), house.server.log());
}

/// Waits for an Event, and returns its message.
#[track_caller]
fn event(house: &House, reason: &str) -> String {
    let find = || {
        let events = house.get("/api/v1/namespaces/default/events").expect("a list");
        let events = events["items"].as_array().expect("items").clone();
        let found = events.into_iter().find(|event| event["reason"] == reason)?;
        Some(found["message"].as_str().unwrap_or_default().to_owned())
    };
    eventually(find).unwrap_or_else(|| panic!("no Event {reason}:\n{}", house.server.log()))
}

#[test]
fn hand_made_slices_get_their_readiness_from_looks() {
    in_house("hand_made_slices_get_their_readiness_from_looks", CONTROLLER, |house| {
        let thing = Thing::at(A);
        house.post(SLICES, &slice("http:/healthz", thing.port, &[A, B]));
        until_ready(house, &[Some(true), Some(false)]);
        let told = event(house, "EndpointUnhealthy");
        assert!(
            told.starts_with(&format!("{B} is not ready: Get \"http://{B}:{}/healthz\": dial tcp", thing.port)),
            "{told}"
        );
        assert_eq!(event(house, "EndpointHealthy"), format!("{A} is ready"));
        thing.answers(500);
        until_ready(house, &[Some(false), Some(false)]);
        thing.answers(204);
        until_ready(house, &[Some(true), Some(false)]);
        // What somebody else writes there does not last, and nothing is written without need.
        let mut changed = house.slices()[0].clone();
        changed["endpoints"][1]["conditions"]["ready"] = true.into();
        let path = format!("{SLICES}/by-hand");
        let answer = house.server.client().request("PUT", &path, &changed.to_string()).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        until_ready(house, &[Some(true), Some(false)]);
        let before = house.slices();
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(house.slices(), before);
        // Without the annotation nobody looks.
        changed["metadata"]["annotations"] = json!({});
        changed["metadata"]["resourceVersion"] = json!("");
        let answer = house.server.client().request("PUT", &path, &changed.to_string()).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(ready(house), [Some(true), Some(true)]);
    });
}

#[test]
fn a_command_in_an_annotation_is_refused() {
    in_house("a_command_in_an_annotation_is_refused", CONTROLLER, |house| {
        let home = tempfile::tempdir().expect("a directory");
        let mark = home.path().join("mark");
        house.post(SLICES, &slice(&format!("exec:touch {}", mark.display()), 80, &[A]));
        let told = event(house, "InvalidHealthCheck");
        assert!(told.ends_with("commands run only where fairlead register runs, not in the controller"), "{told}");
        thread::sleep(Duration::from_millis(1500));
        assert!(!mark.exists());
        assert_eq!(ready(house), [None]);
    });
}

#[test]
fn a_registration_nobody_keeps_is_removed() {
    in_house("a_registration_nobody_keeps_is_removed", CONTROLLER, |house| {
        let line = format!("web --address {A} --port 80 --expires-after 3s");
        let mut register = house.register(&line, &[]);
        house.until((true, true, false));
        // It is kept for as long as it is renewed.
        thread::sleep(Duration::from_secs(4));
        house.until((true, true, false));
        register.signal("KILL");
        register.ends();
        let told = event(house, "RegistrationExpired");
        assert!(told.starts_with(&format!("{A} is removed: ")) && told.ends_with("was not heard of for 3s"), "{told}");
        assert!(eventually(|| house.slices().is_empty().then_some(())).is_some());
        let leases = house.get("/apis/coordination.k8s.io/v1/namespaces/default/leases").expect("a list");
        assert_eq!(leases["items"], json!([]));
    });
}

#[test]
fn a_registration_that_was_cut_off_comes_back() {
    in_house("a_registration_that_was_cut_off_comes_back", CONTROLLER, |house| {
        let register = house.register(&format!("web --address {A} --port 80 --expires-after 3s"), &[]);
        house.until((true, true, false));
        register.signal("STOP");
        assert!(eventually(|| house.slices().is_empty().then_some(())).is_some(), "{}", house.server.log());
        register.signal("CONT");
        house.until((true, true, false));
    });
}
