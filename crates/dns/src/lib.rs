//! Cluster DNS: sockets, a chain of steps a Corefile describes, cache and forwarding around the records of `zone`.
//!
//! [`run_file`] serves what a Corefile says, [`run`] what [`Settings`] say. A question comes in on a thread with a socket of
//! its own (`udp`) or on a connection (`tcp`), goes to the block with the longest zone (`router`) and through its plugins
//! (`chain`). What the cluster's names answer is answered there and then; who must ask others goes to the run time.

mod ask;
mod bounds;
mod build;
mod cache;
mod chain;
pub mod corefile;
mod error;
mod files;
mod forward;
mod hosts;
mod listen;
mod log;
mod looping;
mod metrics;
mod names;
mod outstanding;
mod random;
mod records;
mod rewrite;
mod router;
mod server;
pub mod settings;
mod status;
mod tcp;
pub mod template;
mod udp;
mod words;

pub use error::Error;
pub use files::Corefile;
pub use forward::nameservers;
pub use metrics::Metrics;
pub use server::{run, run_file, run_measured};
pub use settings::Settings;
