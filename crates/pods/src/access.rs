//! The runner's answers to what others ask of its Pods.

use std::path::PathBuf;
use std::sync::Arc;

use fairlead_api::Look;
use fairlead_kernel::netns::Namespace;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::container::Run;
use crate::exec;
use crate::host::{Exit, Host, Logs, Refusal, Session, Streams, Target};
use crate::node::{Node, Shown, lock};
use crate::runner::Runner;
use crate::shim::launch;
use crate::shim::log::numbered;
use crate::shim::wire::{self, Kind};
use crate::status;
use crate::unit::{State, Unit};

/// Room for what one side has said and the other has not read.
const BUFFER: usize = 64 << 10;
/// The annotation that names the container to look at.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

impl Runner {
    /// A way to ask for logs, commands and connections. Cheap to clone, and useful while the runner runs.
    pub fn host(&self) -> Arc<dyn Host> {
        Arc::new(Access { node: self.node() })
    }
}

struct Access {
    node: Arc<Node>,
}

impl Access {
    fn pod(&self, target: &Target) -> Result<Shown, Refusal> {
        let slots: Vec<_> = lock(&self.node.slots).values().cloned().collect();
        let named = |shown: &Shown| {
            let meta = shown.pod.at("metadata");
            meta.text("namespace") == target.namespace && meta.text("name") == target.pod
        };
        let found = slots.iter().map(|slot| slot.shown()).filter(named);
        // One that goes may still be there when the next of its name has come.
        let newest = found.max_by_key(|shown| shown.pod.at("metadata").text("creationTimestamp").to_owned());
        newest.ok_or_else(|| {
            Refusal::NotFound(format!("pod {:?} not found", format!("{}/{}", target.namespace, target.pod)))
        })
    }

    fn unit<'a>(&self, shown: &'a Shown, target: &Target) -> Result<&'a Unit, Refusal> {
        let meta = shown.pod.at("metadata");
        let first = || shown.pod.at("spec").list("containers").first().map(|container| container.text("name"));
        let usual = Some(meta.at("annotations").text(DEFAULT_CONTAINER)).filter(|name| !name.is_empty());
        let name = target.container.as_deref().or(usual).or_else(first).unwrap_or_default();
        let found = shown.units.iter().find(|unit| unit.name == name);
        found.ok_or_else(|| Refusal::NotFound(format!("container {name:?} not found in pod {:?}", target.pod)))
    }

    /// The present run of a container that runs.
    fn running(&self, target: &Target) -> Result<(Shown, Run, String), Refusal> {
        let shown = self.pod(target)?;
        let unit = self.unit(&shown, target)?;
        if !unit.is_running() {
            let message = format!("container {:?} in pod {:?} does not run", unit.name, target.pod);
            return Err(Refusal::NotRunning(message));
        }
        let name = unit.name.clone();
        let run = self.node.run(shown.pod.at("metadata").text("uid"), &name, unit.runs.saturating_sub(1));
        Ok((shown, run, name))
    }
}

impl Host for Access {
    fn pods(&self) -> Vec<Arc<Value>> {
        let slots: Vec<_> = lock(&self.node.slots).values().cloned().collect();
        slots.iter().map(|slot| slot.shown().pod).collect()
    }

    fn logs(&self, target: &Target, previous: bool) -> Result<Logs, Refusal> {
        let shown = self.pod(target)?;
        let unit = self.unit(&shown, target)?;
        // A run that has ended is the one before as soon as there is to be another.
        let again = unit.ended().is_some_and(|ended| status::policy(&shown.pod).again(ended.code));
        let number = if previous && !again { unit.runs.checked_sub(2) } else { unit.runs.checked_sub(1) };
        let waits = || {
            let (name, pod) = (&unit.name, &target.pod);
            Refusal::NotRunning(match &unit.state {
                _ if previous => format!("previous terminated container {name:?} in pod {pod:?} not found"),
                State::Waiting { reason, .. } if !reason.is_empty() => {
                    format!("container {name:?} in pod {pod:?} is waiting to start: {reason}")
                }
                _ => format!("container {name:?} in pod {pod:?} is waiting to start: ContainerCreating"),
            })
        };
        let file = self.node.log(&shown.pod, &unit.name, number.ok_or_else(waits)?);
        let ended = match shown.ends.get(&unit.name).filter(|_| !previous && unit.is_running()) {
            Some(end) => end.clone(),
            None => {
                let over = CancellationToken::new();
                over.cancel();
                over
            }
        };
        let older = (1..self.node.settings.log_files).rev().map(|number| numbered(&file, number));
        let mut files: Vec<PathBuf> = older.filter(|file| file.exists()).collect();
        files.push(file);
        Ok(Logs { files, ended })
    }

