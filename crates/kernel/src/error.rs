//! What can go wrong between us and the kernel, named by what failed.

use std::fmt;
use std::io;

/// Why a request had no effect. Where a variant does not say otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// What was tried, with its object.
        action: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The kernel understood the request and said no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Someone else changed the ruleset since the generation the change was made for: read it again.
    #[error("the ruleset changed since generation {0}")]
    GenerationClash(u32),
    /// The kernel threw away replies or events because they were not read in time: the state is unknown, read it again.
    #[error("the kernel dropped netlink messages for want of buffer space")]
    Overrun,
    /// The table changed during each of several attempts to read it.
    #[error("the kernel's table kept changing while it was read")]
    Interrupted,
    /// No answer came in time.
    #[error("no answer from the kernel within {0} s")]
    Timeout(u64),
    /// What came was not what the protocol says.
    #[error("malformed netlink message: {0}")]
    Malformed(&'static str),
    /// A message would be longer than its format allows.
    #[error("{0} is too long for a netlink message")]
    TooLong(&'static str),
    /// The kernel or the machine does not have it.
    #[error("{0} is not available on this machine")]
    Absent(&'static str),
    /// A system tool ran and failed.
    #[error("{tool} failed: {message}")]
    Tool {
        /// The program's name.
        tool: String,
        /// What it wrote to standard error, in one line.
        message: String,
        /// The line of its input that was wrong, counted from one, if it said so.
        line: Option<usize>,
    },
}

/// True if a system call may succeed a moment later: descriptors, memory or buffers had run out, or
/// it was interrupted.
pub fn is_temporary(error: &io::Error) -> bool {
    const TEMPORARY: [i32; 6] = [libc::EINTR, libc::EAGAIN, libc::ENOMEM, libc::ENFILE, libc::EMFILE, libc::ENOBUFS];
    error.raw_os_error().is_some_and(|errno| TEMPORARY.contains(&errno))
}

/// A request the kernel refused, with its own words where it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The request, such as `new set element in fairlead/services`.
    pub request: String,
    /// The error number.
    pub errno: i32,
    /// The kernel's explanation.
    pub reason: Option<String>,
    /// The types of the attributes that lead to the one the kernel did not like, outermost first.
    pub attribute: Vec<u16>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel refused {}: {}", self.request, io::Error::from_raw_os_error(self.errno))?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        if !self.attribute.is_empty() {
            let path: Vec<String> = self.attribute.iter().map(u16::to_string).collect();
            write!(f, " (attribute {})", path.join("."))?;
        }
        Ok(())
    }
}

impl Error {
    /// The error number, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::System { source, .. } => source.raw_os_error(),
            Error::Refused(refusal) => Some(refusal.errno),
            _ => None,
        }
    }

    /// Whether the kernel said that the object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ESRCH | libc::ENODEV))
    }

    /// True if the cause may go by itself ([`is_temporary`]).
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Overrun | Error::Interrupted | Error::Timeout(_) => true,
            _ => self.errno().is_some_and(|errno| is_temporary(&io::Error::from_raw_os_error(errno))),
        }
    }

    /// Whether the kernel said that the object is there already.
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }
}
