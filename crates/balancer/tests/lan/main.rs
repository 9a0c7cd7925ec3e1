//! Three Nodes and a client on a network of namespaces: who answers for an address, and who when that one is gone. Each Node is
//! a process of its own, so that it can be killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alone;
mod api;
mod failover;
mod lab;
mod node;
mod trouble;
