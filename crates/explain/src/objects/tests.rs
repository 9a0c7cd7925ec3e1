use super::*;

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn service(name: &str, app: &str) -> Change {
    let json = format!(
        r#"{{"metadata": {{"name": "{name}", "namespace": "default"}}, "spec": {{"selector": {{"app": "{app}"}}}}}}"#
    );
    Change::Service(key(name), Some(Arc::new(serde_json::from_str(&json).unwrap())))
}

fn pod(name: &str, app: &str) -> Change {
    let json = format!(r#"{{"metadata": {{"name": "{name}", "namespace": "default", "labels": {{"app": "{app}"}}}}}}"#);
    Change::Pod(key(name), Some(Arc::new(serde_json::from_str(&json).unwrap())))
}

fn slice(name: &str, owner: &str) -> Change {
    let json = format!(
        r#"{{"metadata": {{"name": "{name}", "namespace": "default", "labels": {{"{SERVICE_NAME}": "{owner}"}}}}}}"#
    );
    Change::EndpointSlice(key(name), Some(Arc::new(serde_json::from_str(&json).unwrap())))
}

#[track_caller]
fn check(objects: &mut Objects, change: Change, concerned: &[&str]) {
    let text = format!("{change:?}");
    let found: Vec<String> = objects.apply([change]).into_iter().map(|key| key.name.into()).collect();
    assert_eq!(found, concerned, "{text}");
}

#[test]
fn a_change_concerns_the_services_it_is_about() {
    let mut objects = Objects::default();
    check(&mut objects, service("a", "a"), &["a"]);
    check(&mut objects, service("b", "b"), &["b"]);
    // While they select nothing, every Pod may be a near miss.
    check(&mut objects, pod("p", "a"), &["a", "b"]);
    check(&mut objects, pod("q", "b"), &["b"]);
    check(&mut objects, pod("p", "a"), &["a"]);
    check(&mut objects, pod("p", "b"), &["a", "b"]);
    check(&mut objects, Change::Pod(key("q"), None), &["a", "b"]);
    check(&mut objects, Change::Service(key("a"), None), &["a"]);
    check(&mut objects, pod("q", "c"), &[]);
    check(&mut objects, slice("s", "b"), &["b"]);
    check(&mut objects, slice("s", "c"), &["b", "c"]);
    check(&mut objects, Change::EndpointSlice(key("s"), None), &["c"]);
}

#[test]
fn a_change_of_a_service_concerns_those_that_are_other_names_of_it() {
    let alias = |name: &str, of: &str| {
        let json = format!(
            r#"{{"metadata": {{"name": "{name}", "namespace": "default"}},
                "spec": {{"type": "ExternalName", "externalName": "{of}.default.svc.cluster.local"}}}}"#
        );
        Change::Service(key(name), Some(Arc::new(serde_json::from_str(&json).unwrap())))
    };
    let mut objects = Objects::default();
    check(&mut objects, alias("b", "a"), &["b"]);
    check(&mut objects, alias("c", "b"), &["c"]);
    check(&mut objects, service("a", "a"), &["a", "b", "c"]);
    check(&mut objects, Change::Service(key("a"), None), &["a", "b", "c"]);
    // In a circle, and out of it again.
    check(&mut objects, alias("a", "c"), &["a", "b", "c"]);
    check(&mut objects, alias("b", "other"), &["a", "b", "c"]);
    check(&mut objects, service("a", "a"), &["a"]);
    check(&mut objects, service("other", "a"), &["b", "c", "other"]);
    let both = objects.apply([service("a", "a"), service("other", "a")]);
    assert_eq!(both.len(), 4);
}

#[test]
fn what_belongs_to_a_service_is_found_by_its_name() {
    let mut objects = Objects::default();
    objects.apply([pod("p", "a"), pod("q", "b"), service("a", "a"), slice("s", "a"), slice("t", "b")]);
    let pods: Vec<_> = objects.pods_of(&key("a")).map(|pod| pod.view.metadata.name.as_str()).collect();
    let slices: Vec<_> = objects.slices_of(&key("a")).map(|slice| slice.metadata.name.as_str()).collect();
    assert_eq!((pods, slices), (vec!["p"], vec!["s"]));
    assert_eq!(objects.pods_in("default").count(), 2);
    assert_eq!(objects.pods_in("defaul").count(), 0);
}

#[test]
fn the_newest_warning_about_an_object_is_told() {
    let mut objects = Objects::default();
    let event = |name: &str, kind: &str, at: &str| {
        let json = format!(
            r#"{{"metadata": {{"name": "{name}"}}, "type": "{kind}", "message": "{name}", "lastTimestamp": "{at}",
                "involvedObject": {{"kind": "Pod", "namespace": "default", "name": "p"}}}}"#
        );
        Change::Event(key(name), Some(Arc::new(serde_json::from_str(&json).unwrap())))
    };
    objects.apply([event("old", "Warning", "2026-01-01T00:00:00Z"), event("new", "Warning", "2026-01-02T00:00:00Z")]);
    objects.apply([event("fine", "Normal", "2026-01-03T00:00:00Z")]);
    let told = |objects: &Objects| objects.warning("Pod", &key("p"), |_| true).map(|event| event.message.clone());
    assert_eq!(told(&objects).as_deref(), Some("new"));
    objects.apply([Change::Event(key("new"), None)]);
    assert_eq!(told(&objects).as_deref(), Some("old"));
    assert_eq!(objects.warning("Service", &key("p"), |_| true), None);
    assert_eq!(objects.warning("Pod", &key("p"), |event| event.message != "old"), None);
}
