//! Pods on a Node that is a network namespace, with a server in this process and real programs in them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod end;
mod house;
mod images;
mod life;
mod reach;
mod view;
