//! Pods without containers: processes in network namespaces with an address, names, probes and an orderly end.

pub mod agent;
pub mod env;
pub mod host;
pub mod hosts;
pub mod outbound;
pub mod resolv;
pub mod shim;
