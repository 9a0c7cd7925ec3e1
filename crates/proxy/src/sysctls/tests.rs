use std::time::Duration;

use fairlead_kernel::netns::Namespace;
use fairlead_plan::NodePortAddresses;

use super::*;

fn conntrack(max_per_core: Option<u32>, min: Option<u32>) -> Conntrack {
    Conntrack { max_per_core, min, ..Conntrack::default() }
}

#[test]
fn how_many_flows_the_kernel_remembers() {
    let check = |per_core: Option<u32>, min: Option<u32>, cores: u64, expected: Option<u64>| {
        assert_eq!(most_flows(&conntrack(per_core, min), cores), expected, "{per_core:?} {min:?} {cores}");
    };
    let usual = Conntrack::default();
    check(usual.max_per_core, usual.min, 1, Some(131_072));
    check(usual.max_per_core, usual.min, 4, Some(131_072));
    check(usual.max_per_core, usual.min, 5, Some(163_840));
    check(usual.max_per_core, usual.min, 32, Some(1_048_576));
    check(usual.max_per_core, usual.min, 33, Some(1_048_576));
    check(Some(0), Some(9), 4, None);
    check(None, Some(9), 4, None);
    check(Some(10), None, 4, Some(40));
    check(Some(10), Some(100), 4, Some(100));
    // The bound is for what cores add up to, not for what the administrator asks for at least.
    check(Some(10), Some(2_000_000), 4, Some(2_000_000));
    check(Some(u32::MAX), Some(u32::MAX), u64::MAX, Some(1_048_576));
}

#[test]
fn what_is_set_depends_on_what_is_asked_for() {
    let check = |settings: &Settings, mode: Mode, expected: &[(&str, &str)]| {
        let found = wanted(settings, mode, 2);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(found, expected);
    };
    let usual = [
        ("net.netfilter.nf_conntrack_max", "131072"),
        ("net.netfilter.nf_conntrack_tcp_timeout_established", "86400"),
        ("net.netfilter.nf_conntrack_tcp_timeout_close_wait", "3600"),
    ];
    let localhost = ("net.ipv4.conf.all.route_localnet", "1");
    check(&Settings::default(), Mode::Nftables, &usual);
    check(&Settings::default(), Mode::Iptables, &[&usual[..], &[localhost]].concat());
    check(&Settings { localhost_node_ports: false, ..Settings::default() }, Mode::Iptables, &usual);
    let conntrack = Conntrack {
        max_per_core: None,
        min: None,
        tcp_established: None,
        tcp_close_wait: None,
        tcp_be_liberal: true,
        udp: Some(Duration::from_secs(20)),
        udp_stream: Some(Duration::from_millis(90_500)),
    };
    let loopback = NodePortAddresses::Ranges(vec!["127.0.0.0/8".parse().expect("a range")]);
    let asked = Settings { conntrack, node_port_addresses: Some(loopback), ..Settings::default() };
    let expected = [
        ("net.netfilter.nf_conntrack_tcp_be_liberal", "1"),
        ("net.netfilter.nf_conntrack_udp_timeout", "20"),
        ("net.netfilter.nf_conntrack_udp_timeout_stream", "90"),
        localhost,
    ];
    check(&asked, Mode::Nftables, &expected);
    check(&asked, Mode::Userspace, &expected[..3]);
}

#[test]
fn cores_are_counted_as_the_kernel_lists_them() {
    let check = |list: &str, expected: Option<u64>| assert_eq!(count_cores(list), expected, "{list:?}");
    check("0\n", Some(1));
    check("0-3\n", Some(4));
    check("0-3,8,10-11", Some(7));
    check("", None);
    check("3-1", None);
    check("all", None);
    assert!(cores() >= 1);
}

#[test]
fn a_table_that_is_too_small_is_made_larger() {
    let dir = std::env::temp_dir().join(format!("fairlead-buckets-{}", std::process::id()));
    fs::write(&dir, "100\n").expect("a file");
    assert_eq!(enlarge(&dir, 100), None);
    let change = enlarge(&dir, 101).expect("too small");
    assert_eq!((change.before.as_deref(), change.after), (Some("100"), Ok("101".to_owned())));
    assert_eq!(fs::read_to_string(&dir).expect("the file"), "101");
    fs::remove_file(&dir).expect("the file");
    assert_eq!(enlarge(&dir, 5), None, "a kernel without such a table");
}

#[test]
fn in_a_namespace_parameters_are_set_and_what_cannot_be_is_told() {
    let Ok(namespace) = Namespace::unnamed() else {
        return fairlead_testkit::need::skip("sysctls", "root");
    };
    let conntrack = Conntrack { tcp_be_liberal: true, udp: Some(Duration::from_secs(41)), ..Conntrack::default() };
    // The number of flows is the whole machine's.
    let conntrack = Conntrack { max_per_core: None, ..conntrack };
    let settings = Settings { conntrack, ..Settings::default() };
    let work = || {
        let first = set(&settings, Mode::Iptables);
        let udp = sysctl::read("net.netfilter.nf_conntrack_udp_timeout");
        (first, udp, set(&settings, Mode::Iptables), forwarding())
    };
    let (first, udp, second, forwarding) = namespace.run(work).expect("a namespace to work in");
    let named = |changes: &[Change], name: &str| {
        changes.iter().find(|change| change.name.ends_with(name)).cloned().unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(named(&first, "route_localnet").to_string(), "net.ipv4.conf.all.route_localnet: 1 (was 0)");
    assert_eq!(named(&second, "route_localnet").to_string(), "net.ipv4.conf.all.route_localnet: 1");
    let forward: Vec<&str> = forwarding.iter().map(|problem| problem.name).collect();
    assert!(forward.contains(&"net.ipv4.ip_forward"), "a new namespace forwards nothing: {forward:?}");
    // Where the kernel has no memory of flows there is nothing to set, and that is told.
    match udp {
        Ok(udp) => {
            assert_eq!(udp, "41");
            assert_eq!(named(&second, "be_liberal").after, Ok("1".to_owned()));
        }
        Err(_) => assert!(named(&first, "udp_timeout").after.is_err()),
    }
}

#[test]
fn a_parameter_that_is_not_there_is_told_and_nothing_ends() {
    let change = ensure("net.ipv4.no_such_thing", "1");
    assert_eq!(change.before, None);
    assert!(change.to_string().starts_with("net.ipv4.no_such_thing: cannot be set to 1: No such file"), "{change}");
}
