//! Connections of bytes through the engine, with real sockets in a namespace of their own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "bytes/abuse.rs"]
mod abuse;
#[path = "bytes/carry.rs"]
mod carry;
#[path = "bytes/change.rs"]
mod change;
#[path = "bytes/health.rs"]
mod health;
#[path = "bytes/lab.rs"]
mod lab;
#[path = "bytes/logged.rs"]
mod logged;
#[path = "bytes/proxied.rs"]
mod proxied;
#[path = "bytes/secured.rs"]
mod secured;
