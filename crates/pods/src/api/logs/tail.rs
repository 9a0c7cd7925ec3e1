//! Where the last lines of some log files begin, found from their end.

use std::io::SeekFrom;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// How much is looked at at a time.
const BLOCK: u64 = 64 << 10;

/// Which file (counted from the oldest) and where in it the last `lines` lines begin.
pub(super) async fn find(files: &[PathBuf], lines: usize) -> (usize, u64) {
    let mut left = lines;
    for (at, path) in files.iter().enumerate().rev() {
        // Where there are fewer lines, or none that can be read, the rest is in older files.
        if let Some(offset) = look(path, &mut left).await {
            return (at, offset);
        }
    }
    (0, 0)
}

/// Where the lines begin in one file; `None`: it has too few, and as many less are wanted.
async fn look(path: &Path, left: &mut usize) -> Option<u64> {
    let mut file = File::open(path).await.ok()?;
    let length = file.metadata().await.ok()?.len();
    if *left == 0 {
        return Some(length);
    }
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.resize(usize::try_from(end - start).ok()?, 0);
        file.seek(SeekFrom::Start(start)).await.ok()?;
        file.read_exact(&mut block).await.ok()?;
        for (at, byte) in block.iter().enumerate().rev() {
            let place = start + at as u64 + 1;
            // The end of the last line begins none.
            if *byte != b'\n' || place == length {
                continue;
            }
            *left -= 1;
            if *left == 0 {
                return Some(place);
            }
        }
        end = start;
    }
    if length > 0 {
        *left -= 1;
        if *left == 0 {
            return Some(0);
        }
    }
    None
}
