//! Everything that only a kernel can say, asked in network namespaces that are gone when a test ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conntrack;
mod datagrams;
mod flat;
mod flat6;
mod iptables;
mod lab;
mod link;
mod netns;
mod nft;
mod packet;
mod process;
mod relay;
mod sysctl;
mod trace;
