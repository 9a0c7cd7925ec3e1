//! Mode userspace at work: real clients, real endpoints and a Node between them, in network namespaces of their own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod changes;
mod lab;
mod tcp;
mod udp;