    fn exec(
        &self,
        target: &Target,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<Session, Refusal>> {
        let running = self.running(target);
        let node = self.node.clone();
        async move {
            let (_, run, _) = running?;
            exec::session(&node.settings, &run, command, streams)
        }
        .boxed()
    }

    fn attach(&self, target: &Target, streams: Streams) -> BoxFuture<'static, Result<Session, Refusal>> {
        let running = self.running(target);
        async move {
            let (shown, run, name) = running?;
            let spec = crate::worker::container_of(&shown.pod, &name);
            if streams.stdin && !spec.flag("stdin") {
                let message = format!("container {name:?} takes no input: it has no stdin: true");
                return Err(Refusal::BadRequest(message));
            }
            attach(&run, streams).await
        }
        .boxed()
    }

    fn dial(&self, target: &Target, port: u16) -> BoxFuture<'static, Result<TcpStream, Refusal>> {
        let shown = self.pod(target);
        let pod = target.pod.clone();
        async move {
            let network = shown?.network;
            let dialled = tokio::task::spawn_blocking(move || dial(network, port)).await;
            let stream = dialled.map_err(|error| Refusal::Failed(error.to_string()))??;
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            stream.map_err(|error| Refusal::Failed(format!("port {port} of pod {pod:?}: {error}")))
        }
        .boxed()
    }
}

fn dial(network: Option<PathBuf>, port: u16) -> Result<std::net::TcpStream, Refusal> {
    let connect = || {
        std::net::TcpStream::connect(("127.0.0.1", port)).or_else(|first| {
            // A program may listen on one of them only; the first mistake is the one to tell.
            std::net::TcpStream::connect(("::1", port)).map_err(|_| first)
        })
    };
    let connected = match network {
        Some(file) => {
            let namespace = Namespace::at(&file).map_err(|error| Refusal::NotRunning(error.to_string()))?;
            namespace.run(connect).map_err(|error| Refusal::Failed(error.to_string()))?
        }
        None => connect(),
    };
    connected.map_err(|error| Refusal::Failed(format!("failed to connect to localhost:{port} inside the Pod: {error}")))
}

/// Joins the streams of a container's process through its shim.
async fn attach(run: &Run, streams: Streams) -> Result<Session, Refusal> {
    let failed = |error: std::io::Error| Refusal::Failed(format!("attaching: {error}"));
    let mut connection = run.connect().await.map_err(failed)?;
    wire::send(&mut connection, Kind::Attach, &[]).await.map_err(failed)?;
    let (from, to) = connection.into_split();
    let (resize, resizes) = mpsc::channel(4);
    let (stdin, typed) = tokio::io::duplex(BUFFER);
    let (stdout, shown) = tokio::io::duplex(BUFFER);
    let (stderr, complained) = tokio::io::duplex(BUFFER);
    let input = tokio::spawn(send(to, streams.stdin.then_some(stdin), resizes));
    let run = run.clone();
    let exit = async move {
        let carried = carry(from, streams.stdout.then_some(shown), streams.stderr.then_some(complained)).await;
        input.abort();
        match carried {
            Some(code) => Exit::Code(code),
            None => Exit::Code(run.ended().await.code),
        }
    };
    // It must go on whether or not somebody waits for the end.
    let exit = tokio::spawn(exit);
    Ok(Session {
        stdin: streams.stdin.then(|| Box::new(typed) as _),
        stdout: streams.stdout.then(|| Box::new(stdout) as _),
        stderr: streams.stderr.then(|| Box::new(stderr) as _),
        resize,
        exit: async move { exit.await.unwrap_or_else(|error| Exit::Failed(error.to_string())) }.boxed(),
    })
}

/// Passes input and sizes on.
async fn send(
    mut to: tokio::net::unix::OwnedWriteHalf,
    mut input: Option<DuplexStream>,
    mut resizes: mpsc::Receiver<(u16, u16)>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let typed = async {
            match &mut input {
                Some(input) => input.read(&mut buffer).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            length = typed => {
                let length = length?;
                wire::send(&mut to, Kind::Input, &buffer[..length]).await?;
                if length == 0 {
                    input = None;
                }
            }
            Some((columns, rows)) = resizes.recv() => {
                let size = [columns.to_be_bytes(), rows.to_be_bytes()].concat();
                wire::send(&mut to, Kind::Resize, &size).await?;
            }
        }
    }
}

/// Passes output on, until the process has ended: its code, if the shim said so.
async fn carry(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut shown: Option<DuplexStream>,
    mut complained: Option<DuplexStream>,
) -> Option<i32> {
    while let Ok(Some((kind, bytes))) = wire::receive(&mut from).await {
        match kind {
            Kind::Output => put(&mut shown, &bytes).await,
            Kind::Complaints => put(&mut complained, &bytes).await,
            Kind::State => {
                let state: Option<launch::State> = serde_json::from_slice(&bytes).ok();
                if let Some(end) = state.and_then(|state| state.ended) {
                    return Some(end.code);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whoever stopped reading gets no more.
async fn put(to: &mut Option<DuplexStream>, bytes: &[u8]) {
    if let Some(writer) = to
        && writer.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}
