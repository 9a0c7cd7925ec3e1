//! Mode nftables.

#[cfg_attr(not(test), allow(dead_code, reason = "the mode itself is to come"))]
pub(crate) mod convert;
#[cfg_attr(not(test), allow(dead_code, reason = "the mode itself is to come"))]
pub(crate) mod counters;
