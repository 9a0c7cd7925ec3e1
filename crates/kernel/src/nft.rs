//! What is in nftables, and how is it changed? Tables, chains, rules, sets and maps as plain data; one atomic batch for a
//! change; dumps to compare with; events to notice what others do. The `nft` program is never run.
//!
//! ```no_run
//! use fairlead_kernel::nft::{self, Batch, Chain, DataType, Element, Expr, Family, Key, Reg, Rule, Set, Table, Verdict};
//!
//! # fn main() -> Result<(), fairlead_kernel::Error> {
//! let table = Table::new(Family::Ip, "example");
//! let blocked = Set::new("blocked", [DataType::Ipv4Addr]).comment("who may not come in");
//! let input = Chain::filter("input", nft::Hook::Input, 0);
//! let drop = Rule::new("input", [
//!     Expr::network(12, 4, Reg(0)),
//!     Expr::is_in("blocked", Reg(0)),
//!     Expr::Verdict(Verdict::Drop),
//! ]);
//!
//! let mut batch = Batch::new();
//! batch.add_table(&table);
//! batch.add_set(&table, &blocked);
//! batch.add_elements(&table, "blocked", &[Element::new(Key::new().ipv4([192, 0, 2, 1].into()))]);
//! batch.add_chain(&table, &input);
//! batch.add_rule(&table, &drop);
//! nft::Connection::open()?.commit(batch, None)?;
//! # Ok(())
//! # }
//! ```

mod batch;
mod connection;
mod decode;
mod encode;
mod expr;
mod key;
mod model;
mod monitor;
#[cfg(test)]
mod tests;
mod trace;
mod userdata;

pub use batch::Batch;
pub use connection::{Connection, Deleted, Generation};
pub use expr::*;
pub use key::{DataType, Key};
pub use model::*;
pub use monitor::{Change, Event, Monitor, Object};
pub use trace::{Step, Traced, Tracer};

/// The header of every nfnetlink message: family, version, resource.
pub(crate) fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// nftables within nfnetlink.
const SUBSYSTEM: u16 = 10;

/// The kinds of message, each also the event of the same name.
mod kind {
    pub(super) const NEW_TABLE: u16 = 0;
    pub(super) const GET_TABLE: u16 = 1;
    pub(super) const DEL_TABLE: u16 = 2;
    pub(super) const NEW_CHAIN: u16 = 3;
    pub(super) const GET_CHAIN: u16 = 4;
    pub(super) const DEL_CHAIN: u16 = 5;
    pub(super) const NEW_RULE: u16 = 6;
    pub(super) const GET_RULE: u16 = 7;
    pub(super) const DEL_RULE: u16 = 8;
    pub(super) const NEW_SET: u16 = 9;
    pub(super) const GET_SET: u16 = 10;
    pub(super) const DEL_SET: u16 = 11;
    pub(super) const NEW_ELEMENT: u16 = 12;
    pub(super) const GET_ELEMENT: u16 = 13;
    pub(super) const DEL_ELEMENT: u16 = 14;
    pub(super) const NEW_GENERATION: u16 = 15;
    pub(super) const GET_GENERATION: u16 = 16;
    pub(super) const TRACE: u16 = 17;
    pub(super) const NEW_OBJECT: u16 = 18;
    pub(super) const GET_OBJECT: u16 = 19;
    pub(super) const DEL_OBJECT: u16 = 20;
}

/// A kind of message of nftables as netlink counts it.
const fn message(kind: u16) -> u16 {
    SUBSYSTEM << 8 | kind
}
