//! Pods without containers: processes in network namespaces with an address, names, probes and an orderly end.

pub mod api;
pub mod host;
