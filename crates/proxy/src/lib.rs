//! The node proxy: what the plan of this Node says, in the kernel, and nothing else of ours.
//!
//! It follows the cluster and keeps one [`Dataplane`] up to date: a file for each mode. Beside it are the health ports
//! that load balancers ask, metrics, the kernel's memory of flows , and what leaves nothing behind.

pub mod conntrack;
mod dataplane;
mod error;
#[cfg(test)]
mod lab;
mod nftables;
mod node;
mod settings;
pub mod trace;

pub use dataplane::{Counters, Dataplane, Traffic};
pub use error::Error;
pub use settings::{Conntrack, Detection, Ipvs, Mode, Settings};
