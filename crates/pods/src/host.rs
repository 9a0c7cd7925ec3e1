//! What can be asked of the Pods of this Node: their logs, a command beside them, a connection into them. The HTTP API of a
//! node is written against this trait, and the runner implements it.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Something to read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Something to write to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A Pod, or a container of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The Pod's namespace.
    pub namespace: String,
    /// The Pod's name.
    pub pod: String,
    /// The container; the Pod's first, or the one its annotation `kubectl.kubernetes.io/default-container` names, if `None`.
    pub container: Option<String>,
}

/// Which of a command's streams are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streams {
    /// Something is sent to it.
    pub stdin: bool,
    /// What it says is wanted.
    pub stdout: bool,
    /// What it complains of is wanted; never with a terminal.
    pub stderr: bool,
    /// It gets a terminal.
    pub tty: bool,
}

/// The Pods of this Node.
pub trait Host: Send + Sync + 'static {
    /// All of them, as the runner last saw them.
    fn pods(&self) -> Vec<Arc<Value>>;

    /// The log of a container, or of the run of it before this one.
    fn logs(&self, target: &Target, previous: bool) -> Result<Logs, Refusal>;

    /// Starts a command in the container's namespaces, as its user.
    fn exec(
        &self,
        target: &Target,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<Session, Refusal>>;

    /// Joins the streams of the container's own process. Only a container with `stdin: true` takes input.
    fn attach(&self, target: &Target, streams: Streams) -> BoxFuture<'static, Result<Session, Refusal>>;

    /// Connects to a port on the loopback address of the Pod's network namespace.
    fn dial(&self, target: &Target, port: u16) -> BoxFuture<'static, Result<TcpStream, Refusal>>;
}

/// Where the log of a container is.
#[derive(Debug, Clone)]
pub struct Logs {
    /// Oldest first, lines as `2026-01-02T03:04:05.678901234Z stdout F text` (`P` instead of `F`: the line goes on in the next).
    /// The last one is written to while the container runs; when it is full it is renamed and a new one takes its name.
    pub files: Vec<PathBuf>,
    /// Cancelled once nothing more is written.
    pub ended: CancellationToken,
}

/// A command that runs, or a process that is attached to.
pub struct Session {
    /// Its input, if wanted. Dropping it, or shutting it down, is the end of the input.
    pub stdin: Option<Output>,
    /// Its output, if wanted; with a terminal also what it complains of.
    pub stdout: Option<Input>,
    /// Its complaints, if wanted.
    pub stderr: Option<Input>,
    /// The size of the terminal: columns, rows.
    pub resize: mpsc::Sender<(u16, u16)>,
    /// How it ended. Dropping it ends a command, and leaves an attached process alone.
    pub exit: BoxFuture<'static, Exit>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this code; 128 and the signal's number if a signal ended it.
    Code(i32),
    /// It could not be started, or nobody knows.
    Failed(String),
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such Pod or container here.
    #[error("{0}")]
    NotFound(String),
    /// It does not run, or did not before.
    #[error("{0}")]
    NotRunning(String),
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// It did not work.
    #[error("{0}")]
    Failed(String),
}
