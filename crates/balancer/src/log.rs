//! Access logs: a line a request or connection, in the form of AWS' classic load balancers, kept in files or an object store.
//!
//! ```text
//! Log::write --> a queue, bounded --> writer (a thread, ten times a second) --> NAME.log.partial --> NAME.log
//!                                                                                in the directory | in the spool --> PUT --> S3
//! ```

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

pub use s3::Bucket;
pub use writer::{Logs, Settings};

mod line;
mod name;
mod s3;
mod sign;
mod spool;
mod writer;

/// Where lines of one load balancer go. Cheap to clone; a line is never waited for: when the writer is behind, it is lost and counted.
#[derive(Debug, Clone)]
pub struct Log(Arc<Shared>);

/// Where the log of a load balancer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The name of the load balancer, in lines and in names of files.
    pub name: String,
    /// An address of it, in names of files.
    pub address: IpAddr,
    /// The bucket.
    pub target: Target,
    /// What names in it begin with; may be empty.
    pub prefix: String,
    /// How often a file is finished: 5 or 60 minutes, by the clock.
    pub interval: Duration,
}

/// What a bucket is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A directory.
    Directory(PathBuf),
    /// An object store that speaks S3.
    S3(Bucket),
}

/// What a line says.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When the request or connection came in.
    pub time: Timestamp,
    /// The client.
    pub client: SocketAddr,
    /// Who answered it; `None`: nobody.
    pub backend: Option<SocketAddr>,
    /// Until it was sent to the backend, until the backend's answer began, until that was sent; `None`: it did not come to that.
    pub times: [Option<Duration>; 3],
    /// What the client was answered, and what the backend had answered; 0 for connections of bytes.
    pub status: (u16, u16),
    /// Bytes from the client (of bodies, where they are understood) and to it.
    pub bytes: (u64, u64),
    /// `GET https://example.com:443/ HTTP/1.1`; `None` for connections of bytes.
    pub request: Option<String>,
    /// The client's `User-Agent`.
    pub agent: Option<String>,
    /// Suite and version of TLS towards the client.
    pub tls: Option<(String, String)>,
}

/// What writers of lines and the writer of files share. There is no waking up: the writer looks ten times a second, which costs
/// a busy load balancer less than being told of every line.
#[derive(Debug)]
struct Shared {
    destination: Destination,
    waiting: Mutex<Waiting>,
    /// Bytes that wait in all logs together.
    in_all: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

/// Lines that wait for the writer.
#[derive(Debug, Default)]
struct Waiting {
    entries: Vec<Entry>,
    /// Bytes of what clients wrote in them.
    bytes: u64,
}

/// Lines that wait for the writer: half a million a second can be written, if each is looked at in time.
const LONGEST_QUEUE: usize = 50_000;
/// Bytes of clients in lines of one log that wait: a disk that stands still must not cost memory in
/// proportion to what strangers send.
const LARGEST_QUEUE: u64 = 16 << 20;
/// Bytes of clients in lines of all logs that wait.
const LARGEST_IN_ALL: u64 = 64 << 20;
/// Bytes of a request line, or of a client's name for itself, that are kept. AWS cuts them there,
/// too (Access logs for your Application Load Balancer, fields `request` and `user_agent`).
const LONGEST_TEXT: usize = 8 << 10;

impl Log {
    fn new(destination: Destination, in_all: Arc<AtomicU64>, lost: Arc<AtomicU64>) -> Log {
        Log(Arc::new(Shared { destination, waiting: Mutex::default(), in_all, lost }))
    }

    /// Writes a line. Texts of clients are cut where they are too long.
    pub fn write(&self, mut entry: Entry) {
        let mut bytes = 0;
        for text in [&mut entry.request, &mut entry.agent].into_iter().flatten() {
            if text.len() > LONGEST_TEXT {
                text.truncate(text.floor_char_boundary(LONGEST_TEXT));
                text.shrink_to_fit();
            }
            bytes += text.len() as u64;
        }
        let Shared { waiting, in_all, lost, .. } = &*self.0;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = waiting.entries.len() < LONGEST_QUEUE
            && waiting.bytes + bytes <= LARGEST_QUEUE
            && in_all.load(Ordering::Relaxed) + bytes <= LARGEST_IN_ALL;
        if !fits {
            lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        in_all.fetch_add(bytes, Ordering::Relaxed);
        waiting.bytes += bytes;
        waiting.entries.push(entry);
    }

    /// Takes what waits, and leaves a place of the same size.
    fn take(&self, into: &mut Vec<Entry>) {
        into.clear();
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.entries, into);
        let taken = std::mem::take(&mut waiting.bytes);
        self.0.in_all.fetch_sub(taken, Ordering::Relaxed);
    }

    fn destination(&self) -> &Destination {
        &self.0.destination
    }

    /// Whether nobody writes lines any more.
    fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

#[cfg(test)]
mod tests;
