//! What fields say, what contradicts what, and notes.

use super::*;

fn refused(service: &Service, options: &Options) -> Vec<String> {
    read(service, options).expect_err("refused").iter().map(ToString::to_string).collect()
}

fn with_ports(annotations: &[(&str, &str)], ports: &Value) -> Service {
    let mut service = annotated(annotations);
    service.spec.ports = serde_json::from_value(ports.clone()).expect("ports");
    service
}

#[test]
fn source_ranges_of_the_field_come_before_those_of_the_annotation() {
    let mut service = annotated(&[(names::SOURCE_RANGES, "10.0.0.0/8")]);
    assert_eq!(sources(&read_ok(&service)), "Kernel 10.0.0.0/8 ");
    service.spec.load_balancer_source_ranges = vec![" 192.0.2.7/24 ".to_owned(), "fd00::/8".to_owned()];
    assert_eq!(sources(&read_ok(&service)), "Kernel 192.0.2.0/24,fd00::/8 ");
    service.spec.load_balancer_source_ranges.push("all".to_owned());
    assert_eq!(
        refused(&service, &options()),
        [r#"spec.loadBalancerSourceRanges[2]: "all" is not accepted: a range of addresses, as 10.0.0.0/24"#]
    );
}

#[test]
fn groups_beside_ranges_of_the_field_are_not_for_the_kernel() {
    let mut service = annotated(&[(names::EXTRA_GROUPS, "sg-53fae93f")]);
    assert_eq!(read_ok(&service).path, Path::Kernel);
    service.spec.load_balancer_source_ranges = vec!["192.0.2.0/24".to_owned()];
    let spec = read_ok(&service);
    assert_eq!((spec.path, spec.needs), (Path::Userspace, vec![Need::Sources]));
}

#[test]
fn groups_are_those_of_the_configuration() {
    let service = annotated(&[(names::EXTRA_GROUPS, "sg-1,sg-53fae93f")]);
    let accepted = "names of securityGroups of the configuration: sg-53fae93f, sg-42efd82e";
    assert_eq!(
        refused(&service, &options()),
        [format!("{}: \"sg-1\" is not accepted: {accepted}", names::EXTRA_GROUPS)]
    );
    let none = "names of securityGroups of the configuration, which has none";
    let both = refused(&service, &Options::default());
    assert_eq!(both, [format!("{}: \"sg-1,sg-53fae93f\" is not accepted: {none}", names::EXTRA_GROUPS)]);
}

#[test]
fn row_138_sctp_needs_a_kernel_that_has_it() {
    let service = with_ports(&[], &json!([{"port": 7, "protocol": "SCTP"}]));
    assert_eq!(
        refused(&service, &options()),
        [r#"spec.ports[0].protocol: "SCTP" is not accepted: TCP or UDP; the kernel of this machine has no SCTP"#]
    );
    let spec = read(&service, &Options { sctp: true, ..options() }).expect("the kernel has SCTP");
    assert_eq!(spec.path, Path::Kernel);
}

#[test]
fn row_120_mixed_protocols_are_carried_by_the_kernel_and_by_nobody_else() {
    let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]);
    assert_eq!(read_ok(&with_ports(&[], &ports)).path, Path::Kernel);
    let refusals = refused(&with_ports(&[(names::SSL_CERT, "web"), (names::IDLE_TIMEOUT, "9")], &ports), &options());
    assert_eq!(
        refusals,
        [
            "spec.ports[0].protocol: \"UDP\" is not accepted: TCP, since this Service asks for TLS, the idle timeout; a second \
          Service may have this port at the same address (fairlead.dev/allow-shared-ip)"
        ]
    );
}

