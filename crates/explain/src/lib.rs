//! Why a Service does not work: the chain a person would walk by hand, from the object to the reply, each link with what was
//! seen there and what mends it.
//!
//! ```text
//! Question  svc/web, port 80, from pod/shop/client
//! Objects   Services, Pods, slices, ...          what the API says
//! Evidence  sockets, rules, DNS, a live packet   what only a machine can see; whatever is unknown is left out
//!    |
//!    v
//! Report    exists ✓  spec ✓  selector ✗ LabelValueDiffers: web-1 has app=wbe, not app=web
//!                                 kubectl label pod web-1 -n shop app=web --overwrite
//! ```
//!
//! The first finding is the cause; what follows from it is no finding of its own. [`explain()`] walks the whole chain,
//! [`check()`] only what objects tell, so cheap that it can be asked again at every change: [`Objects::apply`] says which
//! Services a change concerns.

mod cause;
mod chain;
mod evidence;
mod nearest;
mod objects;
mod pod;
mod question;
mod report;
mod steps;

pub use cause::Cause;
pub use chain::{check, explain};
pub use evidence::{
    Balancer, Component, Decided, Dns, DnsReply, Evidence, Forwarding, Live, Reply, Resolver, Rules, Socket,
};
pub use objects::{Change, Event, Objects};
pub use pod::{ContainerState, ContainerStatus, DnsConfig, DnsOption, Pod, Running, Stopped, Waiting};
pub use question::{From, Question};
pub use report::{Finding, Report, Severity, State, Step, StepId, Verdict};
