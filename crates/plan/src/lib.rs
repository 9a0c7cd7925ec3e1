//! What this Node must do with a packet, as data, and why.
//!
//! [`Planner`] takes [`Change`]s of Services, EndpointSlices and the [`Node`] in, keeps a [`Plan`], and hands out what
//! changed in it as a [`PlanChange`]. What renders a plan for a kernel interface reads three tables:
//!
//! ```text
//! Frontend  10.96.0.10:80/TCP, cluster IP of default/web:http          what a packet is addressed to
//!   actions   Pod -> Forward(Cluster)   Node -> Forward(Cluster, masquerade)   Outside -> ...   by where it is from
//!               |
//! Pool      default/web:http (Cluster)  10.244.1.5:8080 x1, 10.244.2.9:8080 x3, stays 10800 s
//! Node      which source is a Pod, which addresses serve node ports, which ranges are guarded
//! ```
//!
//! Keys ([`FrontendKey`], [`PoolKey`], [`PortKey`]) mean the same in every plan and every run. All frontends of a port
//! share its pools, so an endpoint that comes or goes changes one or two pools and no frontend. A frontend only forwards to
//! a pool that has endpoints: when the last one goes, the frontend changes too.
//!
//! [`decide()`] is the reference: what must happen to one [`Packet`], with its reasons. [`judge()`] says which existing
//! flows must be forgotten.
//!
//! ```
//! use fairlead_plan::{Change, Ingress, Node, Packet, Planner, RejectWith, Verdict, decide};
//! use fairlead_api::{source::Key, view::{Protocol, Service}};
//!
//! let mut web = Service::default();
//! web.spec.cluster_ip = "10.96.0.10".to_owned();
//! web.spec.ports = vec![fairlead_api::view::ServicePort { port: 80, ..Default::default() }];
//! let mut planner = Planner::new(Node { name: "n1".to_owned(), ..Node::default() });
//! let change = planner.apply([Change::Service(Key::new("default", "web"), Some(web.into()))]);
//! assert_eq!(change.frontends.len(), 1);
//!
//! let (src, dst) = ("10.244.1.7".parse()?, "10.96.0.10".parse()?);
//! let packet = Packet { src, dst, port: 80, protocol: Protocol::Tcp, from: Ingress::Interface("cni0".to_owned()) };
//! let decision = decide(planner.plan(), &packet);
//! assert_eq!(decision.verdict, Verdict::Reject(RejectWith::TcpReset));
//! assert_eq!(decision.steps.last().map(ToString::to_string).as_deref(), Some("there is no endpoint to serve it"));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```

mod change;
mod choice;
mod decide;
mod flow;
mod key;
mod node;
mod plan;
mod planner;
#[cfg(feature = "random")]
pub mod random;
mod reason;
mod service;
mod slice;

pub use fairlead_api::view::{Family, Protocol};

pub use change::{Change, Delta, PlanChange};
pub use decide::{Candidate, Decision, Dnat, Packet, RejectWith, Step, Verdict, decide};
pub use flow::{Flow, Judgement, judge};
pub use key::{FrontendKey, PoolKey, PortKey, Scope, family_of};
pub use node::{Ingress, LocalDetection, Node, NodePortAddresses, NodePorts, Source};
pub use plan::{Action, Actions, Endpoint, Frontend, FrontendKind, HealthCheck, Plan, Pool};
pub use planner::Planner;
pub use reason::{About, Note, Reason, Traffic};
pub use slice::Place;
