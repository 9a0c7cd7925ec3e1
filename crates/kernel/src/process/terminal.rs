//! How does a program get a terminal that nobody sits at?

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::failed;
use crate::error::Error;
use crate::sys::process as calls;

/// A terminal: the end that shows it, and the end a program has for its streams.
pub fn terminal() -> Result<(OwnedFd, OwnedFd), Error> {
    calls::terminal().map_err(failed("making a terminal"))
}

/// Sets how large it is.
pub fn resize_terminal(terminal: BorrowedFd<'_>, columns: u16, rows: u16) -> io::Result<()> {
    calls::resize_terminal(terminal, columns, rows)
}

/// Reads and writes of a descriptor return at once from now on.
pub fn never_wait(fd: BorrowedFd<'_>) -> io::Result<()> {
    calls::never_wait(fd)
}
