//! HTTP through the engine, with real clients and servers in a namespace of their own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "http/abuse.rs"]
mod abuse;
#[path = "http/bodies.rs"]
mod bodies;
#[path = "http/change.rs"]
mod change;
#[path = "http/client2.rs"]
mod client2;
#[path = "http/ends.rs"]
mod ends;
#[path = "http/lab.rs"]
mod lab;
#[path = "http/leaving.rs"]
mod leaving;
#[path = "http/programs.rs"]
mod programs;
#[path = "http/requests.rs"]
mod requests;
#[path = "http/retries.rs"]
mod retries;
#[path = "http/smuggling.rs"]
mod smuggling;
#[path = "http/streams.rs"]
mod streams;
#[path = "http/suites.rs"]
mod suites;
#[path = "http/tunnels.rs"]
mod tunnels;
#[path = "http/web_sockets.rs"]
mod web_sockets;
