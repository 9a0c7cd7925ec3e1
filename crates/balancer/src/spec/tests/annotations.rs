//! Every annotation with good, bad, empty and boundary values.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::spec::table::TABLE;

/// What one annotation does: what else must be there, which part of the result to look at, and values with what comes of
/// them (`None`: refused).
struct Case {
    name: &'static str,
    with: &'static [(&'static str, &'static str)],
    look: fn(&Spec) -> String,
    values: &'static [(&'static str, Option<&'static str>)],
}

const fn case(
    name: &'static str,
    with: &'static [(&'static str, &'static str)],
    look: fn(&Spec) -> String,
    values: &'static [(&'static str, Option<&'static str>)],
) -> Case {
    Case { name, with, look, values }
}

type Values = &'static [(&'static str, Option<&'static str>)];

const BOOLEAN_INTERNAL: Values = &[
    ("", Some("Public")),
    ("true", Some("Internal")),
    ("false", Some("Public")),
    ("True", None),
    ("1", None),
    ("yes", None),
    (" true", None),
    ("0.0.0.0/0", None),
];
const GCP: Values = &[
    ("", Some("Public")),
    ("Internal", Some("Internal")),
    ("internal", Some("Internal")),
    ("INTERNAL", None),
    ("true", None),
];
const CERT: (&str, &str) = (names::SSL_CERT, "web");
const LOGS: [(&str, &str); 2] = [(names::ACCESS_LOG, "true"), (names::ACCESS_LOG_BUCKET, "my-bucket")];

const HTTP: (&str, &str) = (names::LAYER, "7");
const UNCHECKED: &str = "Kernel 2 6 10 5 None Tcp";

