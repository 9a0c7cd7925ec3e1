//! Why the kernel could not be told.

/// Why a plan is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel, or a system tool, refused.
    #[error("{0}{advice}", advice = advice(.0))]
    Kernel(#[from] fairlead_kernel::Error),
    /// Something the mode needs is missing on this machine.
    #[error("{0}")]
    Missing(String),
    /// Something else of the operating system.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// What came of it.
        error: std::io::Error,
    },
}

impl Error {
    /// True if the kernel's answer may be another one a moment later
    /// ([`fairlead_kernel::is_temporary`]).
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Kernel(error) => error.is_temporary(),
            Error::Io { error, .. } => fairlead_kernel::is_temporary(error),
            Error::Missing(_) => false,
        }
    }
}

/// EPERM and EACCES.
const FORBIDDEN: [i32; 2] = [1, 13];

/// What to do about it, where that is not plain.
fn advice(error: &fairlead_kernel::Error) -> &'static str {
    if error.errno().is_some_and(|errno| FORBIDDEN.contains(&errno)) {
        "; run it as root, or with CAP_NET_ADMIN"
    } else {
        ""
    }
}
