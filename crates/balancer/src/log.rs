//! Access logs: a line a request or connection, in the form of AWS' classic load balancers, kept in files or an object store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Where lines of one load balancer go. Cheap to clone; a line is never waited for: when the writer is behind, it is lost and counted.
#[derive(Debug, Clone)]
pub struct Log(Arc<()>);

/// What a line says.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When the request or connection came in.
    pub time: jiff::Timestamp,
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

impl Log {
    /// Writes a line.
    pub fn write(&self, entry: Entry) {
        let _ = (self, entry);
    }
}
