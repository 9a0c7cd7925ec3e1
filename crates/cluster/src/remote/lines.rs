//! Bytes as they come, cut into lines.

use bytes::{Buf, Bytes, BytesMut};

use crate::Error;

/// The longest line that is waited for: an object of 3 MiB whose every byte is escaped fits.
const LIMIT: usize = 20 << 20;

/// Lines that are not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// So many bytes are known to hold no line end.
    searched: usize,
}

impl Lines {
    /// Takes what came.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.buffer.len() > LIMIT {
            return Err(Error::unavailable("the watch sends a line without end"));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line that is not empty.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(found) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let line = self.buffer.split_to(self.searched + found).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &[&str]) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes()).expect("short enough");
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        assert_eq!(found, expected, "{pieces:?}");
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        check(&["a\nb\n"], &["a", "b"]);
        check(&["a", "b", "\n"], &["ab"]);
        check(&["a\n\n\r", "\nb"], &["a", "\r"]);
        check(&["", "\n"], &[]);
    }

    #[test]
    fn a_line_without_end_is_not_waited_for() {
        let mut lines = Lines::default();
        let piece = vec![b'a'; 1 << 20];
        let pushed = (0..100).try_for_each(|_| {
            assert_eq!(lines.next(), None);
            lines.push(&piece)
        });
        assert!(pushed.is_err());
    }
}
