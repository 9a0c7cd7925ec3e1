use std::net::SocketAddr;

use fairlead_proxy::Mode;

use super::facts::{Chain, DataDir, Facts, Link, Listener, NodePort, Table};
use super::look::open_files;
use super::{State, rules, show};
use crate::paint::Paint;

/// A machine with nothing wrong.
fn well() -> Facts {
    Facts {
        root: true,
        kernel: "6.1".into(),
        modes: vec![(Mode::Nftables, Ok(())), (Mode::Ipvs, Err("no ip_vs".into()))],
        sctp: true,
        controllers: vec!["cpu".into(), "memory".into()],
        parameters: [
            ("net.ipv4.ip_forward", "1".to_owned()),
            ("net.ipv6.conf.all.forwarding", "1".to_owned()),
            ("net.ipv6.conf.all.disable_ipv6", "0".to_owned()),
            ("net.ipv4.ip_local_port_range", "32768\t60999".to_owned()),
            ("net.netfilter.nf_conntrack_max", "262144".to_owned()),
            ("net.netfilter.nf_conntrack_count", "12".to_owned()),
            ("net.ipv4.conf.all.rp_filter", "1".to_owned()),
            ("net.ipv4.conf.all.route_localnet", "0".to_owned()),
        ]
        .into(),
        nameservers: vec!["192.0.2.53".parse().unwrap()],
        links: vec![link("eth0", "", 1500, true), link("fl1234", "veth", 1500, false)],
        data_dir: DataDir { path: "/var/lib/x".into(), mode: Some(0o700), free: Some(9 << 30), written: Some(1000) },
        open_files: Some(65536),
        now: 1000,
        node_ports: Some(vec![NodePort { protocol: "TCP".into(), port: 30080, service: "default/web".into() }]),
        ..Facts::default()
    }
}

fn link(name: &str, kind: &str, mtu: u32, outward: bool) -> Link {
    Link { name: name.into(), kind: kind.into(), mtu, outward }
}

fn table(family: &'static str, name: &str, chains: &[(&str, Option<&'static str>, bool)]) -> Table {
    let chain = |(name, hook, drops): &(&str, Option<&'static str>, bool)| Chain {
        name: (*name).to_owned(),
        hook: *hook,
        drops: *drops,
    };
    Table { family, name: name.into(), chains: chains.iter().map(chain).collect() }
}

fn listener(protocol: &'static str, address: &str, program: &str) -> Listener {
    Listener { protocol, address: address.parse::<SocketAddr>().unwrap(), program: Some((7, program.to_owned())) }
}

#[test]
fn nothing_is_said_against_a_machine_that_is_well() {
    let checks = rules::check(&well());
    let wrong: Vec<_> = checks.iter().filter(|check| check.state > State::Note).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(show::text(&checks, Paint::NEVER).ends_with("Nothing stands in the way.\n"));
}

/// One thing is changed on a machine that is well: one thing is found, as grave as it should be.
#[track_caller]
fn check(change: impl FnOnce(&mut Facts), state: State, words: &str) {
    let mut facts = well();
    change(&mut facts);
    let wrong: Vec<_> = rules::check(&facts).into_iter().filter(|check| check.state > State::Note).collect();
    let [only] = &wrong[..] else { panic!("{words}: not one finding: {wrong:#?}") };
    assert_eq!(only.state, state, "{only:?}");
    assert!(only.finding.contains(words), "{:?} does not say {words:?}", only.finding);
    assert!(!only.remedy.is_empty(), "{only:?} has no remedy");
}

fn set(facts: &mut Facts, name: &'static str, value: &str) {
    facts.parameters.insert(name, value.to_owned());
}

#[test]
fn parameters_that_hurt_services_are_found() {
    check(|it| set(it, "net.ipv4.ip_forward", "0"), State::Warn, "ip_forward is 0: IPv4");
    check(|it| set(it, "net.ipv6.conf.all.forwarding", "0"), State::Warn, "forwarding is 0: IPv6");
    check(|it| it.links.push(link("eth1", "", 1500, true)), State::Warn, "rp_filter");
    check(|it| set(it, "net.netfilter.nf_conntrack_count", "250000"), State::Bad, "250000 flows of 262144");
    check(|it| set(it, "net.ipv4.conf.all.route_localnet", "1"), State::Warn, "route_localnet");
    check(|it| set(it, "net.ipv4.ip_local_port_range", "1024 60999"), State::Warn, "30000-32767 are node ports");
    let bridged = |it: &mut Facts| {
        it.links.push(link("cni0", "bridge", 1500, false));
        set(it, "net.bridge.bridge-nf-call-iptables", "0");
    };
    check(bridged, State::Warn, "cni0");
}

