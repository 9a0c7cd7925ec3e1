//! What becomes of connections when endpoints, Services or the program itself go.

use std::time::Duration;

use fairlead_api::view::{Protocol, Service, TrafficPolicy};
use fairlead_proxy::Mode;

use crate::Checks;
use crate::cluster::{Cluster, VIP, exposed, service, speaks, sticky};
use crate::lab::{Came, NODE, Open, at, each, udp, udp_socket};

pub(crate) const CHECKS: Checks = &[
    ("an endpoint that goes keeps its connections and is gone after the last", true, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|_| {}), "p1 p2");
        let mut open: Vec<_> = (0..2).map(|_| lab.open("out", at(VIP, 80))).collect();
        cluster.pods("p2");
        assert_eq!(lab.spread("out", at(VIP, 80), 4), each(&[("p2", 4)]));
        assert!(open.iter_mut().all(|open| open.is_alive()));
        assert_eq!(cluster.repair(), None);
        assert!(lab.tool("ipvsadm -Ln").contains("10.50.1.11:8080"));
        open.into_iter().for_each(Open::abort);
        let gone = (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(cluster.repair(), None);
            !lab.tool("ipvsadm -Ln").contains("10.50.1.11:8080")
        });
        assert!(gone, "{}", lab.tool("ipvsadm -Ln"));
    }),
    ("an endpoint that comes back while it drains is used again", false, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|_| {}), "p1 p2");
        let mut open: Vec<_> = (0..2).map(|_| lab.open("out", at(VIP, 80))).collect();
        cluster.pods("p2");
        cluster.pods("p1 p2");
        assert_eq!(lab.spread("out", at(VIP, 80), 4), each(&[("p1", 2), ("p2", 2)]));
        assert!(open.iter_mut().all(|open| open.is_alive()));
        assert_eq!(cluster.repair(), None);
    }),
    ("connections outlive the last endpoint, new ones are refused", true, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|_| {}), "p1");
        let mut open = lab.open("out", at(VIP, 80));
        cluster.pods("");
        assert_eq!(lab.tcp("out", at(VIP, 80)), Came::Refused);
        assert!(open.is_alive());
    }),
    ("connections to a node port outlive its endpoints here", false, |lab| {
        let local = |service: &mut Service| {
            exposed(service);
            service.spec.external_traffic_policy = TrafficPolicy::Local;
        };
        let mut cluster = Cluster::ipvs(lab, service(local), "p1 p3");
        let mut open =
            [("203.0.113.8", 80), (NODE[0], 30080)].map(|(address, port)| lab.open("out", at(address, port)));
        cluster.pods("p3");
        assert!(lab.is_lost("out", at(NODE[0], 30080)));
        assert!(open.iter_mut().all(|open| open.is_alive()));
        assert_eq!(cluster.repair(), None);
        cluster.pods("p1 p3");
        assert_eq!(lab.spread("out", at(NODE[0], 30080), 2), each(&[("p1", 2)]));
    }),
    ("a restart reconciles: connections and affinity live on", true, |lab| {
        let sticky = |service: &mut Service| (exposed(service), sticky(service, 300)).0;
        let cluster = Cluster::ipvs(lab, service(sticky), "p1 p2 p3");
        let mut open = [(VIP, 80), (NODE[0], 30080)].map(|(address, port)| lab.open("out", at(address, port)));
        let before = lab.tool("ipvsadm -Ln --sort");
        let mut cluster = cluster.restart(Mode::Ipvs);
        assert!(open.iter_mut().all(|open| open.is_alive()));
        for (open, (address, port)) in open.iter().zip([(VIP, 80), (NODE[0], 30080)]) {
            assert_eq!(lab.spread("out", at(address, port), 3), each(&[(&open.from, 3)]));
        }
        assert_eq!(servers(&lab.tool("ipvsadm -Ln --sort")), servers(&before));
        assert_eq!(cluster.repair(), None);
    }),
    ("a restart ends what an earlier run left", false, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(exposed), "p1 p2");
        cluster.planner.apply([fairlead_plan::Change::Service(
            fairlead_api::source::Key::new("default", "web"),
            Some(service(|service| service.spec.cluster_ips = vec!["10.96.0.11".to_owned()]).into()),
        )]);
        let mut cluster = cluster.restart(Mode::Ipvs);
        let left = lab.tool("ipvsadm -Ln");
        assert_eq!(left.lines().filter(|line| line.starts_with("TCP") || line.starts_with("FWM")).count(), 1, "{left}");
        assert_eq!(lab.tool("ip -o addr show dev fl-ipvs0").lines().count(), 1);
        assert_eq!(cluster.repair(), None);
        assert_eq!(lab.spread("out", at("10.96.0.11", 80), 4), each(&[("p1", 2), ("p2", 2)]));
    }),
    ("a UDP client whose endpoint goes is served by another", true, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|service| speaks(service, Protocol::Udp)), "p1 p2");
        let to = at(VIP, 80);
        let socket = lab.namespace("out").run(|| udp_socket(to)).unwrap();
        let [soon, late] = [1, 15].map(Duration::from_secs);
        let before = udp(&socket, late).from().to_owned();
        assert_eq!(udp(&socket, late).from(), before);
        let other = if before == "p1" { "p2" } else { "p1" };
        cluster.pods(other);
        // The kernel notices with the first datagram that the flow leads nowhere.
        udp(&socket, soon);
        assert_eq!(udp(&socket, late).from(), other);
    }),
    ("a client that uses a port again need not wait", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|_| {}), "p1 p2");
        let line = format!("for turn in 1 2 3; do echo | socat - TCP4:{VIP}:80,sourceport=41000,reuseaddr; done");
        let began = std::time::Instant::now();
        let answers = lab.tool_in("out", &line);
        assert_eq!(answers.lines().filter(|line| line.starts_with('p')).count(), 3, "{answers}");
        println!("three connections from one port took {:?}", began.elapsed());
    }),
    ("a Service that goes takes everything of it along", true, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(exposed), "p1 p2");
        lab.tcp("out", at(NODE[0], 30080)).from();
        cluster.service(None);
        let left = lab.tool("ip -o addr show dev fl-ipvs0; ipvsadm -Ln");
        assert!(!left.contains("TCP ") && !left.contains(VIP) && !left.contains("203.0.113"), "{left}");
        assert_eq!(cluster.repair(), None);
    }),
];

/// The virtual servers and endpoints in a listing, without what is counted.
fn servers(listing: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().take(5).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = listing.lines().skip(3).map(line).collect();
    lines.sort();
    lines
}
