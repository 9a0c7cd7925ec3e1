//! Which of many sockets can be read or written? One wait for all of them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::sys::relay as sys;

/// A place to wait for many sockets. What is closed is no longer waited for.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

/// Bits that say that bytes, or their end, can be read.
const READ: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
const WRITE: u32 = libc::EPOLLOUT as u32;
const EDGE: u32 = libc::EPOLLET as u32;

impl Poller {
    /// A new one.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: sys::epoll()? })
    }

    /// Says for as long as there is something to read.
    pub fn watch(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, token)
    }

    /// The same for something several pollers watch: not all of them are told.
    pub fn watch_shared(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32, token)
    }

    /// Says once when there is more to read.
    pub fn watch_reads(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, READ | EDGE, token)
    }

    /// Says once when there is more to read, or room to write again.
    pub fn watch_all(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, READ | WRITE | EDGE, token)
    }

    /// From now on also says when there is room to write again.
    pub fn watch_writes_too(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, READ | WRITE | EDGE, token)
    }

    /// Is silent about it from now on.
    pub fn forget(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// Waits for something to happen, for so long or for ever. When a signal comes, nothing did.
    pub fn wait(&self, events: &mut Events, limit: Option<Duration>) -> io::Result<()> {
        // Rounded up, so that what is due at the limit is due when this returns.
        let milliseconds =
            limit.map_or(-1, |limit| i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
        events.count = 0;
        events.count = sys::epoll_wait(self.epoll.as_fd(), &mut events.found, milliseconds)?;
        Ok(())
    }

    fn control(&self, operation: i32, fd: BorrowedFd<'_>, events: u32, token: u64) -> io::Result<()> {
        sys::epoll_control(self.epoll.as_fd(), operation, fd, libc::epoll_event { events, u64: token })
    }
}

/// What happened, as far as it is known.
pub struct Events {
    found: Vec<libc::epoll_event>,
    count: usize,
}

impl Events {
    /// Room for so many.
    pub fn with_capacity(capacity: usize) -> Events {
        Events { found: vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)], count: 0 }
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.found[..self.count].iter().map(|event| Ready { token: event.u64, bits: event.events })
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// What happened to one socket.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// The one it was watched with.
    pub token: u64,
    bits: u32,
}

impl Ready {
    /// Whether something, if only the end or a mistake, can be read.
    pub fn readable(self) -> bool {
        self.bits & (READ | FAILED) != 0
    }

    /// Whether something can be written, or that fails at once.
    pub fn writable(self) -> bool {
        self.bits & (WRITE | FAILED) != 0
    }

    /// Whether nothing comes after what is there.
    pub fn ends(self) -> bool {
        self.bits & (libc::EPOLLRDHUP as u32 | FAILED) != 0
    }

    /// Whether it is closed, or broken.
    pub fn failed(self) -> bool {
        self.bits & FAILED != 0
    }
}

const FAILED: u32 = (libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// Wakes a thread that waits in a [`Poller`].
#[derive(Debug)]
pub struct Waker {
    counter: File,
}

impl Waker {
    /// A new one, to be watched by the one to be woken.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker { counter: File::from(sys::event_counter()?) })
    }

    /// Wakes it, now or as soon as it waits.
    pub fn wake(&self) {
        // It fails only when the counter is full, and then it is awake.
        let _ = (&self.counter).write(&1u64.to_ne_bytes());
    }

    /// Takes note of having been woken.
    pub fn woken(&self) {
        // It fails only when nobody did.
        let _ = (&self.counter).read(&mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}