#[test]
fn a_machine_without_ipv6_need_not_pass_it_on() {
    let mut facts = well();
    set(&mut facts, "net.ipv6.conf.all.forwarding", "0");
    set(&mut facts, "net.ipv6.conf.all.disable_ipv6", "1");
    assert!(rules::check(&facts).iter().all(|check| check.state <= State::Note));
}

#[test]
fn reserved_ports_are_not_given_to_clients() {
    let mut facts = well();
    set(&mut facts, "net.ipv4.ip_local_port_range", "1024 60999");
    set(&mut facts, "net.ipv4.ip_local_reserved_ports", "8080,30000-32767");
    assert!(rules::check(&facts).iter().all(|check| check.state <= State::Note));
}

#[test]
fn a_kernel_without_modes_is_found() {
    let only_iptables = |it: &mut Facts| {
        it.modes = vec![(Mode::Nftables, Err("no nf_tables".into())), (Mode::Iptables, Ok(()))];
    };
    check(only_iptables, State::Warn, "uses mode iptables instead");
    check(|it| it.modes = vec![(Mode::Nftables, Err("no nf_tables".into()))], State::Bad, "no nf_tables");
}

#[test]
fn others_who_do_the_same_or_drop_packets_are_found() {
    check(|it| it.tables.push(table("ip", "kube-proxy", &[])), State::Warn, "kube-proxy");
    check(|it| it.tables.push(table("ip", "nat", &[("KUBE-SVC-ABC", None, false)])), State::Warn, "kube-proxy");
    check(|it| it.tables.push(table("ip", "nat", &[("CILIUM_PRE", None, false)])), State::Warn, "Cilium");
    check(|it| it.programs.push((9, "kube-proxy".into())), State::Warn, "kube-proxy runs here (pid 9)");
    check(|it| it.programs.push((9, "speaker".into())), State::Warn, "speaker runs here");
    check(|it| it.legacy.push(("ip", "nat".into())), State::Warn, "old interface of iptables are here (ip nat)");
    check(|it| it.legacy.push(("ip6", "filter".into())), State::Warn, "(ip6 filter)");
    let wall = [("FORWARD", Some("forward"), true)];
    check(|it| it.tables.push(table("ip", "filter", &wall)), State::Warn, "ip filter FORWARD drops");
    let door = [("in", Some("input"), true)];
    check(|it| it.tables.push(table("inet", "wall", &door)), State::Warn, "inet wall in drops");
}

#[test]
fn docker_alone_is_no_reason_to_worry() {
    let mut facts = well();
    facts.tables.push(table("ip", "nat", &[("DOCKER", None, false)]));
    assert!(rules::check(&facts).iter().all(|check| check.state <= State::Note));
}

#[test]
fn ports_that_are_taken_are_found_with_who_has_them() {
    check(
        |it| it.listeners.push(listener("TCP", "0.0.0.0:6443", "k3s")),
        State::Bad,
        "6443, for the API, is taken by k3s",
    );
    check(|it| it.listeners.push(listener("UDP", "0.0.0.0:53", "dnsmasq")), State::Bad, "dnsmasq");
    check(|it| it.listeners.push(listener("TCP", "[::]:30080", "nginx")), State::Bad, "default/web");
}

/// Somebody who listens and whose program cannot be seen.
fn stranger(protocol: &'static str, address: &str) -> Listener {
    Listener { program: None, ..listener(protocol, address, "") }
}

#[test]
fn who_cannot_be_seen_may_be_one_of_ours() {
    for (protocol, port) in [("TCP", 6443), ("TCP", 10249), ("TCP", 10253), ("TCP", 10256), ("UDP", 53), ("TCP", 30080)]
    {
        let words = format!("port {port}");
        for root in [true, false] {
            let mut facts = well();
            facts.root = root;
            facts.listeners.push(stranger(protocol, &format!("0.0.0.0:{port}")));
            let checks = rules::check(&facts);
            let found = checks.iter().find(|check| check.area == "Ports" && check.finding.contains(&words));
            let found = found.unwrap_or_else(|| panic!("{words}: {checks:#?}"));
            assert_eq!(found.state, State::Unknown, "{found:?}");
            assert!(found.finding.contains("may be Fairlead"), "{found:?}");
            let remedy = if root { format!("ss -lnp 'sport = :{port}'") } else { "sudo fairlead doctor".to_owned() };
            assert!(found.remedy[0].starts_with(&remedy), "{found:?}");
        }
    }
}

