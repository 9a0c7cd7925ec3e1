//! What others do to what is ours, and what we do to what is theirs: the first is put right, the second does not happen.

use fairlead_api::view::Service;
use fairlead_proxy::Mode;

use crate::Checks;
use crate::cluster::{Cluster, VIP, exposed, service, settings};
use crate::lab::{Lab, NODE, at, each};

pub(crate) const CHECKS: Checks = &[
    ("a virtual server somebody deletes comes back", true, |lab| {
        broken(lab, &format!("ipvsadm -D -t {VIP}:80"), "10.96.0.10:80/TCP is gone");
    }),
    ("all virtual servers come back", false, |lab| broken(lab, "ipvsadm -C", "is gone")),
    ("an endpoint somebody deletes comes back", false, |lab| {
        broken(lab, &format!("ipvsadm -d -t {VIP}:80 -r 10.50.1.11:8080"), "10.50.1.11:8080");
    }),
    ("an endpoint somebody adds goes", false, |lab| {
        broken(lab, &format!("ipvsadm -a -t {VIP}:80 -r 10.50.9.9:8080 -m"), "10.50.9.9:8080");
    }),
    ("a scheduler somebody changes is put right", false, |lab| {
        broken(lab, &format!("ipvsadm -E -t {VIP}:80 -s sh"), "does not balance");
    }),
    ("an address somebody deletes comes back", true, |lab| {
        broken(lab, &format!("ip addr del {VIP}/32 dev fl-ipvs0"), "lost the address 10.96.0.10");
    }),
    ("the link somebody deletes comes back", false, |lab| broken(lab, "ip link del fl-ipvs0", "fl-ipvs0 is gone")),
    ("tables somebody flushes come back", true, |lab| broken(lab, "nft flush ruleset", "fairlead-ipvs")),
    ("a rule somebody deletes comes back", false, |lab| {
        broken(lab, "nft flush chain ip fairlead-ipvs services", "services");
    }),
    ("cleanup leaves nothing", true, |lab| {
        let before = lab.inventory();
        let cluster = Cluster::ipvs(lab, service(exposed), "p1 p2");
        lab.tcp("out", at(VIP, 80)).from();
        assert_ne!(lab.inventory(), before);
        drop(cluster);
        let removed = lab.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap();
        assert_eq!(removed.len(), 4, "{removed:?}");
        assert_eq!(lab.inventory(), before);
        assert_eq!(lab.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap(), Vec::<String>::new());
    }),
    ("virtual servers, addresses and tables of others are left alone", true, |lab| {
        lab.tool("ipvsadm -A -t 192.0.2.1:80 -s wlc; ipvsadm -a -t 192.0.2.1:80 -r 10.50.1.11:8080 -m");
        lab.tool("ipvsadm -A -f 7 -s rr; nft add table ip other; ip link add other type dummy; ip addr add 192.0.2.1 dev other");
        let theirs = || {
            let text = lab.tool("ipvsadm -Sn; nft list table ip other; ip -o addr show dev other");
            let kept = text
                .lines()
                .filter(|line| line.contains("192.0.2.1") || line.contains("-f 7") || line.contains("other"));
            kept.map(str::to_owned).collect::<Vec<_>>()
        };
        let before = theirs();
        let mut cluster = Cluster::ipvs(lab, service(exposed), "p1 p2");
        cluster.pods("p2");
        assert_eq!(cluster.repair(), None);
        let cluster = cluster.restart(Mode::Ipvs);
        assert_eq!(theirs(), before);
        drop(cluster);
        lab.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap();
        assert_eq!(theirs(), before);
        lab.tool("ipvsadm -C; nft delete table ip other; ip link del other");
    }),
    ("virtual servers in excluded ranges are left alone, even on our link", false, |lab| {
        let settings = settings(|settings| settings.ipvs.exclude = vec!["10.96.0.10/32".parse().unwrap()]);
        let mut cluster = Cluster::with(lab, Mode::Ipvs, &settings, service(|_| {}), "p1");
        lab.tool(&format!("ipvsadm -A -t {VIP}:4444 -s rr"));
        cluster.load();
        assert!(lab.tool("ipvsadm -Ln").contains(&format!("{VIP}:4444")));
    }),
    ("another mode takes over, and this one back", false, |lab| {
        let cluster = Cluster::ipvs(lab, service(exposed), "p1 p2");
        lab.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap();
        let cluster = cluster.restart(Mode::Nftables);
        assert_eq!(lab.spread("out", at(NODE[0], 30080), 12).len(), 2);
        lab.node.run(|| fairlead_proxy::cleanup().unwrap()).unwrap();
        let _cluster = cluster.restart(Mode::Ipvs);
        assert_eq!(lab.spread("out", at(NODE[0], 30080), 4), each(&[("p1", 2), ("p2", 2)]));
    }),
    ("kernel parameters are set, and ARP is strict if asked", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|_| {}), "p1");
        let read = |name: &str| lab.tool(&format!("cat /proc/sys/net/ipv4/{name}")).trim().to_owned();
        let all =
            ["vs/conntrack", "vs/expire_nodest_conn", "vs/expire_quiescent_template", "vs/conn_reuse_mode"].map(read);
        assert_eq!(all, ["1", "1", "1", "1"]);
        assert_eq!([read("conf/all/arp_ignore"), read("conf/all/arp_announce")], ["0", "0"]);
        let settings = settings(|settings| settings.ipvs.strict_arp = true);
        let _cluster = Cluster::with(lab, Mode::Ipvs, &settings, service(|_| {}), "p1");
        assert_eq!([read("conf/all/arp_ignore"), read("conf/all/arp_announce")], ["1", "2"]);
        lab.tool("cd /proc/sys/net/ipv4/conf/all; echo 0 >arp_ignore; echo 0 >arp_announce");
    }),
];

/// Somebody breaks something: it is noticed, said, and mended.
fn broken(lab: &Lab, how: &str, said: &str) {
    let several = |service: &mut Service| service.spec.cluster_ips = vec![VIP.to_owned()];
    let mut cluster = Cluster::ipvs(lab, service(several), "p1 p2");
    assert_eq!(cluster.repair(), None);
    lab.tool(how);
    let found = cluster.repair().unwrap_or_default();
    assert!(found.contains(said), "{found:?} says nothing of {said:?}");
    assert_eq!(lab.spread("out", at(VIP, 80), 4), each(&[("p1", 2), ("p2", 2)]));
    assert_eq!(cluster.repair(), None);
}
