//! Pods on their way out, in a network namespace of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use fairlead_kernel::netns::Namespace;
use fairlead_pods::outbound;
use fairlead_testkit::need;
use ipnet::IpNet;

fn ranges(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn what_leaves_the_cluster_is_masqueraded_and_the_table_can_be_removed() {
    let test = "what_leaves_the_cluster_is_masqueraded_and_the_table_can_be_removed";
    if !["root", "nft"].iter().all(|what| need::need(test, what)) {
        return;
    }
    let namespace = Namespace::unnamed().unwrap();
    let listed = || {
        let output = namespace.run(|| Command::new("nft").args(["list", "ruleset"]).output()).unwrap().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let cluster = ranges(&["10.244.0.0/16", "fd00:244::/48"]);
    let set = |own: &[&str]| namespace.run(|| outbound::set(&ranges(own), &cluster)).unwrap().unwrap();
    set(&["10.244.3.0/24", "fd00:244:0:3::/64"]);
    set(&["10.244.4.0/24", "fd00:244:0:4::/64"]);
    let text = listed();
    for rule in [
        "ip saddr 10.244.4.0/24 ip daddr 10.244.0.0/16 accept",
        "ip saddr 10.244.4.0/24 masquerade",
        "ip6 saddr fd00:244:0:4::/64 ip6 daddr fd00:244::/48 accept",
        "ip6 saddr fd00:244:0:4::/64 masquerade",
    ] {
        assert!(text.contains(rule), "no {rule:?} in {text}");
    }
    assert!(!text.contains("10.244.3.0"), "{text}");
    set(&["10.244.4.0/24"]);
    assert!(!listed().contains("ip6"), "{}", listed());
    assert_eq!(namespace.run(outbound::remove).unwrap().unwrap(), ["table ip fairlead-pods of nftables"]);
    assert_eq!(listed(), "");
}
