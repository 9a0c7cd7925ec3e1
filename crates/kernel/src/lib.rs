//! What does the kernel hold, and how is it told to hold something else? The only crate with `unsafe`, and the only one
//! that enters namespaces or runs system tools. It decides nothing about traffic: others say what, this says how.
//!
//! Every call blocks for as long as the kernel takes, which is microseconds for a change and milliseconds for a dump;
//! async callers use a thread. A socket belongs to the network namespace of the thread that opened it, for good.

pub mod conntrack;
pub mod datagrams;
pub mod disk;
mod error;
pub mod iptables;
pub mod ipvs;
pub mod link;
pub mod mount;
pub mod netlink;
pub mod netns;
pub mod nft;
pub mod packet;
pub mod process;
pub mod relay;
pub mod sockets;
mod sys;
pub mod sysctl;
pub mod terminal;

pub use error::{Error, Refusal, is_temporary};
