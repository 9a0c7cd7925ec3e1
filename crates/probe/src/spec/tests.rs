use serde_json::json;

use super::*;

fn read(probe: Value) -> Result<Spec, String> {
    let container = json!({"ports": [{"name": "web", "containerPort": 8080}]});
    Spec::read(&probe, &container, "10.0.0.9").map_err(|why| why.to_string())
}

#[track_caller]
fn check(probe: Value, expect: Check) {
    assert_eq!(read(probe).map(|spec| spec.handler), Ok(Handler::Look(expect)));
}

#[test]
fn handlers_are_read_with_the_pods_address_and_ports() {
    let http = Http {
        scheme: Scheme::Https,
        host: "10.0.0.9".to_owned(),
        port: 8080,
        path: "/ok".to_owned(),
        headers: vec![("X".to_owned(), "1".to_owned())],
    };
    let headers = json!([{"name": "X", "value": "1"}]);
    check(
        json!({"httpGet": {"scheme": "HTTPS", "port": "web", "path": "/ok", "httpHeaders": headers}}),
        Check::Http(http),
    );
    check(json!({"tcpSocket": {"port": 90, "host": "h"}}), Check::Tcp { host: "h".to_owned(), port: 90 });
    let (host, service) = ("10.0.0.9".to_owned(), "s".to_owned());
    check(json!({"grpc": {"port": 91, "service": "s"}}), Check::Grpc { host, port: 91, service });
    let exec = read(json!({"exec": {"command": ["cat", "/x"]}})).map(|spec| spec.handler);
    assert_eq!(exec, Ok(Handler::Exec(vec!["cat".to_owned(), "/x".to_owned()])));
}

#[test]
fn ports_that_are_none_are_told() {
    for (probe, expect) in [
        (json!({"tcpSocket": {"port": "nope"}}), "couldn't find port: \"nope\" in container"),
        (json!({"tcpSocket": {"port": 70000}}), "invalid port number: 70000"),
        (json!({"tcpSocket": {}}), "invalid port number: 0"),
        (json!({}), "missing probe handler"),
    ] {
        assert_eq!(read(probe), Err(expect.to_owned()));
    }
    assert!(read(json!({"tcpSocket": {"port": "81"}})).is_ok(), "a number may be written as a text");
}

#[test]
fn times_and_thresholds_have_kubernetes_defaults() {
    let socket = json!({"port": 1});
    assert_eq!(read(json!({"tcpSocket": socket})).map(|spec| spec.schedule), Ok(Schedule::default()));
    let spec = read(json!({"tcpSocket": socket, "initialDelaySeconds": 3, "periodSeconds": 4, "timeoutSeconds": 5,
        "successThreshold": 6, "failureThreshold": 7}));
    let second = Duration::from_secs(1);
    let expect = Schedule {
        initial_delay: 3 * second,
        period: 4 * second,
        timeout: 5 * second,
        success_threshold: 6,
        failure_threshold: 7,
    };
    assert_eq!(spec.map(|spec| spec.schedule), Ok(expect));
}
