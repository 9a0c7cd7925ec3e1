//! What a program does to a packet, in a form all programs share, and whether that is what the plan says.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use fairlead_plan::{Decision, Dnat, RejectWith, Verdict};
use thiserror::Error;

/// What a program does to a packet, whatever chance says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It goes its way, with its own addresses.
    Passes,
    /// It is sent on.
    Forwards {
        /// One of these ways.
        ways: Vec<Way>,
        /// For how many seconds a client stays with its endpoint.
        affinity: Option<u32>,
    },
    /// It is answered with a refusal.
    Rejects(RejectWith),
    /// It is lost.
    Drops,
}

/// One way a packet may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The endpoint.
    pub to: SocketAddr,
    /// Whether it gets the Node's address as its source.
    pub snat: bool,
    /// How many chances of all it has.
    pub share: u32,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{}{}", self.to, self.share, if self.snat { " from this Node" } else { "" })
    }
}

impl Outcome {
    /// All ways together, from one at a time.
    pub(crate) fn forwards(to: impl IntoIterator<Item = (SocketAddr, bool)>, affinity: Option<u32>) -> Outcome {
        let mut shares: BTreeMap<(SocketAddr, bool), u32> = BTreeMap::new();
        to.into_iter().for_each(|way| *shares.entry(way).or_default() += 1);
        let ways = shares.into_iter().map(|((to, snat), share)| Way { to, snat, share }).collect();
        Outcome::Forwards { ways, affinity }
    }
}

/// How a program differs from the plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Disagreement {
    /// Something else happens.
    #[error("the plan says {planned:?}, the program does {done:?}")]
    Verdict {
        /// What should.
        planned: Box<Verdict>,
        /// What does.
        done: Box<Outcome>,
    },
    /// Endpoints do not get what their weights say.
    #[error("the chances of {0} and {1} are not as their weights")]
    Weights(Way, Way),
}

/// Says whether a program does to a packet what the plan says.
pub fn agree(decision: &Decision, outcome: &Outcome) -> Result<(), Disagreement> {
    let same = match (&decision.verdict, outcome) {
        (Verdict::NotOurs, Outcome::Passes) | (Verdict::Drop, Outcome::Drops) => true,
        (Verdict::Reject(planned), Outcome::Rejects(done)) => planned == done,
        (Verdict::Dnat(dnat), Outcome::Forwards { ways, affinity }) => {
            dnat.affinity == *affinity && same_ways(dnat, ways)?
        }
        _ => false,
    };
    let verdict =
        || Disagreement::Verdict { planned: Box::new(decision.verdict.clone()), done: Box::new(outcome.clone()) };
    if same { Ok(()) } else { Err(verdict()) }
}

fn same_ways(dnat: &Dnat, ways: &[Way]) -> Result<bool, Disagreement> {
    let candidate = |candidate: &fairlead_plan::Candidate| {
        let endpoint = candidate.endpoint;
        (SocketAddr::new(endpoint.ip, endpoint.port), candidate.snat, u64::from(endpoint.weight))
    };
    let mut planned: Vec<_> = dnat.candidates.iter().map(candidate).collect();
    planned.sort_unstable();
    let mut ways = ways.to_vec();
    ways.sort_unstable();
    let places = |(way, planned): (&Way, &(SocketAddr, bool, u64))| (way.to, way.snat) == (planned.0, planned.1);
    if ways.len() != planned.len() || !ways.iter().zip(&planned).all(places) {
        return Ok(false);
    }
    for pair in ways.iter().zip(&planned).collect::<Vec<_>>().windows(2) {
        let [(one, (.., weight)), (other, (.., other_weight))] = pair else { continue };
        if u64::from(one.share) * other_weight != u64::from(other.share) * weight {
            return Err(Disagreement::Weights(**one, **other));
        }
    }
    Ok(true)
}
