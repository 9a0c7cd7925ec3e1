//! How much room has a file system?

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::Error;
use crate::sys;

/// The bytes that may still be written to the file system a path is on.
pub fn free(path: &Path) -> Result<u64, Error> {
    let failed = |source| Error::System { action: format!("looking at the file system of {}", path.display()), source };
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    sys::free_space(&text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::free;
    use std::path::Path;

    #[test]
    fn a_file_system_has_room_and_a_path_that_is_not_there_has_none() {
        assert!(free(Path::new("/")).unwrap() > 0);
        let error = free(Path::new("/not/there")).unwrap_err().to_string();
        assert!(error.contains("/not/there"), "{error}");
    }
}
