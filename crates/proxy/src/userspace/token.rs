//! What an event is about, in the 64 bits the kernel keeps for it.
//!
//! ```text
//! 63..62 kind | 61 side | 60..0 number
//! ```

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Somebody woke the worker.
    Waker,
    /// A portal, by its number.
    Portal(u64),
    /// One side of a connection.
    Connection(u64, Side),
    /// A session with an endpoint.
    Session(u64),
}

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Backend,
}

const KIND: u32 = 62;
const SIDE: u64 = 1 << 61;
const NUMBER: u64 = SIDE - 1;

/// The worker's own.
pub(crate) const WAKER: u64 = 0;

pub(crate) fn portal(number: u64) -> u64 {
    1 << KIND | number & NUMBER
}

pub(crate) fn connection(number: u64, side: Side) -> u64 {
    let side = if side == Side::Backend { SIDE } else { 0 };
    2 << KIND | side | number & NUMBER
}

pub(crate) fn session(number: u64) -> u64 {
    3 << KIND | number & NUMBER
}

/// What a token says.
pub(crate) fn read(token: u64) -> Subject {
    let number = token & NUMBER;
    match token >> KIND {
        0 => Subject::Waker,
        1 => Subject::Portal(number),
        2 => Subject::Connection(number, if token & SIDE == 0 { Side::Client } else { Side::Backend }),
        _ => Subject::Session(number),
    }
}
