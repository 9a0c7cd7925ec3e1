use serde_json::{Value, json};

use super::*;

fn slice(annotations: Value, rest: Value) -> EndpointSlice {
    let mut object = json!({
        "metadata": {"name": "s", "annotations": annotations},
        "addressType": "IPv4",
        "ports": [{"port": 53, "protocol": "UDP"}, {"port": 8080}],
        "endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["192.0.2.2", "192.0.2.3"]}],
    });
    for (name, value) in rest.as_object().expect("fields") {
        object[name] = value.clone();
    }
    serde_json::from_value(object).expect("a slice")
}

#[track_caller]
fn refused(annotations: Value, rest: Value, expect: &str) {
    let read = read(&slice(annotations, rest)).expect("it asks for something");
    assert_eq!(read.map_err(|mistake| mistake.to_string()), Err(expect.to_owned()));
}

#[test]
fn the_first_address_and_the_first_tcp_port_are_looked_at() {
    assert_eq!(read(&slice(json!({}), json!({}))), None);
    let plan = read(&slice(json!({"fairlead.dev/health-check": "tcp"}), json!({}))).expect("a wish").expect("a plan");
    let tcp = |host: &str| (host.to_owned(), Check::Tcp { host: host.to_owned(), port: 8080 });
    assert_eq!(plan.checks, BTreeMap::from([tcp("192.0.2.1"), tcp("192.0.2.2")]));
    let usual = Schedule { period: Duration::from_secs(5), ..Schedule::default() };
    assert_eq!(plan.schedule, usual);
}

#[test]
fn times_and_thresholds_are_annotations() {
    let annotations = json!({
        "fairlead.dev/health-check": "tcp:9",
        "fairlead.dev/health-check-interval": "10s",
        "fairlead.dev/health-check-timeout": "200ms",
        "fairlead.dev/health-check-healthy-threshold": "2",
        "fairlead.dev/health-check-unhealthy-threshold": "4",
    });
    let plan = read(&slice(annotations, json!({"ports": []}))).expect("a wish").expect("a plan");
    let expect = Schedule {
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_millis(200),
        success_threshold: 2,
        failure_threshold: 4,
    };
    assert_eq!(plan.schedule, expect);
}

#[test]
fn what_cannot_be_followed_is_told() {
    let check = |text: &str| json!({"fairlead.dev/health-check": text});
    let with = |name: &str, value: &str| json!({"fairlead.dev/health-check": "tcp", format!("fairlead.dev/health-check-{name}"): value});
    let exec = "the annotation fairlead.dev/health-check: commands run only where fairlead register runs, not in the controller";
    refused(check("exec:rm -rf /"), json!({}), exec);
    let no_port = "the annotation fairlead.dev/health-check: the slice has no TCP port to look at; name one, as in http:8080/healthz";
    refused(check("http:/x"), json!({"ports": [{"port": 53, "protocol": "UDP"}]}), no_port);
    let names = "the annotation fairlead.dev/health-check: only addresses are looked at, and this slice has names";
    refused(check("tcp"), json!({"addressType": "FQDN"}), names);
    for (name, value, want) in [
        ("interval", "10ms", "a duration from 1s to 1h"),
        ("interval", "soon", "a duration from 1s to 1h"),
        ("timeout", "60s", "a duration from 10ms to 30s"),
        ("healthy-threshold", "0", "a number from 1 to 100"),
        ("unhealthy-threshold", "-1", "a number from 1 to 100"),
    ] {
        let expect = format!("the annotation fairlead.dev/health-check-{name}: {value:?} is not {want}");
        refused(with(name, value), json!({}), &expect);
    }
    let labels = json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
    let mut managed = slice(check("tcp"), json!({}));
    managed.metadata.labels = serde_json::from_value(labels).expect("labels");
    assert!(matches!(read(&managed), Some(Err(Mistake::Managed(_)))));
    assert!(matches!(read(&slice(check("nonsense"), json!({}))), Some(Err(Mistake::Check(_)))));
}

#[test]
fn verdicts_become_conditions_and_unknown_ones_do_not() {
    let conditions = |slice: &EndpointSlice| serde_json::to_value(slice).expect("JSON")["endpoints"].clone();
    let endpoints = json!([
        {"addresses": ["192.0.2.1"]},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": true, "serving": true}},
        {"addresses": ["192.0.2.3"], "conditions": {"ready": false, "serving": false, "terminating": true}},
    ]);
    let slice = slice(json!({}), json!({"endpoints": endpoints}));
    assert_eq!(judged(&slice, |_| State::Unknown), None);
    let state = |address: &str| if address == "192.0.2.1" { State::Unknown } else { State::Healthy };
    let healthy = judged(&slice, state).expect("the third answers");
    assert_eq!(conditions(&healthy)[0]["conditions"], json!({}));
    let third = json!({"ready": false, "serving": true, "terminating": true});
    assert_eq!(conditions(&healthy)[2]["conditions"], third);
    assert_eq!(judged(&healthy, state), None);
    let unhealthy = judged(&slice, |_| State::Unhealthy).expect("none answers");
    assert_eq!(conditions(&unhealthy)[1]["conditions"], json!({"ready": false, "serving": false}));
    let states = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.9"].map(|address| initial(&slice, address));
    assert_eq!(states, [State::Unknown, State::Healthy, State::Unhealthy, State::Unknown]);
}
