//! What is drawn at random for those who render plans has everything in it, and is the same again from the same number.

use std::collections::BTreeMap;

use fairlead_plan::random::{self, Dice};
use fairlead_plan::{Planner, Verdict, decide};

use crate::incremental::holds_together;

fn planner(dice: &mut Dice) -> Planner {
    let mut planner = Planner::new(random::node(dice));
    for _ in 0..24 {
        planner.apply([random::change(dice)]);
    }
    planner
}

#[test]
fn random_packets_meet_every_verdict_from_every_source() {
    let mut seen = BTreeMap::<String, usize>::new();
    for seed in 0..1000 {
        let dice = &mut Dice::new(seed);
        let planner = planner(dice);
        holds_together(planner.plan());
        for _ in 0..20 {
            let packet = random::packet(dice, planner.plan());
            let source = planner.plan().node().source(&packet.from, packet.src);
            let verdict = match decide(planner.plan(), &packet).verdict {
                Verdict::NotOurs => "not ours".to_owned(),
                Verdict::Drop => "drop".to_owned(),
                Verdict::Reject(how) => format!("{how:?}"),
                Verdict::Dnat(dnat) => {
                    let hidden = dnat.candidates.iter().filter(|candidate| candidate.snat).count();
                    let whom = if hidden == 0 {
                        "plain"
                    } else if hidden < dnat.candidates.len() {
                        "some"
                    } else {
                        "all"
                    };
                    format!("dnat {} {whom} {}", dnat.scope, dnat.affinity.is_some())
                }
            };
            *seen.entry(format!("{source:?} {verdict}")).or_default() += 1;
        }
    }
    let sources = ["Pod", "OtherPod", "Node", "Outside"];
    for verdict in
        ["not ours", "drop", "TcpReset", "PortUnreachable", "dnat Cluster all false", "dnat Cluster all true"]
    {
        for source in sources {
            let count = seen.get(&format!("{source} {verdict}")).copied().unwrap_or_default();
            assert!(count >= 20, "{source} {verdict}: only {count} in {seen:#?}");
        }
    }
    for rare in ["Pod dnat Cluster some false", "Pod dnat Local plain false", "Outside dnat Local plain true"] {
        assert!(seen.get(rare).is_some_and(|count| *count > 10), "{rare} in {seen:#?}");
    }
}

#[test]
fn the_same_number_draws_the_same() {
    let draw = |seed| {
        let dice = &mut Dice::new(seed);
        let planner = planner(dice);
        let packet = random::packet(dice, planner.plan());
        (planner.plan().clone(), packet)
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}
