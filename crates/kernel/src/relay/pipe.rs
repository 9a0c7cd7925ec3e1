//! Pipes through which bytes pass from socket to socket without being copied into this process.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use crate::sys::relay as sys;

/// How many bytes may be in a pipe: as much as unprivileged processes may ask for.
const SIZE: i32 = 1 << 20;

/// A pipe, with the number of bytes in it.
#[derive(Debug)]
pub struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
    held: usize,
}

impl Pipe {
    /// An empty one.
    pub fn new() -> io::Result<Pipe> {
        let (reader, writer) = io::pipe()?;
        // Smaller is slower, and no mistake.
        let _ = sys::set_pipe_size(writer.as_fd(), SIZE);
        Ok(Pipe { reader, writer, held: 0 })
    }

    /// How many bytes are in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes what a connection has, up to so much; 0: it has ended. Only an empty pipe surely has room.
    pub fn fill(&mut self, from: &impl AsFd, most: usize) -> io::Result<usize> {
        let moved = sys::splice(from.as_fd(), self.writer.as_fd(), most)?;
        self.held += moved;
        Ok(moved)
    }

    /// Gives a connection as much of what is in it as that takes.
    pub fn drain(&mut self, to: &impl AsFd) -> io::Result<usize> {
        let moved = sys::splice(self.reader.as_fd(), to.as_fd(), self.held)?;
        self.held -= moved.min(self.held);
        Ok(moved)
    }
}
