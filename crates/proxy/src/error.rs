//! Why the kernel could not be told.

/// Why a plan is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel, or a system tool, refused.
    #[error(transparent)]
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
