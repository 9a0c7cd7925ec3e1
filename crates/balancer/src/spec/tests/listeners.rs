//! What is spoken on ports.

use super::*;

/// Reads a Service with one port of an `appProtocol` and says what is spoken on it.
fn check(app_protocol: &str, annotations: &[(&str, &str)], expected: &str) {
    let mut service = annotated(annotations);
    service.spec.ports.truncate(1);
    service.spec.ports[0].app_protocol = Some(app_protocol.to_owned()).filter(|text| !text.is_empty());
    assert_eq!(behind(&read_ok(&service)), expected, "{app_protocol:?} {annotations:?}");
}

#[test]
fn app_protocol_alone_changes_nothing() {
    for app in ["", "http", "https", "kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss", "grpc", "redis"] {
        check(app, &[], "Kernel Bytes plain");
        check(app, &[(names::LAYER, "4")], "Kernel Bytes plain");
        check(app, &[(names::BACKEND_PROTOCOL, "tcp")], "Kernel Bytes plain");
    }
}

#[test]
fn layer_7_asks_app_protocol_what_backends_speak() {
    let table = [
        ("", "Userspace Http plain"),
        ("http", "Userspace Http plain"),
        ("HTTP", "Userspace Http plain"),
        ("https", "Userspace Http TLS"),
        ("kubernetes.io/h2c", "Userspace H2c plain"),
        ("grpc", "Userspace H2c plain"),
        ("kubernetes.io/ws", "Userspace Http plain"),
        ("ws", "Userspace Http plain"),
        ("kubernetes.io/wss", "Userspace Http TLS"),
        ("wss", "Userspace Http TLS"),
        ("redis", "Kernel Bytes plain"),
        ("example.com/thing", "Kernel Bytes plain"),
    ];
    for (app, expected) in table {
        check(app, &[(names::LAYER, "7")], expected);
    }
}

#[test]
fn the_backend_protocol_decides_on_tls_and_app_protocol_on_the_version_of_http() {
    check("kubernetes.io/h2c", &[(names::BACKEND_PROTOCOL, "http")], "Userspace H2c plain");
    check("https", &[(names::BACKEND_PROTOCOL, "http")], "Userspace Http plain");
    check("grpc", &[(names::BACKEND_PROTOCOL, "https")], "Userspace H2c TLS");
    check("redis", &[(names::BACKEND_PROTOCOL, "http")], "Userspace Http plain");
    check("grpc", &[(names::BACKEND_PROTOCOL, "ssl")], "Userspace Bytes TLS");
}

#[test]
fn a_certificate_without_a_backend_protocol_is_tls_around_bytes() {
    let spec = read_ok(&annotated(&[(names::SSL_CERT, "web")]));
    assert_eq!(behind(&spec), "Userspace Bytes plain");
    assert_eq!((spec.needs, spec.notes), (vec![Need::Tls], vec![]));
}

#[test]
fn row_127_https_and_ssl_are_encrypted_again_on_the_way_to_pods() {
    for (protocol, expected) in [("https", "Userspace Http TLS"), ("ssl", "Userspace Bytes TLS")] {
        let annotations = [(names::SSL_CERT, "web"), (names::SSL_PORTS, "443"), (names::BACKEND_PROTOCOL, protocol)];
        let spec = read_ok(&annotated(&annotations));
        assert_eq!(behind(&spec), expected);
        assert_eq!(spec.notes, [Note::PlainClients { port: 80 }, Note::PlainClients { port: 8443 }]);
    }
}

#[test]
fn a_network_load_balancer_carries_bytes() {
    for (protocol, expected) in [
        ("http", "Kernel Bytes plain"),
        ("tcp", "Kernel Bytes plain"),
        ("https", "Userspace Bytes TLS"),
        ("ssl", "Userspace Bytes TLS"),
    ] {
        let spec = read_ok(&annotated(&[(names::TYPE, "nlb"), (names::BACKEND_PROTOCOL, protocol)]));
        assert_eq!(behind(&spec), expected, "{protocol}");
    }
    let spec = read_ok(&annotated(&[(names::TYPE, "nlb"), (names::BACKEND_PROTOCOL, "http")]));
    assert_eq!(spec.notes, [Note::Layer4 { asked: "http", served: "tcp" }]);
}

#[test]
fn a_port_by_number_is_not_a_port_by_name() {
    let mut service = annotated(&[(names::SSL_CERT, "web"), (names::SSL_PORTS, "https,80")]);
    service.spec.ports[0].name = "p".to_owned();
    assert_eq!(tls(&read_ok(&service)), "80=web 443=web");
}

#[test]
fn our_annotation_chooses_the_version_of_the_proxy_header() {
    let spec = read_ok(&annotated(&[(names::AWS_PROXY_PROTOCOL, "*"), (names::PROXY_PROTOCOL, "v2")]));
    assert_eq!(proxy(&spec), "Userspace (Some(V2), false)");
}
