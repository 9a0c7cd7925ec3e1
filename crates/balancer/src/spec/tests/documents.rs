//! The manifests of the documents that have annotations for load balancers, or fields about them.

use super::*;

const ARN: &str = "arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012";

fn facts(annotations: &[(&str, &str)]) -> String {
    let service = annotated(annotations);
    let spec = read_ok(&service);
    spec.facts(&service).iter().map(|fact| format!("{}: {}\n", fact.label, fact.value)).collect()
}

#[test]
fn row_125_every_cloud_has_its_internal_annotation() {
    let documents = [
        ("cloud.google.com/load-balancer-type", "Internal"),
        ("cloud.google.com/load-balancer-type", "internal"),
        ("networking.gke.io/load-balancer-type", "Internal"),
        ("service.beta.kubernetes.io/aws-load-balancer-internal", "true"),
        ("service.beta.kubernetes.io/aws-load-balancer-internal", "0.0.0.0/0"),
        ("service.beta.kubernetes.io/azure-load-balancer-internal", "true"),
        ("service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type", "private"),
        ("service.beta.kubernetes.io/openstack-internal-load-balancer", "true"),
        ("service.beta.kubernetes.io/cce-load-balancer-internal-vpc", "true"),
        ("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "subnet-xxxxx"),
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type", "intranet"),
        ("service.beta.kubernetes.io/oci-load-balancer-internal", "true"),
    ];
    for (name, value) in documents {
        let service = annotated(&[(name, value)]);
        let spec = read_ok(&service);
        assert_eq!((spec.scheme, spec.path), (Scheme::Internal, Path::Kernel), "{name}: {value}");
        assert_eq!(spec.facts(&service)[0].why, name);
        assert_eq!(spec.notes, [], "{name}: {value}");
    }
}

#[test]
fn rows_126_to_128_a_certificate_for_two_of_three_ports() {
    let text = facts(&[
        ("service.beta.kubernetes.io/aws-load-balancer-ssl-cert", ARN),
        ("service.beta.kubernetes.io/aws-load-balancer-backend-protocol", "http"),
        ("service.beta.kubernetes.io/aws-load-balancer-ssl-ports", "443,8443"),
    ]);
    let expected = format!(
        "Scheme: public
Type: classic
Path: through the balancer (ipMode Proxy)
Listener: 80/TCP (http): HTTP
Listener: 443/TCP (https): TLS with certificate {ARN}, HTTP
Listener: 8443/TCP (alt): TLS with certificate {ARN}, HTTP
Sources: 0.0.0.0/0
Traffic policy: endpoints of all Nodes
Balance: round-robin
Zones: all
Health check: tcp on the traffic's port every 10 s, 5 s for an answer, healthy after 2, unhealthy after 6
Draining: 300 s
Idle timeout: 60 s
"
    );
    assert_eq!(text, expected);
}

#[test]
fn row_128_ports_without_a_certificate_are_as_the_document_shows_them() {
    let service = annotated(&[
        ("service.beta.kubernetes.io/aws-load-balancer-backend-protocol", "http"),
        ("service.beta.kubernetes.io/aws-load-balancer-ssl-ports", "443,8443"),
    ]);
    let spec = read_ok(&service);
    assert_eq!(tls(&spec), "");
    assert_eq!(spec.notes, [Note::NoEffect { annotation: names::SSL_PORTS, without: names::SSL_CERT }]);
}

#[test]
fn row_129_the_policy_of_the_documents() {
    let service = annotated(&[
        ("service.beta.kubernetes.io/aws-load-balancer-ssl-cert", ARN),
        ("service.beta.kubernetes.io/aws-load-balancer-ssl-negotiation-policy", "ELBSecurityPolicy-TLS-1-2-2017-01"),
    ]);
    let spec = read_ok(&service);
    assert_eq!(policy(&spec), "ELBSecurityPolicy-TLS-1-2-2017-01");
    let [Note::Policy { unspoken, .. }] = spec.notes.as_slice() else { panic!("{:?}", spec.notes) };
    assert_eq!(unspoken.versions, []);
}

#[test]
fn row_130_proxy_protocol_on_all_ports() {
    let spec = read_ok(&annotated(&[("service.beta.kubernetes.io/aws-load-balancer-proxy-protocol", "*")]));
    assert!(spec.listeners.iter().all(|listener| listener.send_proxy == Some(ProxyVersion::V1)));
    assert_eq!((spec.path, spec.needs), (Path::Userspace, vec![Need::SendProxy]));
}

#[test]
fn rows_131_to_135_logs_draining_and_the_others_together() {
    let text = facts(&[
        ("service.beta.kubernetes.io/aws-load-balancer-access-log-enabled", "true"),
        ("service.beta.kubernetes.io/aws-load-balancer-access-log-emit-interval", "60"),
        ("service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-name", "my-bucket"),
        ("service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-prefix", "my-bucket-prefix/prod"),
        ("service.beta.kubernetes.io/aws-load-balancer-connection-draining-enabled", "true"),
        ("service.beta.kubernetes.io/aws-load-balancer-connection-draining-timeout", "60"),
        ("service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout", "60"),
        ("service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled", "true"),
        ("service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags", "environment=prod,owner=devops"),
        ("service.beta.kubernetes.io/aws-load-balancer-healthcheck-healthy-threshold", ""),
        ("service.beta.kubernetes.io/aws-load-balancer-healthcheck-unhealthy-threshold", "3"),
        ("service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval", "20"),
        ("service.beta.kubernetes.io/aws-load-balancer-healthcheck-timeout", "5"),
        ("service.beta.kubernetes.io/aws-load-balancer-extra-security-groups", "sg-53fae93f,sg-42efd82e"),
    ]);
    let expected = "Scheme: public
Type: classic
Path: through the balancer (ipMode Proxy)
Listener: 80/TCP (http): bytes
Listener: 443/TCP (https): bytes
Listener: 8443/TCP (alt): bytes
Sources: group sg-53fae93f, group sg-42efd82e
Traffic policy: endpoints of all Nodes
Balance: round-robin
Zones: all
Health check: tcp on the traffic's port every 20 s, 5 s for an answer, healthy after 2, unhealthy after 3
Draining: 60 s
Idle timeout: 60 s
Access log: my-bucket/my-bucket-prefix/prod, every 3600 s
Tags: environment=prod,owner=devops
";
    assert_eq!(text, expected);
}

#[test]
fn row_136_nlb_with_source_ranges_and_inside() {
    let mut service = annotated(&[
        ("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"),
        ("service.beta.kubernetes.io/aws-load-balancer-internal", "true"),
    ]);
    service.spec.load_balancer_source_ranges = vec!["143.231.0.0/16".to_owned()];
    let spec = read_ok(&service);
    assert_eq!((spec.kind, spec.scheme, spec.path), (Kind::Network, Scheme::Internal, Path::Kernel));
    assert_eq!(sources(&spec), "Kernel 143.231.0.0/16 ");
}

#[test]
fn the_plain_manifest_is_carried_by_the_kernel() {
    let service = serde_json::from_value(json!({
        "metadata": {"name": "my-service"},
        "spec": {"selector": {"app": "MyApp"}, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 9376}],
            "clusterIP": "10.0.171.239", "loadBalancerIP": "78.11.24.19", "type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": [{"ip": "146.148.47.155"}]}},
    }));
    let spec = read_ok(&service.expect("a Service"));
    assert_eq!((spec.path, spec.needs, spec.notes), (Path::Kernel, vec![], vec![]));
}
