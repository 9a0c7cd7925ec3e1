//! Who may come in, to whom, and whom endpoints see.

use std::net::TcpListener;

use fairlead_api::view::{Protocol, Service, TrafficPolicy};

use crate::Checks;
use crate::cluster::{Cluster, VIP, exposed, service, speaks};
use crate::lab::{Came, NODE, at, each, ip};

const EXTERNAL: [(&str, u16); 3] = [("203.0.113.7", 80), ("203.0.113.8", 80), (NODE[0], 30080)];

pub(crate) const CHECKS: Checks = &[
    ("Pods are seen as themselves, others as the Node", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|_| {}), "p1");
        assert_eq!(lab.tcp("p2", at(VIP, 80)).sees(), ip("10.50.1.12"));
        assert_eq!(lab.tcp("out", at(VIP, 80)).sees(), ip("10.50.1.1"));
        assert_eq!(lab.tcp("node", at(VIP, 80)).sees(), ip("10.50.1.1"));
    }),
    ("the Node reaches a Service even where nothing says what a Pod is", false, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|_| {}), "p1");
        let node = fairlead_plan::Node {
            detection: fairlead_plan::LocalDetection::None,
            ..cluster.planner.plan().node().clone()
        };
        cluster.planner.apply([fairlead_plan::Change::Node(Box::new(node))]);
        cluster.load();
        assert_eq!(lab.tcp("node", at(VIP, 80)).sees(), ip("10.50.1.1"));
        assert_eq!(lab.tcp("out", at(VIP, 80)).sees(), ip("172.30.0.100"));
    }),
    ("a Pod reaches itself through its Service", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|_| {}), "p1");
        let came = lab.tcp("p1", at(VIP, 80));
        assert_eq!((came.from(), came.sees()), ("p1", ip("10.50.1.1")));
    }),
    ("a node port is served on every address of the Node", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(exposed), "p1 p3");
        for (from, address) in [("out", NODE[0]), ("far", "172.31.0.11"), ("p2", "10.50.1.1"), ("node", NODE[0])] {
            let spread = lab.spread(from, at(address, 30080), 4);
            assert_eq!(spread, each(&[("p1", 2), ("p3", 2)]), "{from} to {address}");
        }
        assert_eq!(lab.tcp("out", at(NODE[0], 30080)).sees(), ip("10.50.1.1"));
    }),
    ("a node port is no port of a cluster IP", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(exposed), "p1 p3");
        assert_eq!(lab.tcp("p2", at(VIP, 30080)), Came::Refused);
    }),
    ("UDP node ports are served", false, |lab| {
        let speaking = |service: &mut Service| (exposed(service), speaks(service, Protocol::Udp)).0;
        let _cluster = Cluster::ipvs(lab, service(speaking), "p1");
        assert_eq!(lab.udp("out", at(NODE[0], 30080)).from(), "p1");
    }),
    ("external IPs and load balancer IPs are served", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(exposed), "p1 p3");
        for (address, port) in EXTERNAL {
            assert_eq!(lab.spread("out", at(address, port), 4), each(&[("p1", 2), ("p3", 2)]), "{address}");
        }
    }),
    ("an external IP that is the Node's own is served", false, |lab| {
        let own = |service: &mut Service| service.spec.external_ips = vec![NODE[0].to_owned()];
        let _cluster = Cluster::ipvs(lab, service(own), "p1 p3");
        assert_eq!(lab.spread("out", at(NODE[0], 80), 4), each(&[("p1", 2), ("p3", 2)]));
        assert!(!lab.tool("ip -o addr show dev fl-ipvs0").contains(NODE[0]));
    }),
    ("loadBalancerSourceRanges let only those in", true, |lab| {
        let ranged = |service: &mut Service| {
            exposed(service);
            service.spec.load_balancer_source_ranges = vec!["172.30.0.0/24".to_owned()];
        };
        let _cluster = Cluster::ipvs(lab, service(ranged), "p1");
        assert_eq!(lab.tcp("out", at("203.0.113.8", 80)).from(), "p1");
        assert_eq!(lab.tcp("node", at("203.0.113.8", 80)).from(), "p1");
        assert!(lab.is_lost("far", at("203.0.113.8", 80)));
        assert_eq!(lab.tcp("far", at(NODE[0], 30080)).from(), "p1");
    }),
    ("externalTrafficPolicy Local serves those outside here, and they are seen", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(local_outside), "p1 p2 p3");
        for (address, port) in EXTERNAL {
            assert_eq!(lab.spread("out", at(address, port), 4), each(&[("p1", 2), ("p2", 2)]), "{address}");
            assert_eq!(lab.tcp("out", at(address, port)).sees(), ip("172.30.0.100"), "{address}");
            assert_eq!(lab.spread("p1", at(address, port), 6), each(&[("p1", 2), ("p2", 2), ("p3", 2)]), "{address}");
            assert_eq!(lab.spread("node", at(address, port), 6).len(), 3, "{address}");
        }
        assert_eq!(lab.spread("out", at(VIP, 80), 6).len(), 3);
    }),
    ("externalTrafficPolicy Local without endpoints here drops what is from outside", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(local_outside), "p3");
        for (address, port) in EXTERNAL {
            assert!(lab.is_lost("out", at(address, port)), "{address}");
            assert_eq!(lab.tcp("p1", at(address, port)).from(), "p3", "{address}");
        }
    }),
    ("internalTrafficPolicy Local stays on the Node", true, |lab| {
        let local = |service: &mut Service| service.spec.internal_traffic_policy = TrafficPolicy::Local;
        let mut cluster = Cluster::ipvs(lab, service(local), "p1 p3");
        for from in ["p2", "node", "out"] {
            assert_eq!(lab.spread(from, at(VIP, 80), 3), each(&[("p1", 3)]), "{from}");
        }
        cluster.pods("p3");
        assert!(lab.is_lost("p2", at(VIP, 80)));
    }),
    ("a policy can change", false, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(exposed), "p1 p3");
        cluster.service(Some(service(local_outside)));
        for (address, port) in EXTERNAL {
            assert_eq!(lab.spread("out", at(address, port), 4), each(&[("p1", 4)]), "{address}");
        }
        cluster.service(Some(service(exposed)));
        for (address, port) in EXTERNAL {
            assert_eq!(lab.spread("out", at(address, port), 4), each(&[("p1", 2), ("p3", 2)]), "{address}");
        }
    }),
    ("without endpoints connections are refused at once", true, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(exposed), "");
        for from in ["out", "p1", "node"] {
            for (address, port) in EXTERNAL.into_iter().chain([(VIP, 80)]) {
                let quick = (0..5).any(|_| {
                    let began = std::time::Instant::now();
                    assert_eq!(lab.tcp(from, at(address, port)), Came::Refused, "{from} {address}");
                    began.elapsed().as_millis() < 900
                });
                assert!(quick, "{from} {address}");
            }
        }
        cluster.pods("p1");
        assert_eq!(lab.tcp("out", at(VIP, 80)).from(), "p1");
    }),
    ("UDP without endpoints is refused", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|service| speaks(service, Protocol::Udp)), "");
        assert_eq!(lab.udp("out", at(VIP, 80)), Came::Refused);
    }),
    ("processes of the Node are not reached by addresses of Services", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(exposed), "p1");
        let listener = lab.node.run(|| TcpListener::bind("0.0.0.0:2222").unwrap()).unwrap();
        for from in ["out", "p1", "node"] {
            for address in [VIP, "203.0.113.7", "203.0.113.8"] {
                assert_eq!(lab.tcp(from, at(address, 2222)), Came::Refused, "{from} {address}");
            }
        }
        drop(listener);
    }),
    ("an endpoint may be a process of the Node", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(exposed), "p1");
        lab.tool("ip addr add 10.50.1.99/32 dev lo");
        let listener = lab.node.run(|| TcpListener::bind("10.50.1.99:8080").unwrap()).unwrap();
        let server = std::thread::spawn(move || {
            for stream in listener.incoming().take(2) {
                let mut stream = stream.unwrap();
                let peer = stream.peer_addr().unwrap().ip();
                std::io::Write::write_all(&mut stream, format!("host {peer}\n").as_bytes()).unwrap();
            }
        });
        lab.tool(
            "ipvsadm -e -t 10.96.0.10:80 -r 10.50.1.11:8080 -m -w 0; ipvsadm -a -t 10.96.0.10:80 -r 10.50.1.99:8080 -m",
        );
        // What is delivered here is not rewritten.
        assert_eq!(lab.tcp("out", at(VIP, 80)), Came::Answer { from: "host".to_owned(), sees: ip("172.30.0.100") });
        assert_eq!(lab.tcp("node", at(VIP, 80)).from(), "host");
        server.join().unwrap();
        lab.tool("ip addr del 10.50.1.99/32 dev lo");
    }),
];

fn local_outside(service: &mut Service) {
    exposed(service);
    service.spec.external_traffic_policy = TrafficPolicy::Local;
    service.spec.health_check_node_port = 32000;
}
