//! Requests to a server in memory: what one may cost, what a user may not do with it, and what admission makes of it.

mod accounts;
mod cost;
mod events;
mod issuer;
mod log_sockets;
mod passed_on;
mod rights;
mod world;
