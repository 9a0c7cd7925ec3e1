//! The cluster's domain as data: which records has a name, and why has it none?
//!
//! [`Zone`] takes [`Change`]s of Services, EndpointSlices, Pods and Namespaces in and answers [`Question`]s with an
//! [`Answer`]. [`message`] reads queries and writes replies, all of it on bytes: no socket, no clock, no upstream.
//!
//! ```text
//! web.default.svc.cluster.local           a Service: its cluster IPs, or the addresses of its ready endpoints
//! _http._tcp.web.default.svc...           its port `http`, for SRV
//! web-0.web.default.svc...                the endpoint whose host name is web-0; 10-244-1-7.web... if it has none
//! a.pin._zone.web.default.svc...          (zonal) the endpoints of a headless Service in zone a; `prefer`: or else all
//! 10-244-1-7.default.pod...               a Pod
//! 10.0.96.10.in-addr.arpa                 what an address is called: a Service or an endpoint of one
//! ```
//!
//! A server does this for each query; what `Outcome` leaves to it (names that are not ours, names of ours that fall through,
//! aliases that lead outside) it answers with a [`message::Builder`]:
//!
//! ```
//! use fairlead_zone::{Change, Name, Options, Zone, message::{self, Outcome, Reading}};
//! use fairlead_api::{source::Key, view::{Namespace, Service}};
//!
//! let mut zone = Zone::new(Options::default());
//! let mut web = Service::default();
//! web.spec.cluster_ip = "10.96.0.10".to_owned();
//! zone.apply([
//!     Change::Namespace(Key::new("", "default"), Some(Namespace::default().into())),
//!     Change::Service(Key::new("default", "web"), Some(web.into())),
//! ]);
//!
//! let name: Name = "web.default.svc.cluster.local".parse()?;
//! let bytes = message::query(7, &name, fairlead_zone::rtype::A, None);
//! let Reading::Query(query) = message::read(&bytes) else { panic!("it is a good one") };
//! let mut out = Vec::new();
//! let outcome = message::reply(&zone, &query, 0, query.limit(), &mut out);
//! assert!(matches!(outcome, Outcome::Answered));
//! assert_eq!(out[out.len() - 4..], [10, 96, 0, 10]);
//! # Ok::<(), fairlead_zone::NameError>(())
//! ```

mod answer;
pub mod message;
mod name;
mod options;
mod question;
pub mod rtype;
mod search;
mod why;
mod zone;

pub use answer::{Alias, Answer, Records};
pub use name::{MAX_LABEL, MAX_NAME, Name, NameError};
pub use options::{DEFAULT_TTL, Options, PodRecords, pointer_name, reverse_zones};
pub use question::Question;
pub use search::Searched;
pub use why::Why;
pub use zone::{Change, Zone};
