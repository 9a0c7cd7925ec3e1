//! Who gets the next connection: schedulers, weights, affinity, both families, TCP and UDP.

use fairlead_api::view::{Protocol, Service};
use fairlead_proxy::Mode;

use crate::Checks;
use crate::cluster::{Cluster, VIP, VIP6, service, settings, speaks, sticky};
use crate::lab::{Lab, Open, at, count_each, each};

pub(crate) const CHECKS: Checks = &[
    ("rr gives connections out in turn", true, |lab| {
        let _cluster = scheduled(lab, "rr", "p1 p2 p3");
        assert_eq!(lab.spread("out", at(VIP, 80), 12), each(&[("p1", 4), ("p2", 4), ("p3", 4)]));
    }),
    ("rr with weights goes by weight", true, |lab| {
        let _cluster = scheduled(lab, "rr", "p1 p2=3");
        assert_eq!(lab.spread("out", at(VIP, 80), 8), each(&[("p1", 2), ("p2", 6)]));
    }),
    ("wrr goes by weight", false, |lab| {
        let _cluster = scheduled(lab, "wrr", "p1 p2=2 p3=3");
        assert_eq!(lab.spread("out", at(VIP, 80), 12), each(&[("p1", 2), ("p2", 4), ("p3", 6)]));
    }),
    ("lc goes where the fewest connections are", false, |lab| {
        let _cluster = scheduled(lab, "lc", "p1 p2 p3");
        assert_eq!(kept_open(lab, 6), each(&[("p1", 2), ("p2", 2), ("p3", 2)]));
    }),
    ("wlc goes where the fewest connections for the weight are", false, |lab| {
        let _cluster = scheduled(lab, "wlc", "p1 p2=2");
        assert_eq!(kept_open(lab, 6), each(&[("p1", 2), ("p2", 4)]));
    }),
    ("sed goes where the wait is shortest", false, |lab| {
        let _cluster = scheduled(lab, "sed", "p1 p2=3");
        assert_eq!(kept_open(lab, 4), each(&[("p1", 1), ("p2", 3)]));
    }),
    ("nq goes to who has nothing to do", false, |lab| {
        let _cluster = scheduled(lab, "nq", "p1 p2=10");
        assert_eq!(kept_open(lab, 2), each(&[("p1", 1), ("p2", 1)]));
    }),
    ("sh keeps a client where it is, and passes over what drains", false, |lab| {
        let mut cluster = scheduled(lab, "sh", "p1 p2 p3");
        let spread = lab.spread("out", at(VIP, 80), 6);
        assert_eq!((spread.len(), spread[0].1), (1, 6), "{spread:?}");
        let others: Vec<&str> = ["p1", "p2", "p3"].into_iter().filter(|name| *name != spread[0].0).collect();
        let mut open = lab.open("out", at(VIP, 80));
        cluster.pods(&others.join(" "));
        let after = lab.spread("out", at(VIP, 80), 6);
        assert!(open.is_alive() && after.iter().all(|(name, _)| others.contains(&name.as_str())), "{after:?}");
    }),
    ("dh keeps an address with its endpoint, and lets go of one at once", false, |lab| {
        let mut cluster = scheduled(lab, "dh", "p1 p2 p3");
        let spread = lab.spread("out", at(VIP, 80), 6);
        assert_eq!((spread.len(), spread[0].1), (1, 6), "{spread:?}");
        let others: Vec<&str> = ["p1", "p2", "p3"].into_iter().filter(|name| *name != spread[0].0).collect();
        cluster.pods(&others.join(" "));
        assert_eq!(lab.spread("far", at(VIP, 80), 4).len(), 1);
    }),
    ("mh spreads clients by their address and port", false, |lab| {
        let _cluster = scheduled(lab, "mh", "p1 p2 p3");
        let spread = lab.spread("out", at(VIP, 80), 16);
        assert!(spread.len() > 1, "{spread:?}");
        assert!(lab.tool("ipvsadm -Ln").contains("mh (mh-fallback,mh-port)"), "{}", lab.tool("ipvsadm -Ln"));
    }),
    ("lblc keeps an address where there is room", false, |lab| {
        let _cluster = scheduled(lab, "lblc", "p1 p2 p3");
        assert_eq!(lab.spread("out", at(VIP, 80), 6).len(), 1);
    }),
    ("lblcr keeps an address where there is room", false, |lab| {
        let _cluster = scheduled(lab, "lblcr", "p1 p2 p3");
        assert_eq!(lab.spread("out", at(VIP, 80), 6).len(), 1);
    }),
    ("a scheduler the kernel does not have is named", true, |lab| {
        let settings = settings(|settings| settings.ipvs.scheduler = "nonesuch".to_owned());
        let opened = lab.node.run(|| fairlead_proxy::dataplane(Mode::Ipvs, &settings).map(|_| ())).unwrap();
        assert!(opened.unwrap_err().to_string().contains("nonesuch"));
    }),
    ("clients with affinity stay, each with its own", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|service| sticky(service, 300)), "p1 p2 p3");
        let [out, far] = ["out", "far"].map(|client| lab.spread(client, at(VIP, 80), 5));
        assert_eq!((out.len(), far.len()), (1, 1), "{out:?} {far:?}");
        assert_ne!(out[0].0, far[0].0);
    }),
    ("a client with affinity goes on when its endpoint drains", false, |lab| {
        let mut cluster = Cluster::ipvs(lab, service(|service| sticky(service, 300)), "p1 p2 p3");
        let before = lab.tcp("out", at(VIP, 80)).from().to_owned();
        let others: Vec<&str> = ["p1", "p2", "p3"].into_iter().filter(|name| *name != before).collect();
        cluster.pods(&others.join(" "));
        let after = lab.spread("out", at(VIP, 80), 4);
        assert!(after.len() == 1 && others.contains(&after[0].0.as_str()), "{before} {after:?}");
    }),
    ("endpoints that come get connections, those that go get none", true, |lab| {
        let mut cluster = scheduled(lab, "rr", "p1 p2");
        assert_eq!(lab.spread("out", at(VIP, 80), 4), each(&[("p1", 2), ("p2", 2)]));
        cluster.pods("p2 p3");
        assert_eq!(lab.spread("out", at(VIP, 80), 4), each(&[("p2", 2), ("p3", 2)]));
        cluster.pods("p1 p2 p3");
        assert_eq!(lab.spread("out", at(VIP, 80), 6), each(&[("p1", 2), ("p2", 2), ("p3", 2)]));
    }),
    ("weights can change", false, |lab| {
        let mut cluster = scheduled(lab, "rr", "p1 p2");
        cluster.pods("p1 p2=3");
        assert_eq!(lab.spread("out", at(VIP, 80), 8), each(&[("p1", 2), ("p2", 6)]));
        cluster.pods("p1 p2");
        assert_eq!(lab.spread("out", at(VIP, 80), 8), each(&[("p1", 4), ("p2", 4)]));
    }),
    ("UDP is given out in turn", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(|service| speaks(service, Protocol::Udp)), "p1 p2 p3");
        let answers = (0..6).map(|_| lab.udp("out", at(VIP, 80)).from().to_owned());
        assert_eq!(count_each(answers), each(&[("p1", 2), ("p2", 2), ("p3", 2)]));
    }),
    ("both families are served", true, |lab| {
        let _cluster = Cluster::ipvs(lab, service(dual), "p1 p2");
        for vip in [VIP, VIP6] {
            for from in ["out", "p3", "node"] {
                assert_eq!(lab.spread(from, at(vip, 80), 4), each(&[("p1", 2), ("p2", 2)]), "{from} to {vip}");
            }
        }
    }),
    ("UDP over IPv6 is served", false, |lab| {
        let speaking = |service: &mut Service| (dual(service), speaks(service, Protocol::Udp)).0;
        let _cluster = Cluster::ipvs(lab, service(speaking), "p1 p2");
        let answers = (0..4).map(|_| lab.udp("out", at(VIP6, 80)).from().to_owned());
        assert_eq!(count_each(answers), each(&[("p1", 2), ("p2", 2)]));
    }),
    ("connections are counted", false, |lab| {
        // An endpoint that comes back soon goes on counting where it was: an address nobody had.
        let vip = "10.96.0.77";
        let mut cluster =
            Cluster::ipvs(lab, service(|service| service.spec.cluster_ips = vec![vip.to_owned()]), "p1 p2");
        lab.spread("out", at(vip, 80), 6);
        // The kernel sums up every other second.
        std::thread::sleep(std::time::Duration::from_secs(5));
        let counters = cluster.counters();
        let (_, all) = counters.frontends.first_key_value().unwrap();
        let each: Vec<u64> = counters.endpoints.values().map(|traffic| traffic.connections).collect();
        assert_eq!((all.connections, each), (6, vec![3, 3]));
        assert!(all.packets >= 18 && all.bytes > all.packets * 40, "{all:?}");
    }),
];

fn dual(service: &mut Service) {
    service.spec.cluster_ips = vec![VIP.to_owned(), VIP6.to_owned()];
}

fn scheduled<'a>(lab: &'a Lab, scheduler: &str, pods: &str) -> Cluster<'a> {
    let settings = settings(|settings| settings.ipvs.scheduler = scheduler.to_owned());
    Cluster::with(lab, Mode::Ipvs, &settings, service(|_| {}), pods)
}

/// Who has how many of so many connections that all stay open.
fn kept_open(lab: &Lab, count: usize) -> Vec<(String, usize)> {
    let open: Vec<Open> = (0..count).map(|_| lab.open("out", at(VIP, 80))).collect();
    count_each(open.iter().map(|open| open.from.clone()))
}
