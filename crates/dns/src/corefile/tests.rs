use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::settings::{Bind, Class, Fallthrough, Key, Listen, Policy, Search, Transport, Upstream};
use fairlead_zone::{Name, PodRecords};

/// Files and variables of a test.
#[derive(Default)]
struct World(HashMap<&'static str, &'static str>);

impl Outside for World {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|&value| value.to_owned())
    }

    fn files(&self, pattern: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        match (self.0.get(pattern), pattern.contains('*')) {
            (Some(&text), _) => Ok(vec![(pattern.to_owned(), text.to_owned())]),
            (None, true) => Ok(Vec::new()),
            (None, false) => Err("there is none".to_owned()),
        }
    }
}

fn read(text: &str) -> Settings {
    parse("Corefile", text, &World::default()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn names(texts: &[&str]) -> Vec<Name> {
    texts.iter().map(|text| name(text)).collect()
}

const KUBEADM: &str = "
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";

#[test]
fn the_corefile_of_kubeadm_is_read() {
    let settings = read(KUBEADM);
    let [server] = settings.servers.as_slice() else { panic!("one block") };
    assert_eq!(server.keys, [Key { zone: Name::root(), port: 53 }]);
    let plugins = &server.plugins;
    assert!(plugins.errors.is_some() && plugins.looping && plugins.loadbalance);
    let health = plugins.health.expect("health");
    assert_eq!((health.listen, health.lameduck), (Listen { address: None, port: 8080 }, Duration::from_secs(5)));
    assert_eq!(plugins.ready.expect("ready").listen.port, 8181);
    assert_eq!(plugins.prometheus, Some(Listen { address: None, port: 9153 }));
    let kubernetes = plugins.kubernetes.as_ref().expect("kubernetes");
    assert_eq!(kubernetes.zones, names(&["cluster.local", "in-addr.arpa", "ip6.arpa"]));
    assert_eq!((kubernetes.pods, kubernetes.ttl), (PodRecords::Insecure, 30));
    assert_eq!(kubernetes.fallthrough, Fallthrough::Zones(names(&["in-addr.arpa", "ip6.arpa"])));
    let forward = &plugins.forward[0];
    assert_eq!((forward.max_concurrent, forward.max_fails), (1000, 2));
    assert_eq!(forward.to, [Upstream::File("/etc/resolv.conf".to_owned())]);
    let cache = plugins.cache.as_ref().expect("cache");
    assert_eq!((cache.success.max_ttl, cache.denial.max_ttl), (30, 30));
    assert_eq!(cache.success.disabled, names(&["cluster.local"]));
    let reload = plugins.reload.expect("reload");
    assert_eq!((reload.interval, reload.jitter), (Duration::from_secs(30), Duration::from_secs(15)));
}

#[test]
fn the_corefile_of_k3s_is_read() {
    let text = "
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/NodeHosts {
      ttl 60
      reload 15s
      fallthrough
    }
    prometheus :9153
    cache 30
    loop
    reload
    loadbalance
    import /etc/coredns/custom/*.override
    forward . /etc/resolv.conf
}
import /etc/coredns/custom/*.server
";
    let custom = World(HashMap::from([
        ("/etc/coredns/custom/*.override", "log\n"),
        ("/etc/coredns/custom/*.server", "example.org:53 {\n  forward . 192.0.2.53\n}\n"),
    ]));
    let settings = parse("Corefile", text, &custom).expect("it is right");
    let [server, own] = settings.servers.as_slice() else { panic!("two blocks") };
    let hosts = server.plugins.hosts.as_ref().expect("hosts");
    assert_eq!(hosts.file.as_deref(), Some("/etc/coredns/NodeHosts"));
    assert_eq!((hosts.ttl, hosts.reload), (60, Duration::from_secs(15)));
    assert_eq!(hosts.fallthrough, Fallthrough::Zones(vec![Name::root()]));
    assert_eq!(server.plugins.log.len(), 1);
    assert_eq!(own.keys, [Key { zone: name("example.org"), port: 53 }]);
    assert_eq!(read(text).servers.len(), 1, "patterns need not match");
}

#[test]
fn the_corefile_of_nodelocal_dns_is_read() {
    let text = "
cluster.local:53 {
    errors
    cache {
            success 9984 30
            denial 9984 5
    }
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . 10.96.0.11 {
            force_tcp
    }
    prometheus :9253
    health 169.254.20.10:8080
    }
in-addr.arpa:53 {
    errors
    cache 30
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . 10.96.0.11 {
            force_tcp
    }
    prometheus :9253
    }
.:53 {
    errors
    cache 30
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . /etc/resolv.conf {
            prefer_udp
    }
    prometheus :9253
    }
";
    let settings = read(text);
    assert_eq!(settings.servers.len(), 3);
    let plugins = &settings.servers[0].plugins;
    let address = |text: &str| Bind::Address(text.parse::<IpAddr>().expect("an address"));
    assert_eq!(plugins.bind, [address("169.254.20.10"), address("10.96.0.10")]);
    let cache = plugins.cache.as_ref().expect("cache");
    assert_eq!((cache.success.max_ttl, cache.denial.max_ttl, cache.denial.capacity), (30, 5, 9984));
    assert_eq!(cache.zones, names(&["cluster.local"]));
    assert_eq!(plugins.forward[0].transport, Transport::ForceTcp);
    assert_eq!(settings.servers[2].plugins.forward[0].transport, Transport::PreferUdp);
}

#[test]
fn keys_name_zones_and_ports() {
    let keys = |text: &str| -> Vec<String> {
        let settings = read(&format!("{text} {{\n errors\n}}"));
        settings.servers[0].keys.iter().map(|key| format!("{}:{}", key.zone, key.port)).collect()
    };
    assert_eq!(keys("."), [".:53"]);
    assert_eq!(keys("Example.ORG:1053"), ["example.org.:1053"]);
    assert_eq!(
        keys("dns://example.org:1053 a.example,\nb.example"),
        ["example.org.:1053", "a.example.:53", "b.example.:53"]
    );
    assert_eq!(keys("10.0.0.0/23:5300"), ["0.0.10.in-addr.arpa.:5300", "1.0.10.in-addr.arpa.:5300"]);
    assert_eq!(keys("fd00::/8"), ["d.f.ip6.arpa.:53"]);
    // One block needs no braces.
    assert_eq!(read("example.org\nerrors\nlog\n").servers[0].plugins.log.len(), 1);
}

#[test]
fn snippets_variables_quotes_and_comments_are_read() {
    let outside = World(HashMap::from([("UP", "192.0.2.1"), ("ZONE", "example.org")]));
    let text = "
(common) {   # what all have
    errors
    cache {$TTL}30 {
        prefetch 5
    }
}
{$ZONE}:{%PORT%}53 { import common
    log . \"{remote} \\\"{name}\\\" # no comment\" {
        class denial error
    }
    forward . {$UP}
}
";
    let settings = parse("Corefile", text, &outside).expect("it is right");
    let plugins = &settings.servers[0].plugins;
    assert_eq!(settings.servers[0].keys[0].zone, name("example.org"));
    let cache = plugins.cache.as_ref().expect("the snippet's");
    assert!(plugins.errors.is_some() && cache.success.max_ttl == 30 && cache.prefetch.is_some());
    assert_eq!(plugins.log[0].format, "{remote} \"{name}\" # no comment");
    assert_eq!(plugins.log[0].classes, [Class::Denial, Class::Error]);
    assert_eq!(plugins.forward[0].to, [Upstream::Address("192.0.2.1:53".parse().expect("an address"))]);
}

#[test]
fn options_of_plugins_are_read() {
    let settings = read(
        ".:53 {
    forward . 192.0.2.1 192.0.2.2:1053 [2001:db8::1]:53 2001:db8::2 {
        except corp.example 10.0.0.0/8
        policy sequential
        health_check 5s no_rec domain example.org
        expire 20s
        max_fails 0
        failover SERVFAIL REFUSED
    }
    autopath @kubernetes
    kubernetes cluster.local {
        namespaces one two
        labels environment in (staging, qa),app=x
        endpoint_pod_names
        ignore empty_service
        startup_timeout 10s
        kubeconfig /etc/kubeconfig
        zonal
    }
    cache 60 example.org {
        serve_stale 1h verify 100ms 30s
        prefetch 10 1m 20%
        servfail 0
        keepttl
    }
    bind lo { except 127.0.0.1 }
    multisocket 4
    health 127.0.0.1:8080
    loadbalance round_robin
    reload 10s 2s
}",
    );
    let plugins = &settings.servers[0].plugins;
    let forward = &plugins.forward[0];
    assert_eq!(forward.to.len(), 4);
    assert_eq!(forward.except, names(&["corp.example", "10.in-addr.arpa"]));
    assert_eq!((forward.policy, forward.max_fails, forward.expire.as_secs()), (Policy::Sequential, 0, 20));
    assert_eq!((forward.health_check.recursion, &forward.health_check.domain), (false, &name("example.org")));
    assert_eq!(forward.failover, [2, 5]);
    assert_eq!(plugins.autopath.as_ref().map(|path| &path.search), Some(&Search::Kubernetes));
    let kubernetes = plugins.kubernetes.as_ref().expect("kubernetes");
    assert_eq!(kubernetes.labels.as_deref(), Some("environment in (staging, qa),app=x"));
    assert!(kubernetes.endpoint_pod_names && kubernetes.ignore_empty_service && kubernetes.zonal);
    let cache = plugins.cache.as_ref().expect("cache");
    let stale = cache.stale.expect("serve_stale");
    assert!(stale.verify && stale.ttl == 30 && stale.limit == Duration::from_millis(100) && cache.keep_ttl);
    assert_eq!(cache.prefetch.map(|prefetch| (prefetch.amount, prefetch.percent)), Some((10, 20)));
    assert_eq!(plugins.sockets, Some(4));
    assert_eq!(plugins.bind.len(), 2);
}

#[test]
fn every_mistake_is_told_with_file_line_and_word() {
    let check = |text: &str, expected: &[&str]| {
        let mistakes = parse("Corefile", text, &World::default()).expect_err(text);
        let told: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
        assert_eq!(told, expected, "{text}");
    };
    check(
        ".:53 {\n forward . 192.0.2.1 {\n  xyz 1\n }\n nonsense\n cache x/y\n}\n",
        &[
            "Corefile:3: forward: unknown option \"xyz\"",
            "Corefile:5: nonsense: no such plugin here",
            "Corefile:6: cache: \"x/y\" is no name of a zone",
        ],
    );
    check(". {\n forward . tls://9.9.9.9\n}", &["Corefile:2: forward: tls:// is not supported; ask by plain DNS"]);
    check(". {\n forward .\n}", &["Corefile:2: forward: wrong number of arguments of \"forward\""]);
    check(". {\n forward . nowhere\n}", &["Corefile:2: forward: \"nowhere\" is no address or file of an upstream"]);
    check("tls://. {\n errors\n}", &["Corefile:1: server block: tls:// is not supported"]);
    check(". {\n cache 0\n}", &["Corefile:2: cache: \"0\" is no time to live: it is at least 1"]);
    check(". {\n loop\n cache\n cache\n}", &["Corefile:4: cache: may be used once in a server block"]);
    check(". {\n rewrite name regex ( x\n}", &["Corefile:2: rewrite: \"(\": error: unclosed group"]);
    check(". {\n rewrite edns0 local set 1 2\n}", &["Corefile:2: rewrite: \"edns0\" is not supported"]);
    check(
        ". {\n kubernetes {\n  pods maybe\n  ttl 4000\n }\n}",
        &[
            "Corefile:3: kubernetes: \"maybe\" is no way to serve Pods: disabled, insecure or verified",
            "Corefile:4: kubernetes: ttl is from 0 to 3600",
        ],
    );
    check(". {\n errors\n", &["Corefile:1: no \"}\" ends this block"]);
    check(". {\n errors\n}\n}\n", &["Corefile:4: \"}\" without a server block"]);
    check(". {\n import nowhere\n}\n", &["Corefile:2: import: \"nowhere\": there is none"]);
    check("(a) {\n import a\n}\n. {\n import a\n}\n", &["Corefile:2: too many imports"]);
    check("", &["Corefile:1: no server block"]);
    check(". {\n errors\n}\n. {\n errors\n}", &["Corefile:4: server block: .:53 is served by another block already"]);
    check(
        ". {\n template IN A {\n  answer \"{{ .Meta }}\"\n }\n}",
        &["Corefile:3: template: \".Meta\" is not supported in a record"],
    );
}

#[test]
fn durations_are_read_as_go_writes_them() {
    for (text, expected) in [
        ("5s", Some(5000)),
        ("1m30s", Some(90_000)),
        ("1.5h", Some(5_400_000)),
        ("300ms", Some(300)),
        ("0", Some(0)),
        ("", None),
        ("5", None),
        ("s", None),
        ("-5s", None),
        ("5x", None),
        ("99999999999999999999h", None),
    ] {
        let millis = value::parse_duration(text).map(|duration| duration.as_millis());
        assert_eq!(millis, expected, "{text}");
    }
}

/// Words a Corefile is made of, in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        ".",
        ".:53",
        "{",
        "}",
        "\n",
        "\n",
        " ",
        "import",
        "(x)",
        "x",
        "forward",
        "cache",
        "hosts",
        "kubernetes",
        "rewrite",
        "name",
        "regex",
        "template",
        "IN",
        "A",
        "ANY",
        "answer",
        "auto",
        "{{ .Name }}",
        "\"",
        "\\",
        "#",
        "192.0.2.1",
        "10.0.0.0/8",
        "5s",
        "30",
        "except",
        "policy",
        "random",
        "log",
        "class",
        "errors",
        "consolidate",
        "(.*)",
        "{$X}",
        "{%",
        "success",
        "bind",
        "lameduck",
        "health",
        ":8080",
        "reload",
        "serve_stale",
        "verify",
        "ttl",
        "1-",
        "stop",
        "continue",
        "/etc/hosts",
        "é",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_text_is_too_odd_to_be_read(text in soup()) {
        let _ = parse("Corefile", &text, &World::default());
    }

    #[test]
    fn no_bytes_are_too_odd_to_be_read(text in any::<String>()) {
        let _ = parse("Corefile", &text, &World::default());
    }
}
