//! The rules of network load balancers, as the table of the documents has them.

use super::*;

fn rules(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut service = web();
    service["metadata"]["annotations"] = json!({names::TYPE: "nlb"});
    change(&mut service);
    let spec = read_ok(&serde_json::from_value(service).expect("a Service"));
    let show = |rule: Rule| {
        let ranges: Vec<_> = rule.ranges.iter().map(ToString::to_string).chain(rule.groups).collect();
        format!("{:?} {} {}", rule.carries, ranges.join(","), rule.description)
    };
    spec.rules(&["10.0.0.0/16".parse().expect("a range")], "web").into_iter().map(show).collect()
}

#[test]
fn row_136_the_three_rules() {
    let expected = [
        "Ports(Tcp, [30080, 30443, 30843]) 10.0.0.0/16 kubernetes.io/rule/nlb/health=web",
        "Ports(Tcp, [30080, 30443, 30843]) 0.0.0.0/0 kubernetes.io/rule/nlb/client=web",
        "Icmp(3, 4) 0.0.0.0/0 kubernetes.io/rule/nlb/mtu=web",
    ];
    assert_eq!(rules(|_| {}), expected);
}

#[test]
fn row_136_local_traffic_policy_is_checked_on_its_own_port_and_ranges_limit_clients() {
    let found = rules(|service| {
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        service["spec"]["healthCheckNodePort"] = json!(31_000);
        service["spec"]["loadBalancerSourceRanges"] = json!(["143.231.0.0/16"]);
    });
    let expected = [
        "Ports(Tcp, [31000]) 10.0.0.0/16 kubernetes.io/rule/nlb/health=web",
        "Ports(Tcp, [30080, 30443, 30843]) 143.231.0.0/16 kubernetes.io/rule/nlb/client=web",
        "Icmp(3, 4) 143.231.0.0/16 kubernetes.io/rule/nlb/mtu=web",
    ];
    assert_eq!(found, expected);
}

#[test]
fn both_families_groups_and_other_protocols_have_their_rules() {
    let found = rules(|service| {
        service["spec"]["ipFamilies"] = json!(["IPv6", "IPv4"]);
        service["spec"]["ports"] = json!([{"port": 53, "protocol": "UDP", "nodePort": 30_053}]);
    });
    let expected = [
        "Ports(Udp, [30053]) ::/0,0.0.0.0/0 kubernetes.io/rule/nlb/client=web",
        "Icmp(3, 4) 0.0.0.0/0 kubernetes.io/rule/nlb/mtu=web",
        "Icmpv6(2, 0) ::/0 kubernetes.io/rule/nlb/mtu=web",
    ];
    assert_eq!(found, expected);
    let found = rules(|service| service["metadata"]["annotations"][names::EXTRA_GROUPS] = json!("sg-53fae93f"));
    assert_eq!(
        found[1..],
        [
            "Ports(Tcp, [30080, 30443, 30843]) sg-53fae93f kubernetes.io/rule/nlb/client=web",
            "Icmp(3, 4) sg-53fae93f kubernetes.io/rule/nlb/mtu=web",
        ]
    );
}

#[test]
fn row_139_without_node_ports_nothing_is_opened_on_nodes() {
    let found = rules(|service| {
        for port in service["spec"]["ports"].as_array_mut().expect("ports") {
            port["nodePort"] = json!(0);
        }
    });
    assert_eq!(found, ["Icmp(3, 4) 0.0.0.0/0 kubernetes.io/rule/nlb/mtu=web"]);
}

#[test]
fn a_classic_load_balancer_has_no_rules() {
    assert_eq!(rules(|service| service["metadata"]["annotations"] = json!({})), [""; 0]);
}
