//! The system calls of terminals. Each a safe function around one call.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// How a terminal treats what is typed and shown.
#[derive(Clone, Copy)]
pub(crate) struct Modes(libc::termios);

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modes").finish_non_exhaustive()
    }
}

impl Modes {
    /// The same, but everything passes as it is.
    pub(crate) fn raw(mut self) -> Modes {
        // SAFETY: the pointer is valid for the call, which touches nothing else.
        unsafe { libc::cfmakeraw(&raw mut self.0) };
        self
    }
}

/// How a terminal is.
pub(crate) fn modes(terminal: BorrowedFd<'_>) -> io::Result<Modes> {
    let mut modes = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the pointer is valid for writes during the call, which fills all of it if it succeeds.
    check(unsafe { libc::tcgetattr(terminal.as_raw_fd(), modes.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded.
    Ok(Modes(unsafe { modes.assume_init() }))
}

/// Makes a terminal so.
pub(crate) fn set_modes(terminal: BorrowedFd<'_>, modes: &Modes) -> io::Result<()> {
    // SAFETY: the pointer is valid for reads during the call.
    check(unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSADRAIN, &raw const modes.0) }).map(drop)
}

/// Columns and rows.
pub(crate) fn size(terminal: BorrowedFd<'_>) -> io::Result<(u16, u16)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointer is valid for writes during the call, and of the type this request fills.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) })?;
    Ok((size.ws_col, size.ws_row))
}
