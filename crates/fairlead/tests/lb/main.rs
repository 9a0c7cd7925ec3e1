//! Services of type LoadBalancer as users have them: `fairlead up --pool` on a machine with a LAN, clients and backends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod elsewhere;
mod hot;
#[expect(dead_code, reason = "tests of limits use the rest")]
mod lab;
mod life;
mod paths;
mod people;
mod refusals;
mod several;
mod sharing;
mod unserved;
