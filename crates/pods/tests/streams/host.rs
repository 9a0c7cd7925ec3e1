//! A node whose Pods are plain processes: commands run beside the test, and logs are files it wrote.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use fairlead_pods::host::{Exit, Host, Logs, Refusal, Session, Streams, Target};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The node.
#[derive(Default)]
pub(crate) struct Plain {
    /// Log files by Pod and container.
    pub(crate) logs: Mutex<HashMap<(String, String), PathBuf>>,
    /// Cancelled when containers have ended.
    pub(crate) ended: CancellationToken,
    /// The sizes terminals were given.
    pub(crate) sizes: Arc<Mutex<Vec<(u16, u16)>>>,
}

impl Host for Plain {
    fn pods(&self) -> Vec<Arc<Value>> {
        vec![Arc::new(json!({"metadata": {"name": "p"}}))]
    }

    fn logs(&self, target: &Target, previous: bool) -> Result<Logs, Refusal> {
        let container = target.container.clone().unwrap_or_default();
        if previous {
            let why = format!("previous terminated container {container:?} in pod {:?} not found", target.pod);
            return Err(Refusal::BadRequest(why));
        }
        let logs = self.logs.lock().expect("no panic");
        let file = logs.get(&(target.pod.clone(), container)).cloned();
        let why = || Refusal::NotFound(format!("pod {:?} has no log", target.pod));
        Ok(Logs { files: vec![file.ok_or_else(why)?], ended: self.ended.clone() })
    }

    fn exec(&self, _: &Target, command: Vec<String>, streams: Streams) -> BoxFuture<'static, Result<Session, Refusal>> {
        let sizes = self.sizes.clone();
        Box::pin(async move { start(command, streams, sizes) })
    }

    fn attach(&self, target: &Target, streams: Streams) -> BoxFuture<'static, Result<Session, Refusal>> {
        let sizes = self.sizes.clone();
        let echo = format!("echo attached to {}; while read line; do echo got $line; done", target.pod);
        Box::pin(async move { start(vec!["sh".to_owned(), "-c".to_owned(), echo], streams, sizes) })
    }

    fn dial(&self, _: &Target, port: u16) -> BoxFuture<'static, Result<TcpStream, Refusal>> {
        Box::pin(async move {
            let connected = TcpStream::connect(("127.0.0.1", port)).await;
            connected.map_err(|error| Refusal::Failed(format!("dial tcp4 127.0.0.1:{port}: {error}")))
        })
    }
}

fn start(mut words: Vec<String>, streams: Streams, sizes: Arc<Mutex<Vec<(u16, u16)>>>) -> Result<Session, Refusal> {
    if streams.tty {
        // A terminal of its own.
        let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        words = ["script", "-qec", &line.join(" "), "/dev/null"].map(str::to_owned).to_vec();
    }
    let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(pipe(streams.stdin)).stdout(pipe(streams.stdout)).stderr(pipe(streams.stderr));
    let mut child = command.kill_on_drop(true).spawn().map_err(|error| {
        Refusal::Failed(format!("exec: {:?}: executable file not found in $PATH ({error})", words[0]))
    })?;
    let (resize, mut given) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(size) = given.recv().await {
            sizes.lock().expect("no panic").push(size);
        }
    });
    Ok(Session {
        stdin: child.stdin.take().map(|pipe| Box::new(pipe) as _),
        stdout: child.stdout.take().map(|pipe| Box::new(pipe) as _),
        stderr: child.stderr.take().map(|pipe| Box::new(pipe) as _),
        resize,
        exit: Box::pin(async move {
            match child.wait().await {
                Ok(status) => Exit::Code(status.code().unwrap_or(137)),
                Err(error) => Exit::Failed(error.to_string()),
            }
        }),
    })
}
