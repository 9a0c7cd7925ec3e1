//! Does something answer? One look at a process or host by HTTP, TCP or gRPC, in the kubelet's words, and what to make of
//! several looks.
//!
//! ```text
//! Spec (a Pod's probe) or Wish (http:/healthz) --> Check --look--> Outcome --> Tally --> State changes
//! ```
//! Whoever answers is not trusted: what is read is bounded in size and in time.

mod bounded;
mod dial;
mod duration;
mod grpc;
mod http;
mod spec;
mod tally;
mod wish;

use std::io;
use std::time::Duration;

use bounded::Bounded;

use tokio::io::{AsyncRead, AsyncWrite};

pub use duration::duration;
pub use spec::{Handler, Invalid, Spec};
pub use tally::{Schedule, State, Tally};
pub use wish::{Unreadable, Wish};

/// What to look at, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// A GET that is answered with 200 to 399.
    Http(Http),
    /// A connection that comes about.
    Tcp {
        /// An address or a name.
        host: String,
        /// The port.
        port: u16,
    },
    /// `grpc.health.v1.Health/Check` says SERVING.
    Grpc {
        /// An address or a name.
        host: String,
        /// The port.
        port: u16,
        /// The service asked for; empty for the server as a whole.
        service: String,
    },
}

/// A request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Whether with TLS.
    pub scheme: Scheme,
    /// An address or a name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// With the query, if any.
    pub path: String,
    /// Headers, one of which may be `Host`.
    pub headers: Vec<(String, String)>,
}

/// Whether a request is made with TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Without.
    #[default]
    Http,
    /// With, whatever certificate the server shows.
    Https,
}

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It answers as it should.
    Success,
    /// It does, but something is odd.
    Warning(String),
    /// It does not, and why.
    Failure(String),
}

impl Outcome {
    /// Whether it answers.
    pub fn is_success(&self) -> bool {
        !matches!(self, Outcome::Failure(_))
    }

    /// What there is to say.
    pub fn message(&self) -> &str {
        match self {
            Outcome::Success => "",
            Outcome::Warning(message) | Outcome::Failure(message) => message,
        }
    }
}

/// What a connection is.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// Looks once. Takes no longer than the time-out.
pub async fn look(check: &Check, timeout: Duration) -> Outcome {
    look_with(check, timeout, dial::tcp).await
}

/// The same through connections of the caller's, as into another network namespace. `dial` gets a host and a port.
pub async fn look_with<D, F, T>(check: &Check, timeout: Duration, dial: D) -> Outcome
where
    D: Fn(String, u16) -> F,
    F: Future<Output = io::Result<T>>,
    T: Stream,
{
    let dial = |host: String, port: u16| {
        let dialed = dial(host, port);
        async move { dialed.await.map(Bounded::new) }
    };
    let looked = async {
        match check {
            Check::Http(request) => http::look(request, &dial).await,
            Check::Tcp { host, port } => match dial(host.clone(), *port).await {
                Ok(_) => Outcome::Success,
                Err(error) => Outcome::Failure(dial::told(host, *port, &error)),
            },
            Check::Grpc { host, port, service } => grpc::look(host, *port, service, &dial).await,
        }
    };
    tokio::time::timeout(timeout, looked).await.unwrap_or_else(|_| Outcome::Failure(late(check, timeout)))
}

/// What is said when nothing came in time.
fn late(check: &Check, timeout: Duration) -> String {
    match check {
        Check::Http(request) => format!(
            "Get {:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            http::url(request)
        ),
        Check::Tcp { host, port } => format!("dial tcp {}: i/o timeout", dial::joined(host, *port)),
        Check::Grpc { .. } => format!("timeout: health rpc did not complete within {timeout:?}"),
    }
}
