//! Requests to a whole server: what one may cost, what a user may not do, what admission makes of
//! it, and the kinds that make Pods.

mod accounts;
mod cost;
mod events;
mod issuer;
mod log_sockets;
mod passed_on;
mod rights;
mod workloads;
mod world;
