//! The log of a container: lines as the container runtime interface has them, in files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use jiff::Timestamp;

use super::launch::Log;

/// A longer line is written in parts.
const LONGEST: usize = 16 * 1024;

/// The files.
pub(super) struct LogFile {
    log: Log,
    file: File,
    size: u64,
}

impl LogFile {
    /// Goes on where the file ends.
    pub(super) fn open(log: Log) -> io::Result<LogFile> {
        let file = OpenOptions::new().create(true).append(true).open(&log.file)?;
        let size = file.metadata()?.len();
        Ok(LogFile { log, file, size })
    }

    fn line(&mut self, now: Timestamp, stream: &str, part: bool, text: &[u8]) -> io::Result<()> {
        let tag = if part { 'P' } else { 'F' };
        let mut line = format!("{now:.9} {stream} {tag} ").into_bytes();
        line.extend_from_slice(text);
        line.push(b'\n');
        if self.size > 0 && self.size + line.len() as u64 > self.log.size {
            self.rotate()?;
        }
        self.file.write_all(&line)?;
        self.size += line.len() as u64;
        Ok(())
    }

    /// `0.log` becomes `0.log.1`, and so on; the oldest goes.
    fn rotate(&mut self) -> io::Result<()> {
        let oldest = self.log.files.saturating_sub(1);
        if oldest == 0 {
            self.file.set_len(0)?;
        }
        for number in (1..oldest).rev() {
            let _ = fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        if oldest > 0 {
            fs::rename(&self.log.file, self.numbered(1))?;
        }
        self.file = OpenOptions::new().create(true).append(true).open(&self.log.file)?;
        self.size = 0;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        numbered(&self.log.file, number)
    }
}

/// The name of an older file.
pub(crate) fn numbered(file: &std::path::Path, number: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// One stream on its way into the log.
pub(super) struct Lines {
    stream: &'static str,
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn new(stream: &'static str) -> Lines {
        Lines { stream, begun: Vec::new() }
    }

    /// Takes what came. A log that cannot be written loses lines; the container goes on.
    pub(super) fn take(&mut self, log: &mut LogFile, now: Timestamp, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            let whole = self.begun.last() == Some(&b'\n');
            while self.begun.len() > LONGEST {
                let rest = self.begun.split_off(LONGEST);
                let part = std::mem::replace(&mut self.begun, rest);
                let ends = self.begun == b"\n";
                let _ = log.line(now, self.stream, !ends, &part);
                if ends {
                    self.begun.clear();
                }
            }
            if whole && !self.begun.is_empty() {
                self.begun.pop();
                let _ = log.line(now, self.stream, false, &self.begun);
                self.begun.clear();
            }
        }
    }

    /// Writes the line that was begun, if any. The container did not end it, so it is a part of a
    /// line, as container runtimes have it: whoever reads the log adds no line end.
    pub(super) fn end(&mut self, log: &mut LogFile, now: Timestamp) {
        if !self.begun.is_empty() {
            let _ = log.line(now, self.stream, true, &std::mem::take(&mut self.begun));
        }
    }
}

#[cfg(test)]
mod tests;
