//! Pods without containers: processes in network namespaces with an address, names, probes and an orderly end.
//!
//! [`Runner`] follows the Pods of a Node and gives each a worker, which owns it. A container's process has a small parent of its
//! own, the [`shim`], which lives on when the runner ends; [`host`] is what others can ask of the Pods here, and [`cleanup`] leaves
//! nothing behind.

mod access;
mod addresses;
mod admit;
pub mod agent;
pub mod api;
mod cgroup;
mod changes;
mod cleanup;
mod container;
pub mod env;
mod exec;
pub mod host;
pub mod hosts;
pub mod images;
mod leave;
mod metrics;
mod network;
mod node;
mod order;
pub mod outbound;
mod probes;
mod record;
mod refuse;
pub mod resolv;
pub mod routes;
mod runner;
mod settings;
pub mod shim;
mod sockets;
mod status;
mod storage;
mod surroundings;
mod unit;
mod users;
mod volumes;
mod words;
mod worker;
mod writer;

pub use changes::LinkChanges;
pub use cleanup::cleanup;
pub use metrics::Metrics;
pub use network::{forward, namespace_of};
pub use runner::Runner;
pub use settings::Settings;
pub use users::UserRange;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel said no.
    #[error(transparent)]
    Kernel(#[from] fairlead_kernel::Error),
    /// A file or folder.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it did not work.
        error: std::io::Error,
    },
}
