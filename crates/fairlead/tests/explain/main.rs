//! `fairlead explain` on real machines: Services that do not work for a reason that was made for the test, with real Pods, sockets,
//! rules and names, and the first finding must be that reason; Services that work, and no finding.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

mod broken;
mod events;
mod files;
mod healthy;
mod kernel;
mod lab;
mod setup;
