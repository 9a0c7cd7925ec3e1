//! The plan as a program of nftables: one table for each family, in which no chain belongs to a Service. What differs from
//! Service to Service is in maps, so that neither a packet's way nor a change costs more when there are many.
//!
//! [`Nft`] keeps what is needed to turn changes of a plan into [`Op`]s; a [`Program`] is the whole of it as a value, which
//! can be printed ([`Program`] is `Display`) and traced ([`trace()`]).

mod batch;
pub(crate) mod code;
mod expr;
mod key;
pub(crate) mod layout;
mod model;
mod ports;
mod print;
pub(crate) mod rules;
mod sets;
mod slots;
mod state;
mod trace;

pub use code::frontend_key;
pub use expr::{CT_DNAT, CT_NEW, CmpOp, CtKey, End, Expr, Found, LOCAL, MetaKey, PayloadBase, Reg, Reject, UNICAST};
pub use key::{DataType, Key, length};
pub use model::{
    Base, Chain, ChainName, ChainType, Element, Hook, Invalid, Op, Program, Rule, Set, TABLE, Table, Value, ValueType,
    Verdict,
};
pub use sets::is_concatenation_of_ranges;
pub use state::{COUNTED, Known, Nft, Options, Portals, clear, counted, render};
pub(crate) use trace::trace_between;
pub use trace::{Fate, Memory, Step, Trace, outcome, trace};
