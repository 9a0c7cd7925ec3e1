//! The controllers against the real server on a store in memory: in process, and by requests alone.

mod daemon_sets;
mod deployments;
mod garbage;
mod house;
mod kubelet;
mod namespace;
mod nodes;
mod replica_sets;
mod root_ca;
mod scheduler;
mod service_accounts;
mod service_cidr;
mod services;
mod stateful_sets;