#[test]
fn affinity_policy_and_health_check_port_come_from_the_spec() {
    let mut service = web();
    service["spec"]["sessionAffinity"] = json!("ClientIP");
    service["spec"]["externalTrafficPolicy"] = json!("Local");
    service["spec"]["healthCheckNodePort"] = json!(32_000);
    let spec = read_ok(&serde_json::from_value(service.clone()).expect("a Service"));
    assert_eq!(spec.affinity, Some(Duration::from_secs(10_800)));
    assert_eq!((spec.local, spec.health_check_port), (true, Some(32_000)));
    assert_eq!(spec.name, "a123456789abcdef0123456789abcdef");
    service["spec"]["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 30}});
    let spec = read_ok(&serde_json::from_value(service).expect("a Service"));
    assert_eq!(spec.affinity, Some(Duration::from_secs(30)));
}

#[test]
fn contradictions_are_refused() {
    let table: [(&[(&str, &str)], &str); 5] = [
        (&[(names::AWS_SCHEME, "internet-facing"), (names::GCP_TYPE, "Internal")], names::AWS_SCHEME),
        (&[(names::LAYER, "7"), (names::TYPE, "nlb")], names::LAYER),
        (&[(names::LAYER, "7"), (names::BACKEND_PROTOCOL, "tcp")], names::LAYER),
        (&[(names::LAYER, "4"), (names::BACKEND_PROTOCOL, "http")], names::LAYER),
        (&[(names::CHECK_TIMEOUT, "20"), (names::CHECK_INTERVAL, "20")], names::CHECK_TIMEOUT),
    ];
    for (annotations, what) in table {
        let refusals = read(&annotated(annotations), &options()).expect_err("contradictory");
        assert_eq!(refusals.iter().map(|refusal| refusal.what.as_str()).collect::<Vec<_>>(), [what]);
    }
    let both = [(names::LAYER, "7"), (names::BACKEND_PROTOCOL, "http")];
    assert_eq!(behind(&read_ok(&annotated(&both))), "Userspace Http plain");
}

#[test]
fn one_cloud_that_asks_for_an_internal_load_balancer_is_enough() {
    let spec = read_ok(&annotated(&[(names::AZURE_INTERNAL, "false"), (names::AWS_INTERNAL, "true")]));
    assert_eq!(spec.scheme, Scheme::Internal);
}

#[test]
fn what_has_no_effect_is_noted() {
    let table: [(&str, &str, &str); 8] = [
        (names::SSL_POLICY, "ELBSecurityPolicy-2016-08", names::SSL_CERT),
        (names::SSL_PORTS, "443", names::SSL_CERT),
        (names::ACCESS_LOG_INTERVAL, "5", names::ACCESS_LOG),
        (names::ACCESS_LOG_BUCKET, "my-bucket", names::ACCESS_LOG),
        (names::ACCESS_LOG_PREFIX, "prod", names::ACCESS_LOG),
        (names::DRAINING_TIMEOUT, "60", names::DRAINING),
        (names::CHECK_PATH, "/healthz", names::CHECK_PROTOCOL),
        (names::AGE, "60", "HTTP"),
    ];
    for (annotation, value, without) in table {
        assert_eq!(read_ok(&annotated(&[(annotation, value)])).notes, [Note::NoEffect { annotation, without }]);
    }
}

#[test]
fn annotations_that_mean_nothing_here_are_noted_and_others_are_not_our_business() {
    let spec = read_ok(&annotated(&[
        ("service.beta.kubernetes.io/aws-load-balancer-idle-timeout", "60"),
        ("fairlead.dev/balanse", "hash"),
        (names::ADDRESSES, "192.0.2.1"),
        ("example.com/aws-load-balancer-idle-timeout", "60"),
    ]));
    let notes: Vec<_> = spec.notes.iter().map(ToString::to_string).collect();
    let nothing = "means nothing to Fairlead";
    assert_eq!(
        notes,
        [
            format!("fairlead.dev/balanse {nothing}"),
            format!("service.beta.kubernetes.io/aws-load-balancer-idle-timeout {nothing}"),
        ]
    );
}

#[test]
fn lists_are_read_entry_by_entry() {
    let service = annotated(&[(names::ADDRESSES, " 192.0.2.1, fd00::1 ,,")]);
    assert_eq!(list(&service, names::ADDRESSES), ["192.0.2.1", "fd00::1"]);
    assert_eq!(list(&service, names::POOL), [""; 0]);
}

#[test]
fn a_port_that_is_none_is_refused() {
    for port in [0, -1, 65_536] {
        let refusals = refused(&with_ports(&[], &json!([{"port": port}])), &options());
        assert_eq!(refusals, [format!("spec.ports[0].port: \"{port}\" is not accepted: a number from 1 to 65535")]);
    }
}

#[test]
fn policies_say_what_of_them_is_not_served() {
    let notes = |policy: &str| {
        let spec = read_ok(&annotated(&[(names::SSL_CERT, "web"), (names::SSL_POLICY, policy)]));
        spec.notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let old = notes("ELBSecurityPolicy-2016-08");
    assert!(old[0].starts_with("ELBSecurityPolicy-2016-08: the policy also has TLS 1.0, TLS 1.1, suites "), "{old:?}");
    assert_eq!(notes("ELBSecurityPolicy-FS-1-2-Res-2020-10"), [""; 0]);
    let fips = "its versions and suites are served, by a library that is not validated for FIPS 140";
    let policy = "ELBSecurityPolicy-TLS13-1-2-Res-FIPS-2023-04";
    assert_eq!(notes(policy), [format!("{policy}: {fips}")]);
}
