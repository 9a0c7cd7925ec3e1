//! The plan as rules of iptables: chains `FAIRLEAD-*` in the tables nat and filter of each family, as text for
//! `iptables-restore --noflush`.
//!
//! Names of chains follow from what they are for, so nothing need be remembered: a change of the plan alone says which chains
//! are written anew and which go. [`Program`] is the whole as a value. In this mode packets to a cluster IP that no frontend
//! takes go their way: `Node::guard_cluster_ips` does not count.

mod chains;
mod model;
mod name;
mod print;
mod sources;
mod state;
mod trace;

pub use model::{Builtin, Chain, Invalid, Match, Op, Place, Program, RejectKind, Rule, Table, TableName, Target};
pub use print::restore;
pub use state::{Options, diff, jumps, render};
pub use trace::{Fate, Memory, Trace, outcome, trace};
