use serde_json::{Value, json};

use super::trim;
use crate::Followed;

fn value(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("JSON")
}

fn check(kind: Followed, object: Value, kept: Value) {
    let text = object.to_string();
    let trimmed = trim(kind, text.as_bytes()).expect("it is kept");
    assert_eq!(value(&trimmed.text), kept);
    let again = trim(kind, &trimmed.text).expect("it is kept");
    assert_eq!(again.text, trimmed.text, "trimming twice is trimming once");
}

#[test]
fn a_service_is_kept_without_what_changes_all_the_time() {
    let service = json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 2,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}},
    });
    let kept = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {}},
    });
    check(Followed::Service, service, kept);
}

#[test]
fn annotations_that_say_something_stay_and_names_may_be_strange() {
    let noise = "endpoints.kubernetes.io/last-change-trigger-time";
    let slice = json!({
        "metadata": {"annotations": {noise: "t", "a\"b": "c\\"}, "labels": {"ä": "1"}},
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    });
    let kept = json!({
        "metadata": {"annotations": {"a\"b": "c\\"}, "labels": {"ä": "1"}},
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    });
    check(Followed::EndpointSlice, slice, kept);
    check(Followed::Service, json!({"metadata": {"annotations": null}}), json!({"metadata": {}}));
    check(Followed::Service, json!({"metadata": {"annotations": {}, "name": "a"}}), json!({"metadata": {"name": "a"}}));
    check(Followed::Service, json!({}), json!({}));
}

#[test]
fn of_a_pod_only_what_a_service_cares_for_is_kept() {
    let pod = json!({
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"app": "web"}, "annotations": {"a": "b"}},
        "spec": {"nodeName": "n1", "containers": [
            {"name": "c", "image": "x", "env": [{"name": "SECRET", "value": "s"}], "ports": [{"name": "http", "containerPort": 80}]},
            {"name": "d", "ports": [{"containerPort": 81}]},
        ]},
        "status": {"phase": "Running", "podIP": "10.244.0.2", "startTime": "x",
            "conditions": [{"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": "t"}],
            "containerStatuses": [{"name": "c", "restartCount": 2, "state": {}}, {"name": "d", "restartCount": 0}]},
    });
    let kept = json!({
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 80}]}]},
        "status": {"phase": "Running", "podIP": "10.244.0.2", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "c", "restartCount": 2}]},
    });
    check(Followed::Pod, pod, kept);
}

#[test]
fn a_heartbeat_of_a_node_changes_nothing() {
    let node = |time: &str| {
        let conditions =
            json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": time}]);
        json!({"metadata": {"name": "n1"}, "status": {"conditions": conditions, "images": [time]}}).to_string()
    };
    let (one, other) = (node("2026-01-01T00:00:00Z"), node("2026-01-01T00:00:10Z"));
    let text = |json: &str| trim(Followed::Node, json.as_bytes()).map(|kept| kept.text);
    assert_eq!(text(&one), text(&other));
    assert!(text(&one).is_some());
}

#[test]
fn what_says_nothing_of_its_own_is_left_out() {
    let none = |kind, object: Value| assert!(trim(kind, object.to_string().as_bytes()).is_none(), "{object}");
    let labels = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
    none(Followed::Endpoints, json!({"metadata": {"name": "web", "labels": labels}}));
    none(Followed::Event, json!({"involvedObject": {"kind": "ConfigMap"}, "reason": "R"}));
    none(Followed::Service, json!([1]));
    assert!(trim(Followed::Service, b"{\"metadata\": ").is_none());
}

#[test]
fn who_wrote_last_is_the_newest_manager() {
    let who = |managers: Value| {
        let object = json!({"metadata": {"name": "web", "managedFields": managers}});
        trim(Followed::Service, object.to_string().as_bytes()).and_then(|kept| kept.newest().0)
    };
    let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time, "fieldsV1": {"f:a": {".": {}}}});
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    assert_eq!(who(json!([entry("kubectl", late), entry("fairlead", early)])).as_deref(), Some("kubectl"));
    assert_eq!(who(json!([entry("kubectl", early), entry("fairlead", late)])).as_deref(), Some("fairlead"));
    assert_eq!(who(json!([])), None);
    assert_eq!(who(json!(null)), None);
    assert_eq!(who(json!({"no": "list"})), None);
}
