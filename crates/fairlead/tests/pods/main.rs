//! Pods without containers, end to end: `fairlead up` on a machine that is a network namespace, and real commands in it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

mod deployments;
mod documents;
mod images;
mod machine;
mod repair;
mod rollout;
mod several;
mod story;
