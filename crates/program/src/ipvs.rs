//! The plan as a program of IPVS: virtual servers of the kernel's own load balancer, the addresses they need on a link of
//! ours, and a small table of nftables for what IPVS cannot say: who may come in, who is refused, whose source is rewritten.
//!
//! ```text
//! 10.96.0.10:80/TCP  on the link     -> nftables: refuse? masquerade?  -> virtual server 10.96.0.10:80/TCP -> endpoints
//! node port 30080, an address of the Node, or another policy for Pods than for those outside
//!                                    -> nftables: a mark by source     -> virtual server of that mark      -> endpoints
//! ```
//!
//! [`Ipvs`] keeps what is needed to turn changes of a plan into [`Op`]s; a [`Program`] is the whole of it as a value, which
//! can be printed and traced ([`trace()`]).

mod batch;
mod code;
mod counts;
mod layout;
mod model;
mod port;
mod print;
mod state;
mod trace;

pub use code::Marks;
pub use model::{Affinity, At, Balance, Invalid, Op, Program, Server};
pub use state::{Ipvs, Known, Options, render};
pub use trace::{Trace, outcome, trace};

/// The name of our tables of nftables in this mode.
pub const TABLE: &str = "fairlead-ipvs";

/// The name of the link that has the addresses.
pub const LINK: &str = "fl-ipvs0";
