//! `fairlead proxy` as it runs on a Node: real packets, in network namespaces of their own, while it starts, is killed, changes
//! its mode, meets others who write rules, and follows endpoints that come and go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod churn;
mod cleanup;
mod command;
mod drift;
mod lab;
mod restart;
mod take_over;
