//! Every program does to every packet what `plan::decide` says: plans and packets at random, after changes at random.

mod iptables;
mod ipvs;
mod nft;
mod userspace;

use fairlead_plan::random::{self, Dice};
use fairlead_plan::{Change, Decision, Dnat, Node, Packet, PlanChange, Planner, Verdict};

/// So many clusters, each changed so many times, with so many packets after each change: 24,000 pairs.
const CLUSTERS: u64 = 100;
const CHANGES: usize = 12;
const PACKETS: usize = 20;

/// Plans that change at random.
struct Cluster {
    dice: Dice,
    planner: Planner,
    guards: bool,
}

/// A Node at random; some have addresses where Pods of other Nodes are.
fn node(dice: &mut Dice) -> Node {
    let mut node = random::node(dice);
    if dice.once_in(4) {
        node.addresses
            .extend(["10.50.2.11", "fd50:0:0:2::11"].map(|ip| ip.parse::<std::net::IpAddr>().expect("an address")));
    }
    node
}

/// What a decision is, roughly.
fn kind(decision: &Decision) -> &'static str {
    match &decision.verdict {
        Verdict::NotOurs => "not ours",
        Verdict::Drop => "dropped",
        Verdict::Reject(_) => "rejected",
        Verdict::Dnat(Dnat { affinity: Some(_), .. }) => "stays",
        Verdict::Dnat(_) => "forwarded",
    }
}

impl Cluster {
    fn new(seed: u64) -> Cluster {
        let mut dice = Dice::new(seed);
        let node = node(&mut dice);
        let mut planner = Planner::new(node);
        for _ in 0..dice.below(30) {
            planner.apply([random::change(&mut dice)]);
        }
        Cluster { dice, planner, guards: true }
    }

    /// For modes in which cluster IPs that nobody has are nobody's matter.
    fn unguard(&mut self) {
        self.guards = false;
        let node = Node { guard_cluster_ips: false, ..self.planner.plan().node().clone() };
        self.planner.apply([Change::Node(Box::new(node))]);
    }

    /// One to three changes at once; now and then the Node is another.
    fn change(&mut self) -> PlanChange {
        let mut changes: Vec<Change> = (0..=self.dice.below(3)).map(|_| random::change(&mut self.dice)).collect();
        if self.dice.once_in(10) {
            let mut node = node(&mut self.dice);
            node.guard_cluster_ips &= self.guards;
            changes.push(Change::Node(Box::new(node)));
        }
        self.planner.apply(changes)
    }

    fn packet(&mut self) -> Packet {
        random::packet(&mut self.dice, self.planner.plan())
    }
}
