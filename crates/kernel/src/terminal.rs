//! The terminal somebody sits at: how large is it, and how do keys get through it as they are?

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::sys::terminal as calls;

/// Columns and rows of a terminal; `None`: it is none.
pub fn size(terminal: impl AsFd) -> Option<(u16, u16)> {
    calls::size(terminal.as_fd()).ok().filter(|(columns, rows)| *columns > 0 && *rows > 0)
}

/// A terminal that passes every key on as it is, until this value is dropped.
#[derive(Debug)]
pub struct Raw {
    terminal: OwnedFd,
    before: calls::Modes,
}

impl Raw {
    /// Passes keys on from now on.
    pub fn enter(terminal: BorrowedFd<'_>) -> io::Result<Raw> {
        let terminal = terminal.try_clone_to_owned()?;
        let before = calls::modes(terminal.as_fd())?;
        calls::set_modes(terminal.as_fd(), &before.raw())?;
        Ok(Raw { terminal, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = calls::set_modes(self.terminal.as_fd(), &self.before);
    }
}
