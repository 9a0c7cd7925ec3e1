//! How is a process of ours asked to end?

use crate::error::Error;
use crate::sys;

/// Sends SIGTERM to a process group, which begins with that process: one we started as the first of its group, and have not
/// waited for yet, so that the number is still its own.
pub fn terminate_group(process: u32) -> Result<(), Error> {
    let failed = |source| Error::System { action: format!("sending SIGTERM to process {process}"), source };
    // 0 and 1 would mean our own group and everybody.
    let group = i32::try_from(process).ok().filter(|process| *process > 1);
    let group = group.ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    sys::kill(-group, libc::SIGTERM).map_err(failed)
}