static CASES: &[Case] = &[
    case(names::GCP_TYPE, &[], scheme, GCP),
    case(names::GCP_TYPE_OLD, &[], scheme, GCP),
    case(
        names::AWS_INTERNAL,
        &[],
        scheme,
        &[
            ("", Some("Public")),
            ("true", Some("Internal")),
            ("0.0.0.0/0", Some("Internal")),
            ("false", Some("Public")),
            ("10.0.0.0/8", None),
            ("TRUE", None),
        ],
    ),
    case(
        names::AWS_SCHEME,
        &[],
        scheme,
        &[
            ("", Some("Public")),
            ("internal", Some("Internal")),
            ("internet-facing", Some("Public")),
            ("Internal", None),
        ],
    ),
    case(names::AZURE_INTERNAL, &[], scheme, BOOLEAN_INTERNAL),
    case(names::OPENSTACK_INTERNAL, &[], scheme, BOOLEAN_INTERNAL),
    case(names::BAIDU_INTERNAL, &[], scheme, BOOLEAN_INTERNAL),
    case(names::ORACLE_INTERNAL, &[], scheme, BOOLEAN_INTERNAL),
    case(
        names::ALIBABA_ADDRESS_TYPE,
        &[],
        scheme,
        &[("", Some("Public")), ("intranet", Some("Internal")), ("internet", Some("Public")), ("true", None)],
    ),
    case(
        names::IBM_IP_TYPE,
        &[],
        scheme,
        &[("", Some("Public")), ("private", Some("Internal")), ("public", Some("Public")), ("internal", None)],
    ),
    case(
        names::TENCENT_SUBNET,
        &[],
        scheme,
        &[
            ("", Some("Public")),
            ("subnet-xxxxx", Some("Internal")),
            ("subnet-", None),
            ("xxxxx", None),
            ("subnet-a b", None),
        ],
    ),
    case(
        names::TYPE,
        &[],
        |spec| format!("{:?} {:?}", spec.kind, spec.path),
        &[
            ("", Some("Classic Kernel")),
            ("nlb", Some("Network Kernel")),
            ("NLB", None),
            ("nlb-ip", None),
            ("external", None),
            ("elb", None),
        ],
    ),
    case(
        names::SSL_CERT,
        &[],
        tls,
        &[
            ("", Some("")),
            ("web", Some("80=web 443=web 8443=web")),
            (
                "arn:aws:acm:us-east-1:1:certificate/1-2",
                Some(
                    "80=arn:aws:acm:us-east-1:1:certificate/1-2 443=arn:aws:acm:us-east-1:1:certificate/1-2 8443=arn:aws:acm:us-east-1:1:certificate/1-2",
                ),
            ),
            ("a, b", Some("80=a,b 443=a,b 8443=a,b")),
            (",", None),
            ("a b", None),
            ("a\nb", None),
        ],
    ),
    case(
        names::BACKEND_PROTOCOL,
        &[],
        behind,
        &[
            ("", Some("Kernel Bytes plain")),
            ("tcp", Some("Kernel Bytes plain")),
            ("http", Some("Userspace Http plain")),
            ("https", Some("Userspace Http TLS")),
            ("ssl", Some("Userspace Bytes TLS")),
            ("HTTP", Some("Userspace Http plain")),
            ("h2", None),
            ("(https|http|ssl|tcp)", None),
        ],
    ),
    case(
        names::SSL_PORTS,
        &[CERT],
        tls,
        &[
            ("", Some("80=web 443=web 8443=web")),
            ("*", Some("80=web 443=web 8443=web")),
            ("443,8443", Some("443=web 8443=web")),
            ("https, alt", Some("443=web 8443=web")),
            ("http", Some("80=web")),
            ("443,", Some("443=web")),
            ("444", None),
            ("443,444", None),
            ("secure", None),
            (",", None),
        ],
    ),
    case(
        names::SSL_POLICY,
        &[CERT],
        policy,
        &[
            ("", Some("")),
            ("ELBSecurityPolicy-TLS-1-2-2017-01", Some("ELBSecurityPolicy-TLS-1-2-2017-01")),
            ("ELBSecurityPolicy-2016-08", Some("ELBSecurityPolicy-2016-08")),
            ("ELBSecurityPolicy-TLS13-1-3-2021-06", Some("ELBSecurityPolicy-TLS13-1-3-2021-06")),
            ("ELBSecurityPolicy-2011-08", None),
            ("elbsecuritypolicy-2016-08", None),
            ("TLS-1-2-2017-01", None),
        ],
    ),
    case(
        names::AWS_PROXY_PROTOCOL,
        &[],
        proxy,
        &[
            ("", Some("Kernel (None, false)")),
            ("*", Some("Userspace (Some(V1), false)")),
            ("80", None),
            ("true", None),
            ("**", None),
        ],
    ),
    case(
        names::PROXY_PROTOCOL,
        &[],
        proxy,
        &[
            ("", Some("Kernel (None, false)")),
            ("v1", Some("Userspace (Some(V1), false)")),
            ("v2", Some("Userspace (Some(V2), false)")),
            ("V2", None),
            ("*", None),
        ],
    ),
    case(
        names::ACCEPT_PROXY,
        &[],
        proxy,
        &[
            ("", Some("Kernel (None, false)")),
            ("true", Some("Userspace (None, true)")),
            ("false", Some("Kernel (None, false)")),
            ("v1", None),
        ],
    ),
    case(
        names::ACCESS_LOG,
        &[(names::ACCESS_LOG_BUCKET, "my-bucket")],
        |spec| format!("{:?} {}", spec.path, log(spec)),
        &[
            ("", Some("Kernel ")),
            ("true", Some("Userspace my-bucket||60")),
            ("false", Some("Kernel ")),
            ("enabled", None),
        ],
    ),
    case(
        names::ACCESS_LOG_INTERVAL,
        &LOGS,
        log,
        &[
            ("", Some("my-bucket||60")),
            ("5", Some("my-bucket||5")),
            ("60", Some("my-bucket||60")),
            ("4", None),
            ("6", None),
            ("59", None),
            ("61", None),
            ("5m", None),
        ],
    ),
    case(
        names::ACCESS_LOG_BUCKET,
        &[(names::ACCESS_LOG, "true")],
        log,
        &[
            ("", None),
            ("my-bucket", Some("my-bucket||60")),
            ("abc", Some("abc||60")),
            ("ab", None),
            ("My-Bucket", None),
            ("../etc", None),
            ("-abc", None),
            ("a..b", None),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", None),
        ],
    ),
    case(
        names::ACCESS_LOG_PREFIX,
        &LOGS,
        log,
        &[
            ("", Some("my-bucket||60")),
            ("my-bucket-prefix/prod", Some("my-bucket|my-bucket-prefix/prod|60")),
            ("/prod", None),
            ("prod/", None),
            ("a//b", None),
            ("../../etc", None),
            ("a/./b", None),
            ("a/AWSLogs", None),
            ("a b", None),
        ],
    ),
    case(
        names::DRAINING,
        &[],
        drain,
        &[
            ("", Some("Kernel Some(300)")),
            ("true", Some("Userspace Some(300)")),
            ("false", Some("Kernel None")),
            ("60", None),
        ],
    ),
    case(
        names::DRAINING_TIMEOUT,
        &[(names::DRAINING, "true")],
        drain,
        &[
            ("", Some("Userspace Some(300)")),
            ("1", Some("Userspace Some(1)")),
            ("60", Some("Userspace Some(60)")),
            ("3600", Some("Userspace Some(3600)")),
            ("0", None),
            ("3601", None),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("60s", None),
            ("99999999999999999999", None),
        ],
    ),
    case(
        names::IDLE_TIMEOUT,
        &[],
        idle,
        &[
            ("", Some("Kernel 60")),
            ("60", Some("Userspace 60")),
            ("1", Some("Userspace 1")),
            ("4000", Some("Userspace 4000")),
            ("0", None),
            ("4001", None),
            (" 60", None),
        ],
    ),
    case(
        names::CROSS_ZONE,
        &[],
        zone,
        &[("", Some("Kernel true")), ("true", Some("Kernel true")), ("false", Some("Userspace false")), ("no", None)],
    ),
    case(
        names::TAGS,
        &[],
        tags,
        &[
            ("", Some("{}")),
            ("environment=prod,owner=devops", Some(r#"{"environment": "prod", "owner": "devops"}"#)),
            ("a", Some(r#"{"a": ""}"#)),
            ("a=b=c, d=e ,", Some(r#"{"a": "b=c", "d": "e"}"#)),
            ("=b", None),
            ("a=1,a=2", None),
            (",", None),
            ("a=\u{7}", None),
        ],
    ),
    case(
        names::CHECK_HEALTHY,
        &[],
        check,
        &[
            ("", Some(UNCHECKED)),
            ("2", Some("Userspace 2 6 10 5 None Tcp")),
            ("10", Some("Userspace 10 6 10 5 None Tcp")),
            ("1", None),
            ("11", None),
            ("two", None),
        ],
    ),
    case(
        names::CHECK_UNHEALTHY,
        &[],
        check,
        &[
            ("", Some(UNCHECKED)),
            ("2", Some("Userspace 2 2 10 5 None Tcp")),
            ("10", Some("Userspace 2 10 10 5 None Tcp")),
            ("1", None),
            ("11", None),
        ],
    ),
    case(
        names::CHECK_INTERVAL,
        &[],
        check,
        &[
            ("", Some(UNCHECKED)),
            ("6", Some("Userspace 2 6 6 5 None Tcp")),
            ("300", Some("Userspace 2 6 300 5 None Tcp")),
            ("5", None),
            ("4", None),
            ("301", None),
        ],
    ),
    case(
        names::CHECK_TIMEOUT,
        &[(names::CHECK_INTERVAL, "61")],
        check,
        &[
            ("", Some("Userspace 2 6 61 5 None Tcp")),
            ("2", Some("Userspace 2 6 61 2 None Tcp")),
            ("60", Some("Userspace 2 6 61 60 None Tcp")),
            ("1", None),
            ("61", None),
        ],
    ),
    case(
        names::CHECK_PROTOCOL,
        &[],
        check,
        &[
            ("", Some(UNCHECKED)),
            ("tcp", Some("Userspace 2 6 10 5 None Tcp")),
            ("HTTP", Some(r#"Userspace 2 6 10 5 None Http { tls: false, path: "/" }"#)),
            ("https", Some(r#"Userspace 2 6 10 5 None Http { tls: true, path: "/" }"#)),
            ("grpc", None),
        ],
    ),
    case(
        names::CHECK_PORT,
        &[],
        check,
        &[
            ("", Some(UNCHECKED)),
            ("traffic-port", Some("Userspace 2 6 10 5 None Tcp")),
            ("1", Some("Userspace 2 6 10 5 Some(1) Tcp")),
            ("65535", Some("Userspace 2 6 10 5 Some(65535) Tcp")),
            ("0", None),
            ("65536", None),
            ("http", None),
        ],
    ),
    case(
        names::CHECK_PATH,
        &[(names::CHECK_PROTOCOL, "http")],
        check,
        &[
            ("", Some(r#"Userspace 2 6 10 5 None Http { tls: false, path: "/" }"#)),
            ("/healthz?x=1", Some(r#"Userspace 2 6 10 5 None Http { tls: false, path: "/healthz?x=1" }"#)),
            ("healthz", None),
            ("/a b", None),
            ("/a\r\nHost: x", None),
        ],
    ),
    case(
        names::EXTRA_GROUPS,
        &[],
        sources,
        &[
            ("", Some("Kernel  ")),
            ("sg-53fae93f,sg-42efd82e", Some("Kernel  sg-53fae93f,sg-42efd82e")),
            ("sg-53fae93f,sg-0", None),
            (",", None),
        ],
    ),
    case(
        names::GROUPS,
        &[],
        sources,
        &[("", Some("Kernel  ")), ("sg-42efd82e", Some("Kernel  sg-42efd82e")), ("sg-0", None)],
    ),
    case(
        names::SOURCE_RANGES,
        &[],
        sources,
        &[
            ("", Some("Kernel  ")),
            ("10.0.0.0/24, 192.168.2.1/24", Some("Kernel 10.0.0.0/24,192.168.2.0/24 ")),
            ("fd00::/8", Some("Kernel fd00::/8 ")),
            ("10.0.0.0", None),
            ("10.0.0.0/33", None),
            ("everywhere", None),
        ],
    ),
    case(
        names::BALANCE,
        &[],
        choice,
        &[
            ("", Some("Kernel RoundRobin")),
            ("round-robin", Some("Userspace RoundRobin")),
            ("least", Some("Userspace Least")),
            ("two-choices", Some("Userspace TwoChoices")),
            ("hash", Some("Userspace Hash")),
            ("random", None),
        ],
    ),
    case(
        names::AGE,
        &[HTTP],
        age,
        &[("", Some("None")), ("1", Some("Some(1)")), ("604800", Some("Some(604800)")), ("0", None), ("604801", None)],
    ),
    case(
        names::CONNECT,
        &[HTTP],
        connect,
        &[("", Some("false")), ("true", Some("true")), ("false", Some("false")), ("yes", None)],
    ),
    case(
        names::LAYER,
        &[],
        behind,
        &[
            ("", Some("Kernel Bytes plain")),
            ("4", Some("Kernel Bytes plain")),
            ("7", Some("Userspace Http plain")),
            ("l7", None),
        ],
    ),
];

#[test]
fn every_annotation_does_what_its_rows_say() {
    for Case { name, with, look, values } in CASES {
        for (value, expected) in *values {
            let annotations: Vec<_> = with.iter().chain([&(*name, *value)]).copied().collect();
            match (read(&annotated(&annotations), &options()), expected) {
                (Ok(spec), Some(expected)) => assert_eq!(look(&spec), *expected, "{name}: {value:?}"),
                (Err(refusals), None) => {
                    let [Refusal { what, accepted, .. }] = refusals.as_slice() else {
                        panic!("{name}: {value:?}: {refusals:?}")
                    };
                    assert_eq!(what, name, "{value:?}");
                    assert!(!accepted.is_empty(), "{name}: {value:?}");
                }
                (Ok(spec), None) => panic!("{name}: {value:?} was taken for {}", look(&spec)),
                (Err(refusals), Some(_)) => panic!("{name}: {value:?} was refused: {refusals:?}"),
            }
        }
    }
}

#[test]
fn every_annotation_has_rows_with_a_good_a_bad_and_an_empty_value() {
    let in_table: BTreeSet<_> = TABLE.iter().map(|row| row.name).collect();
    let in_cases: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(in_table, in_cases);
    for case in CASES {
        assert!(case.values.iter().any(|(value, _)| value.is_empty()), "{} has no empty value", case.name);
        assert!(case.values.iter().any(|(value, expected)| !value.is_empty() && expected.is_some()), "{}", case.name);
        assert!(case.values.iter().any(|(_, expected)| expected.is_none()), "{} has no bad value", case.name);
    }
}

proptest! {
    /// Whatever annotations say, there is an answer that fits into Events, and the kernel carries what needs nothing more.
    #[test]
    fn any_text_is_read_or_refused(texts in prop::collection::vec((0..TABLE.len(), ".{0,40}"), 0..6), number in any::<i32>()) {
        let annotations: Vec<_> = texts.iter().map(|(row, text)| (TABLE[*row].name, text.as_str())).collect();
        let mut service = annotated(&annotations);
        service.spec.ports[1].port = number;
        match read(&service, &options()) {
            Ok(spec) => {
                prop_assert_eq!(spec.path == Path::Kernel, spec.needs.is_empty());
                prop_assert!(spec.facts(&service).iter().all(|fact| !fact.label.is_empty()));
            }
            Err(refusals) => {
                prop_assert!(!refusals.is_empty());
                prop_assert!(refusals.iter().all(|refusal| refusal.to_string().len() < 1024));
            }
        }
    }
}

#[test]
fn all_mistakes_are_told_at_once_and_fit_into_an_event() {
    let long = "x".repeat(100_000);
    let bad: Vec<_> = TABLE.iter().map(|row| (row.name, long.as_str())).collect();
    let refusals = read(&annotated(&bad), &options()).expect_err("all are bad");
    let whats: BTreeSet<_> = refusals.iter().map(|refusal| refusal.what.as_str()).collect();
    for row in TABLE {
        assert!(whats.contains(row.name), "{} is not refused", row.name);
    }
    for refusal in refusals {
        assert!(refusal.to_string().len() < 1024, "{refusal}");
    }
}
