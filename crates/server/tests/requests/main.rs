//! Requests to a whole server: what one may cost, what a user may not do, and the kinds that make
//! Pods.

mod cost;
mod rights;
mod workloads;
mod world;
