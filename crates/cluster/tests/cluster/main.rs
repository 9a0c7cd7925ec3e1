//! The door against the real server: in process, over TLS on the loopback, and from files.

mod contract;
mod house;
mod leader;
mod manifests;
mod mirror;
mod programmed;
mod recorder;
mod requests;
mod servers;
