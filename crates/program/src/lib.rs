//! The plan as a program for one interface of the kernel: typed trees that can be printed, traced and changed.
//!
//! Nothing here decides about traffic: that is `plan`'s. What a program does to a packet is found by interpreting it, and
//! tests hold that against `plan::decide` for packets and plans at random.

pub mod iptables;
pub mod ipvs;
pub mod nft;
mod outcome;
pub mod userspace;

pub use outcome::{Disagreement, Outcome, Way, agree};
