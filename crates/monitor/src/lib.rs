//! How do machines ask a component how it does? Small HTTP servers, metrics as text, and what the process uses.

pub mod http;
mod plain;
mod process;
mod text;

pub use plain::PlainCounter;
pub use process::Process;
pub use text::{Format, write};
