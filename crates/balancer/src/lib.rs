//! Type LoadBalancer without a cloud: an address from a pool, announced on the LAN, and balancing to healthy endpoints.
//!
//! ```text
//! Service --> spec::read --> Spec ----+--> pools (which address) --> provision --> status, Events
//!             annotations, fields     |                                 |
//!                                     |                                 +--> announce: who of the Nodes answers for an address
//!             slices --> backends ----+--> engine (threads, listeners) --> tcp | http, with tls, PROXY, access logs
//! ```
//!
//! Plain TCP, UDP and SCTP never come here: the node proxy serves their addresses in the kernel (`ipMode: VIP`). What must be
//! understood or changed on its way is carried by threads of this process (`ipMode: Proxy`).

pub mod announce;
pub mod backends;
pub mod config;
pub mod engine;
pub mod guard;
pub mod health;
pub mod http;
pub mod log;
pub mod metallb;
pub mod metrics;
pub mod owner;
pub mod pools;
pub mod provision;
pub mod proxy_header;
pub mod run;
pub mod sctp;
pub mod serving;
pub mod spec;
pub mod tcp;
pub mod tls;
