//! A terminal as somebody sees it who is not the program in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use fairlead_kernel::process;
use tokio::net::unix::pipe::{Receiver, Sender};

/// The end of a terminal that shows it.
pub(crate) struct Terminal {
    /// What is on it.
    pub(crate) shows: Receiver,
    /// What is typed.
    pub(crate) types: Sender,
    /// How large it is.
    pub(crate) screen: Screen,
}

/// The size of a terminal.
pub(crate) struct Screen(OwnedFd);

impl Terminal {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Terminal> {
        process::never_wait(fd.as_fd())?;
        // It is no pipe, but is read and written like one.
        let shows = Receiver::from_owned_fd_unchecked(fd.try_clone()?)?;
        let types = Sender::from_owned_fd_unchecked(fd.try_clone()?)?;
        Ok(Terminal { shows, types, screen: Screen(fd) })
    }
}

impl Screen {
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        // A terminal that is gone has no size.
        let _ = process::resize_terminal(self.0.as_fd(), columns, rows);
    }
}