#[test]
fn the_api_of_another_cluster_is_no_reason_to_stop_it() {
    let mut facts = well();
    facts.listeners = vec![listener("TCP", "[::]:6443", "kube-apiserver")];
    let checks = rules::check(&facts);
    assert!(checks.iter().all(|check| check.state <= State::Note), "{checks:#?}");
    let note = checks.iter().find(|check| check.finding.contains("taken by kube-apiserver")).unwrap();
    assert_eq!((note.state, note.remedy[0].contains("--secure-port")), (State::Note, true), "{note:?}");
    check(
        |it| it.listeners.push(listener("TCP", "[::]:10249", "kube-apiserver")),
        State::Bad,
        "taken by kube-apiserver",
    );
}

#[test]
fn ports_of_our_own_or_elsewhere_are_fine() {
    let mut facts = well();
    facts.listeners = vec![
        listener("TCP", "127.0.0.1:6443", "fairlead"),
        listener("UDP", "127.0.0.53:53", "systemd-resolve"),
        listener("TCP", "127.0.0.1:30080", "python3"),
        listener("UDP", "0.0.0.0:30080", "python3"),
        listener("TCP", "192.0.2.1:10249", "python3"),
    ];
    assert!(rules::check(&facts).iter().all(|check| check.state <= State::Note));
}

#[test]
fn the_rest_of_a_machine_matters_too() {
    check(|it| it.controllers.clear(), State::Warn, "no cpu and memory");
    check(|it| it.nameservers.clear(), State::Warn, "resolv.conf");
    check(|it| it.links[0].mtu = 1400, State::Warn, "eth0 takes 1400");
    check(|it| it.open_files = Some(1024), State::Warn, "1024 files");
    check(|it| it.data_dir.mode = Some(0o755), State::Bad, "755");
    check(|it| it.data_dir.free = Some(3 << 20), State::Warn, "3 MiB");
    check(|it| it.data_dir.written = Some(5000), State::Bad, "4000 s");
}

#[test]
fn what_only_root_sees_is_said_to_be_unknown() {
    let mut facts = well();
    facts.root = false;
    facts.modes.clear();
    let unknown: Vec<_> = rules::check(&facts).into_iter().filter(|check| check.state == State::Unknown).collect();
    assert_eq!(unknown.len(), 2, "{unknown:#?}");
    assert!(unknown.iter().all(|check| check.remedy == ["sudo fairlead doctor"]));
}

#[test]
fn open_files_are_as_many_as_a_process_may_ask_for() {
    let limits = |soft: &str, hard: &str| {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units\n\
             Max processes             7                    9                    processes\n\
             Max open files            {soft:<20} {hard:<20} files\n"
        )
    };
    assert_eq!(open_files(&limits("1024", "1048576")), Some(1_048_576));
    assert_eq!(open_files(&limits("1024", "4096")), Some(4096));
    assert_eq!(open_files(&limits("1024", "unlimited")), None);
    assert_eq!(open_files(""), None);
}

#[test]
fn names_of_programs_do_not_move_the_terminal() {
    let mut facts = well();
    facts.listeners.push(listener("TCP", "0.0.0.0:6443", "\u{1b}]0;mine\u{7}\n✓"));
    let text = show::text(&rules::check(&facts), Paint::NEVER);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.contains("is taken by ^[]0;mine\\u{7} ✓ (pid 7)"), "{text}");
}

#[test]
fn marks_have_a_colour_where_somebody_looks() {
    let mut facts = well();
    facts.nameservers.clear();
    let text = show::text(&rules::check(&facts), Paint::ALWAYS);
    for words in [
        "\u{1b}[1mKernel\u{1b}[0m\n  \u{1b}[32m✓\u{1b}[0m ",
        "  \u{1b}[33m!\u{1b}[0m /etc/resolv.conf",
        "\n\u{1b}[33m1 warning.\u{1b}[0m\n",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text:?}");
    }
}
