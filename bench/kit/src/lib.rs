//! What the benchmarks share: servers and their peers as processes on one core, clients on another, and the table of figures.

pub mod http;
pub mod load;
pub mod process;
pub mod server;
pub mod table;

/// Servers have one core to themselves, the load another.
pub const SERVER_CORE: usize = 0;
/// The core of the load.
pub const CLIENT_CORE: usize = 1;
