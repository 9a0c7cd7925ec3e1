//! What does the kernel do for this process?

use crate::error::Error;
use crate::sys;

/// Asks for memory in small pages only. The allocator asks for huge ones, which makes a small program three times as large as
/// it needs to be; large ones are a little slower without.
pub fn use_small_pages() -> Result<(), Error> {
    sys::allow_huge_pages(false).map_err(|source| Error::System { action: "asking for small pages".to_owned(), source })
}
