//! Plans at random: the kernel takes every program and has it afterwards.

use fairlead_kernel::netns::Namespace;
use fairlead_plan::random::{self, Dice};
use fairlead_plan::{Change, Node, Planner};
use fairlead_proxy::{Mode, dataplane};

use crate::Checks;
use crate::cluster::settings;

pub(crate) const CHECKS: Checks = &[
    ("200 programs at random are taken by the kernel, and are there", true, |_| programs(0..40)),
    ("1800 programs more", false, |_| programs(40..400)),
];

/// A mode takes one cluster after the other, and four changes of each.
fn programs(seeds: std::ops::Range<u64>) {
    let namespace = Namespace::unnamed().unwrap();
    let run = || {
        let mut links = fairlead_kernel::link::Links::open().unwrap();
        let lo = links.index("lo").unwrap();
        links.set_up(lo).unwrap();
        let mut ipvs = dataplane(Mode::Ipvs, &settings(|_| {})).unwrap();
        for seed in seeds {
            let mut dice = Dice::new(seed);
            let mut planner = Planner::new(node(&mut dice));
            planner.apply((0..20).map(|_| random::change(&mut dice)).collect::<Vec<_>>());
            ipvs.load(planner.plan()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(ipvs.drift(planner.plan()).unwrap(), None, "seed {seed}");
            for turn in 0..4 {
                let mut changes: Vec<Change> = (0..3).map(|_| random::change(&mut dice)).collect();
                if turn == 2 {
                    changes.push(Change::Node(Box::new(node(&mut dice))));
                }
                let change = planner.apply(changes);
                let done = ipvs.apply(planner.plan(), &change);
                done.unwrap_or_else(|error| panic!("seed {seed} turn {turn}: {error}"));
            }
            assert_eq!(ipvs.drift(planner.plan()).unwrap(), None, "seed {seed}");
        }
        drop(ipvs);
        fairlead_proxy::cleanup().unwrap();
    };
    namespace.run(run).unwrap();
}

fn node(dice: &mut Dice) -> Node {
    Node { localhost_node_ports: false, ..random::node(dice) }
}
