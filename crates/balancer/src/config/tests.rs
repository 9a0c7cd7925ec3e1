use super::{Bucket, Config, Limits};
use crate::spec::Scheme;
use crate::tls::Place;

#[test]
fn every_key_is_read() {
    let config = Config::parse(
        "pools:
- name: lan
  addresses: [192.0.2.0/28, 2001:db8::10-2001:db8::1f]
  namespaces: [default]
  serviceSelector: app in (web, api)
  autoAssign: false
  avoidBuggyIPs: false
  priority: 5
- name: inside
  addresses: [10.9.0.0/24]
  scheme: internal
securityGroups:
  office: [198.51.100.0/24]
certificates:
  arn:aws:acm:us-east-1:123456789012:certificate/12345678:
    secret: default/tls
  plain:
    certificate: cert.pem
    key: key.pem
backendCA: ca.pem
buckets:
  logs: {directory: logs}
  far: {s3: 'https://s3.example.com', region: eu-central-1, credentials: keys}
trustedFronts: [203.0.113.0/24]
vpcRanges: [10.0.0.0/8]
default: false
interfaces: [eth0]
heartbeats: {interval: 1s, limit: 2500ms, alone: 20s}
limits: {connections: 1000, backendConnections: 900, buffers: 8388608, leastRate: 0}
",
    )
    .unwrap();
    let [lan, inside] = &config.pools[..] else { panic!("{:?}", config.pools) };
    assert_eq!((lan.ranges.len(), lan.auto_assign, lan.avoid_buggy, lan.priority), (2, false, false, 5));
    assert_eq!((lan.namespaces.len(), lan.selectors.len(), lan.scheme), (1, 1, Scheme::Public));
    assert_eq!((inside.scheme, inside.auto_assign, inside.avoid_buggy), (Scheme::Internal, true, true));
    assert_eq!(config.security_groups["office"].len(), 1);
    assert!(matches!(&config.certificates["plain"], Place::Files { .. }));
    assert!(config.certificates.values().any(|one| matches!(one, Place::Secret { name, .. } if name == "tls")));
    assert!(matches!(&config.buckets["far"], Bucket::S3 { region, .. } if region == "eu-central-1"));
    assert_eq!((config.backend_ca.is_some(), config.default), (true, false));
    let limits = Limits { connections: 1000, backend_connections: 900, buffers: 8 << 20, least_rate: 0 };
    assert_eq!(config.limits, limits);
    assert_eq!((config.trusted_fronts.len(), config.vpc_ranges.len(), config.interfaces.len()), (1, 1, 1));
    let times = config.heartbeats;
    assert_eq!([times.interval, times.limit, times.alone].map(|time| time.as_millis()), [1000, 2500, 20_000]);
}

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(Config::parse("").unwrap(), Config::default());
    assert_eq!(Config::parse("# nothing\n\n").unwrap(), Config::default());
    assert_eq!(Config::parse("default: true\n").unwrap(), Config::default());
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let check = |text: &str, expected: &[&str]| {
        let error = Config::parse(text).unwrap_err().to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error:?} should say {expected:?}");
    };
    check("default: true\npool: []\n", &["line 2: ", "unknown key `pool`"]);
    check("pools:\n- name: a\n  addresses: [192.0.2.0/28]\n  colour: red\n", &["line 4: ", "unknown key `colour`"]);
    check("pools:\n- name: a\n  addresses:\n  - 192.0.2.0/28\n  - 192.0.2.300\n", &["line 5: ", "192.0.2.300"]);
    check("pools:\n- name: a\n  addresses: [127.0.0.1]\n", &["line 3: ", "loopback"]);
    check("pools:\n- name: a\n  addresses: []\n", &["line 3: ", "a pool needs addresses"]);
    check("pools:\n- name: a\n", &["line 2: ", "addresses"]);
    check("pools:\n- name: a\n  addresses: [192.0.2.1]\n  scheme: private\n", &["line 4: ", "private"]);
    check("pools:\n- name: a\n  addresses: [192.0.2.1]\n  priority: -1\n", &["line 4: "]);
    check("pools:\n- name: a\n  addresses: [192.0.2.1]\n  serviceSelector: 'a in b'\n", &["line 4: "]);
    check("securityGroups:\n  a: [everybody]\n", &["line 2: ", "everybody"]);
    check("certificates:\n  a: {secret: /tls}\n", &["line 2: ", "NAMESPACE/NAME"]);
    check("certificates:\n  a: {certificate: x}\n", &["line 2: ", "`key: FILE`"]);
    check("buckets:\n  a: {s3: ftp://x, credentials: y}\n", &["line 2: ", "http://"]);
    check("buckets:\n  a: {}\n", &["line 2: ", "directory"]);
    check("heartbeats: {interval: 1ms}\n", &["line 1: ", "from 50ms to 30s"]);
    check("heartbeats: {alone: 5m}\n", &["line 1: ", "from 50ms to 30s"]);
    check("heartbeats: {interval: 1s}\n", &["line 1: ", "at least two intervals"]);
    check("heartbeats: {interval: 1s, limit: 3s, alone: 900ms}\n", &["line 1: ", "not shorter than the interval"]);
    check("limits: {buffers: 1}\n", &["line 1: ", "at least 4194304 bytes"]);
    check("limits: {connections: 0}\n", &["line 1: ", "at least 1"]);
    check("heartbeats: {interval: soon}\n", &["line 1: ", "soon"]);
    check("heartbeats: {beat: 1s}\n", &["line 1: ", "unknown key `beat`"]);
    check("default: perhaps\n", &["line 1: "]);
    check(
        "pools:\n- {name: a, addresses: [192.0.2.0/28]}\n- {name: b, addresses: [192.0.2.7]}\n",
        &["pools \"a\" and \"b\" have addresses in common"],
    );
    check("pools:\n- {name: a, addresses: [192.0.2.0/28]}\n- {name: a, addresses: [192.0.3.7]}\n", &["two pools"]);
}

#[test]
fn flags_make_pools() {
    let check = |flags: &[(&str, Scheme)], expected: Result<&[(&str, usize)], &str>| {
        let mut config = Config::default();
        let added = flags.iter().try_for_each(|(text, scheme)| config.add_pool(text, *scheme));
        match expected {
            Ok(pools) => {
                added.unwrap();
                let found: Vec<(&str, usize)> =
                    config.pools.iter().map(|pool| (pool.name.as_str(), pool.ranges.len())).collect();
                assert_eq!(found, pools, "{flags:?}");
            }
            Err(why) => assert!(added.unwrap_err().to_string().contains(why), "{flags:?}"),
        }
    };
    let (public, internal) = (Scheme::Public, Scheme::Internal);
    check(&[("192.0.2.0/28", public)], Ok(&[("default", 1)]));
    check(&[("192.0.2.0/28,2001:db8::/120", public), ("192.0.3.1", public)], Ok(&[("default", 3)]));
    check(&[("lan=192.0.2.0/28", public), ("10.0.0.1", internal)], Ok(&[("lan", 1), ("internal", 1)]));
    check(&[("=192.0.2.0/28", public)], Err("want [NAME=]RANGE"));
    check(&[("lan=", public)], Err("no range"));
    check(&[("a=192.0.2.0/28", public), ("b=192.0.2.1", public)], Err("in common"));
    check(&[("a=192.0.2.0/28", public), ("a=192.0.3.1", internal)], Err("two pools"));
}
