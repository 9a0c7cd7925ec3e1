//! One direction of a connection: takes bytes from one side for as long as the other side takes them.
//!
//! What is little is read and written. When a read fills the whole buffer more will come, and it goes through a pipe without
//! being copied ([`Pipe`]). Nothing more is read until all of what was read is written: a slow reader slows its writer down.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use fairlead_kernel::relay::Pipe;

use super::budget::Budget;
use super::target::Count;

/// How much is read at once.
const BUFFER: usize = 16 << 10;
/// How much goes through a pipe at once.
const CHUNK: usize = 1 << 20;
/// How much may pass before others have their turn.
const TURN: usize = 4 << 20;
/// How many pipes wait to be used again.
const MAX_IDLE_PIPES: usize = 32;

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    held: Held,
    /// There may be something to read.
    readable: bool,
    /// Nothing comes after what is there to be read.
    ending: bool,
    /// The other side takes nothing now.
    blocked: bool,
    /// Much is coming.
    bulk: bool,
    /// All is read.
    ended: bool,
    /// All is written.
    done: bool,
}

/// What was read and is not written yet.
#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Bytes(Box<[u8]>),
    Pipe(Pipe),
}

/// Why a flow stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// There is nothing to read.
    Reads,
    /// The other side takes nothing.
    Writes,
    /// It is the turn of others.
    Turn,
    /// It has ended, and the other side knows.
    Done,
}

/// What flows of one worker share.
#[derive(Debug)]
pub(crate) struct Tools {
    buffer: Box<[u8]>,
    idle: Vec<Pipe>,
    budget: Arc<Budget>,
}

impl Tools {
    pub(crate) fn new(budget: Arc<Budget>) -> Tools {
        Tools { buffer: vec![0; BUFFER].into(), idle: Vec::new(), budget }
    }

    fn take_pipe(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.idle.pop() {
            return Some(pipe);
        }
        if !self.budget.take(2) {
            return None;
        }
        let pipe = Pipe::new().ok();
        if pipe.is_none() {
            self.budget.give(2);
        }
        pipe
    }

    fn give_pipe(&mut self, pipe: Pipe) {
        if pipe.held() == 0 && self.idle.len() < MAX_IDLE_PIPES {
            self.idle.push(pipe);
        } else {
            drop(pipe);
            self.budget.give(2);
        }
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.budget.give(self.idle.len() * 2);
    }
}

impl Flow {
    /// There may be something to read; `ending`: and nothing after it.
    pub(crate) fn can_read(&mut self, ending: bool) {
        self.readable = true;
        self.ending |= ending;
    }

    /// The other side may take something.
    pub(crate) fn can_write(&mut self) {
        self.blocked = false;
    }

    /// Whether all of it has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Carries what can be carried. `last`: when this ends, the connection does.
    pub(crate) fn pump(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        last: bool,
        with: Carrier<'_>,
    ) -> io::Result<Pause> {
        let Carrier { tools, count } = with;
        let mut turn = TURN;
        loop {
            if self.done {
                return Ok(Pause::Done);
            }
            if self.blocked || !self.flush(to)? {
                self.blocked = true;
                return Ok(Pause::Writes);
            }
            if self.ended {
                self.release(tools);
                self.done = true;
                if !last {
                    // It fails when the other side is gone, which its own flow finds out.
                    let _ = to.shutdown(Shutdown::Write);
                }
            } else if !self.readable {
                self.release(tools);
                return Ok(Pause::Reads);
            } else if turn == 0 {
                return Ok(Pause::Turn);
            } else {
                let moved = self.read(from, to, tools)?;
                count.bytes(moved);
                turn = turn.saturating_sub(moved);
            }
        }
    }

    /// Gives back what is not in use.
    pub(crate) fn release(&mut self, tools: &mut Tools) {
        if let Held::Pipe(pipe) = std::mem::take(&mut self.held) {
            tools.give_pipe(pipe);
        }
    }

    /// Writes what is held. False: not all of it was taken.
    fn flush(&mut self, to: &TcpStream) -> io::Result<bool> {
        loop {
            let written = match &mut self.held {
                Held::Nothing => return Ok(true),
                Held::Pipe(pipe) if pipe.held() == 0 => return Ok(true),
                Held::Pipe(pipe) => pipe.drain(to),
                Held::Bytes(bytes) => (&*to).write(bytes),
            };
            match (written, &mut self.held) {
                (Ok(0), _) => return Err(ErrorKind::WriteZero.into()),
                (Ok(written), Held::Bytes(bytes)) if written < bytes.len() => *bytes = bytes[written..].into(),
                (Ok(_), Held::Bytes(_)) => self.held = Held::Nothing,
                (Ok(_), _) => {}
                (Err(error), _) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// Reads, when nothing is held.
    fn read(&mut self, from: &TcpStream, to: &TcpStream, tools: &mut Tools) -> io::Result<usize> {
        if self.bulk && matches!(self.held, Held::Nothing) {
            self.held = tools.take_pipe().map_or(Held::Nothing, Held::Pipe);
        }
        let read = match &mut self.held {
            Held::Pipe(pipe) => pipe.fill(from, CHUNK),
            _ => (&*from).read(&mut tools.buffer),
        };
        match read {
            Ok(0) => self.ended = true,
            Ok(read) if matches!(self.held, Held::Pipe(_)) => self.bulk = read >= BUFFER,
            Ok(read) => {
                self.bulk = read == BUFFER;
                // What is behind a short read is not there yet, and will be told.
                self.readable = self.bulk || self.ending;
                self.write(&tools.buffer[..read], to)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                return Ok(0);
            }
            Err(error) => return Err(error),
        }
        read
    }

    /// Writes what was read, and keeps the rest.
    fn write(&mut self, bytes: &[u8], to: &TcpStream) -> io::Result<()> {
        let written = match (&*to).write(bytes) {
            Ok(written) => written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        if written < bytes.len() {
            self.held = Held::Bytes(bytes[written..].into());
        }
        Ok(())
    }
}

/// What a flow needs to carry.
#[derive(Debug)]
pub(crate) struct Carrier<'a> {
    pub(crate) tools: &'a mut Tools,
    pub(crate) count: &'a Count,
}
