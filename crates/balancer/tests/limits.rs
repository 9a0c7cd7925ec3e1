//! What clients and backends can use up, one attack at a time: memory is measured of the whole
//! process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "http/client2.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod client2;
#[path = "http/lab.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod lab;
#[path = "http/limits.rs"]
mod limits;
