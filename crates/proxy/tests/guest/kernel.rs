//! The kernel's virtual servers as they are made and read, without a plan.

use fairlead_kernel::ipvs::{At, Counted, Destination, Ipvs, Service, Timeouts, scheduler_flag};
use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;

use crate::Checks;

const SCHEDULERS: [&str; 11] = ["rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "sed", "nq", "mh"];

pub(crate) const CHECKS: Checks = &[
    ("virtual servers of every kind are read back as they were made", true, |_| with_ipvs(services)),
    ("every scheduler can be had", true, |_| with_ipvs(schedulers)),
    ("destinations come, change and go", true, |_| with_ipvs(destinations)),
    ("time-outs are set", true, |_| {
        with_ipvs(|mut ipvs| {
            let wanted = Timeouts { tcp_s: 1000, tcp_fin_s: 60, udp_s: 70 };
            assert_ne!(ipvs.timeouts().unwrap(), wanted);
            ipvs.set_timeouts(wanted).unwrap();
            assert_eq!(ipvs.timeouts().unwrap(), wanted);
        });
    }),
];

fn with_ipvs(work: impl FnOnce(Ipvs) + Send) {
    let namespace = Namespace::unnamed().unwrap();
    namespace
        .run(|| {
            // Where no route is, no destination may be.
            let mut links = Links::open().unwrap();
            let lo = links.index("lo").unwrap();
            links.set_up(lo).unwrap();
            work(Ipvs::open().unwrap());
        })
        .unwrap();
}

fn service(at: At, scheduler: &str) -> Service {
    Service { at, scheduler: scheduler.to_owned(), affinity_s: None, flags: 0, counted: Counted::default() }
}

fn services(mut ipvs: Ipvs) {
    assert_eq!(ipvs.services().unwrap(), []);
    for (address, v4) in [("10.96.0.10", true), ("fd00:96::a", false)] {
        let address = address.parse().unwrap();
        let addressed = [6, 17, 132].map(|protocol| At::Address { address, protocol, port: 80 });
        for at in addressed.into_iter().chain([At::Mark { v4, mark: 0xf600_0001 }]) {
            let mut wanted = service(at, "rr");
            ipvs.add_service(&wanted).unwrap();
            assert!(ipvs.add_service(&wanted).unwrap_err().is_exists());
            assert_eq!(ipvs.services().unwrap(), std::slice::from_ref(&wanted));
            (wanted.scheduler, wanted.affinity_s) = ("mh".to_owned(), Some(10_800));
            wanted.flags = scheduler_flag::FALLBACK | scheduler_flag::PORT;
            ipvs.set_service(&wanted).unwrap();
            assert_eq!(ipvs.services().unwrap(), [wanted]);
            ipvs.delete_service(&at).unwrap();
            assert!(ipvs.delete_service(&at).unwrap_err().is_not_found());
        }
    }
}

fn schedulers(mut ipvs: Ipvs) {
    for (mark, scheduler) in (1..).zip(SCHEDULERS) {
        ipvs.add_service(&service(At::Mark { v4: true, mark }, scheduler)).unwrap();
    }
    let mut there: Vec<String> = ipvs.services().unwrap().into_iter().map(|service| service.scheduler).collect();
    there.sort();
    let mut wanted = SCHEDULERS;
    wanted.sort_unstable();
    assert_eq!(there, wanted);
    let error = ipvs.add_service(&service(At::Mark { v4: true, mark: 99 }, "nonesuch")).unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("nonesuch"), "{error}");
}

fn destinations(mut ipvs: Ipvs) {
    for (address, v4) in [("10.244.0.7", true), ("fd00:244::7", false)] {
        let at = At::Mark { v4, mark: 7 };
        ipvs.add_service(&service(at, "wrr")).unwrap();
        let mut wanted = Destination::new(address.parse().unwrap(), 8080, 3);
        ipvs.add_destination(&at, &wanted).unwrap();
        assert!(ipvs.add_destination(&at, &wanted).unwrap_err().is_exists());
        assert_eq!(ipvs.destinations(&at).unwrap(), std::slice::from_ref(&wanted));
        wanted.weight = 0;
        ipvs.set_destination(&at, &wanted).unwrap();
        assert_eq!(ipvs.destinations(&at).unwrap(), std::slice::from_ref(&wanted));
        ipvs.delete_destination(&at, &wanted).unwrap();
        assert!(ipvs.delete_destination(&at, &wanted).unwrap_err().is_not_found());
        assert_eq!(ipvs.destinations(&at).unwrap(), []);
    }
    let nowhere = At::Mark { v4: true, mark: 8 };
    assert!(ipvs.destinations(&nowhere).is_ok_and(|there| there.is_empty()));
}
