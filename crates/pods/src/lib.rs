//! Pods without containers: processes in network namespaces with an address, names, probes and an orderly end.

pub mod host;
pub mod shim;
