//! Cluster DNS: sockets, a chain of steps a Corefile describes, cache and forwarding around the records of `zone`.

pub mod corefile;
pub mod settings;
pub mod template;
mod words;
