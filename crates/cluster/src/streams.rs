//! The streams of a Pod: its log, a command beside it, the input and output of its own process.

use std::path::Path;

use futures_util::SinkExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, AttachedProcess, LogParams, TerminalSize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::compat::FuturesAsyncReadCompatExt;

use crate::{OpenError, connect};

/// The way to the Pods of a namespace.
#[derive(Clone)]
pub struct Streams {
    pods: Api<Pod>,
}

/// Something that is read.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Something that is written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Which part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The container; the API server's choice if `None`.
    pub container: Option<String>,
    /// Also what is yet to come.
    pub follow: bool,
    /// Of the run before this one.
    pub previous: bool,
    /// So many lines at most, the last ones.
    pub tail: Option<i64>,
    /// What was written in the last so many seconds.
    pub since_seconds: Option<i64>,
    /// With the time of each line.
    pub timestamps: bool,
}

/// Which streams are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The container; the API server's choice if `None`.
    pub container: Option<String>,
    /// Something is sent to it.
    pub stdin: bool,
    /// It has a terminal: complaints are part of the output.
    pub tty: bool,
}

/// A process whose streams are ours.
pub struct Attached {
    process: AttachedProcess,
}

/// Why there is no stream, in the API server's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl Streams {
    /// The way to the Pods of a namespace of the cluster that a kubeconfig names.
    pub async fn connect(kubeconfig: Option<&Path>, namespace: &str) -> Result<Streams, OpenError> {
        let client = connect::client(kubeconfig, None).await?;
        Ok(Streams { pods: Api::namespaced(client, namespace) })
    }

    /// A log.
    pub async fn log(&self, pod: &str, log: &Log) -> Result<Input, Refused> {
        let params = LogParams {
            container: log.container.clone(),
            follow: log.follow,
            previous: log.previous,
            tail_lines: log.tail,
            since_seconds: log.since_seconds,
            timestamps: log.timestamps,
            ..LogParams::default()
        };
        let stream = self.pods.log_stream(pod, &params).await.map_err(refused)?;
        Ok(Box::new(Box::pin(stream).compat()))
    }

    /// Starts a command beside the process of a container.
    pub async fn exec(&self, pod: &str, command: &[String], wanted: &Wanted) -> Result<Attached, Refused> {
        let process = self.pods.exec(pod, command, &params(wanted)).await.map_err(refused)?;
        Ok(Attached { process })
    }

    /// Joins the streams of the process of a container.
    pub async fn attach(&self, pod: &str, wanted: &Wanted) -> Result<Attached, Refused> {
        let process = self.pods.attach(pod, &params(wanted)).await.map_err(refused)?;
        Ok(Attached { process })
    }
}

fn params(wanted: &Wanted) -> AttachParams {
    let params = AttachParams { container: wanted.container.clone(), ..AttachParams::default() };
    params.stdin(wanted.stdin).stdout(true).stderr(!wanted.tty).tty(wanted.tty)
}

impl Attached {
    /// Its input. Shutting it down is the end of the input.
    pub fn stdin(&mut self) -> Option<Output> {
        self.process.stdin().map(|stream| Box::new(stream) as Output)
    }

    /// Its output.
    pub fn stdout(&mut self) -> Option<Input> {
        self.process.stdout().map(|stream| Box::new(stream) as Input)
    }

    /// Its complaints.
    pub fn stderr(&mut self) -> Option<Input> {
        self.process.stderr().map(|stream| Box::new(stream) as Input)
    }

    /// Who tells it how large its terminal is.
    pub fn resizer(&mut self) -> Option<impl FnMut(u16, u16) -> BoxFuture<'static, ()> + Send + use<>> {
        let sizes = self.process.terminal_size()?;
        Some(move |width, height| {
            let mut sizes = sizes.clone();
            // Who has ended does not care.
            Box::pin(async move { drop(sizes.send(TerminalSize { width, height }).await) }) as BoxFuture<'static, ()>
        })
    }

    /// How it ended; `None`: nobody said. It ends when what it writes has been read.
    pub fn ended(&mut self) -> BoxFuture<'static, Option<Ended>> {
        let Some(status) = self.process.take_status() else { return Box::pin(async { None }) };
        Box::pin(async move {
            let status = status.await?;
            if status.status.as_deref() == Some("Success") {
                return Some(Ended { code: Some(0), message: String::new() });
            }
            let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
            let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
            let code = code.and_then(|cause| cause.message.as_deref()?.parse().ok());
            Some(Ended { code, message: status.message.unwrap_or_default() })
        })
    }
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, if it ran at all.
    pub code: Option<i32>,
    /// What the API server says about that.
    pub message: String,
}

fn refused(error: kube::Error) -> Refused {
    match error {
        kube::Error::Api(status) => Refused(status.message.clone()),
        other => Refused(causes(&other)),
    }
}

/// An error with what led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let all = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    let mut texts: Vec<String> = Vec::new();
    // Some tell their cause themselves.
    for text in all {
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}
