//! Commands beside a container's process: for people who exec, for probes and for hooks.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fairlead_kernel::process;
use futures_util::FutureExt;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::container::{Run, shim};
use crate::host::{Exit, Input, Refusal, Session, Streams};
use crate::settings::Settings;
use crate::shim::launch::{self, Exec, State};
use crate::shim::terminal::Terminal;

/// No probe or hook needs more of a command's output.
const OUTPUT_LIMIT: u64 = 10 << 10;
/// Time a command has to be gone after it was killed.
const KILL: Duration = Duration::from_secs(2);
/// Tells commands apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Starts a command and returns its streams.
pub(crate) fn session(
    settings: &Settings,
    run: &Run,
    words: Vec<String>,
    streams: Streams,
) -> Result<Session, Refusal> {
    limited_session(settings, run, words, streams, None)
}

/// Starts a command that is killed after a time with all processes of its group, and returns its
/// streams.
fn limited_session(
    settings: &Settings,
    run: &Run,
    words: Vec<String>,
    streams: Streams,
    limit: Option<Duration>,
) -> Result<Session, Refusal> {
    let mut command = prepare(settings, run, words, streams.tty, limit)?;
    let failed = |error: std::io::Error| Refusal::Failed(format!("starting the command: {error}"));
    let (resize, resizes) = mpsc::channel(4);
    if streams.tty {
        return on_terminal(command, streams, resize, resizes);
    }
    let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    command.stdin(pipe(streams.stdin)).stdout(pipe(streams.stdout)).stderr(pipe(streams.stderr));
    let mut child = command.spawn().map_err(failed)?;
    Ok(Session {
        stdin: child.stdin.take().map(|stdin| Box::new(stdin) as _),
        stdout: child.stdout.take().map(|stdout| Box::new(stdout) as _),
        stderr: child.stderr.take().map(|stderr| Box::new(stderr) as _),
        resize,
        exit: wait(child).boxed(),
    })
}

fn on_terminal(
    mut command: Command,
    streams: Streams,
    resize: mpsc::Sender<(u16, u16)>,
    mut resizes: mpsc::Receiver<(u16, u16)>,
) -> Result<Session, Refusal> {
    let failed = |error: std::io::Error| Refusal::Failed(format!("making a terminal: {error}"));
    let (shows, writes) = process::terminal().map_err(|error| Refusal::Failed(error.to_string()))?;
    let copy = |fd: &OwnedFd| fd.try_clone().map(Stdio::from).map_err(failed);
    command.stdin(copy(&writes)?).stdout(copy(&writes)?).stderr(copy(&writes)?);
    let child = command.spawn().map_err(failed)?;
    // Ours must go, else the terminal never ends.
    drop((writes, command));
    let Terminal { shows, types, screen } = Terminal::new(shows).map_err(failed)?;
    tokio::spawn(async move {
        while let Some((columns, rows)) = resizes.recv().await {
            screen.resize(columns, rows);
        }
    });
    Ok(Session {
        stdin: streams.stdin.then(|| Box::new(types) as _),
        stdout: streams.stdout.then(|| Box::new(shows) as Input),
        stderr: None,
        resize,
        exit: wait(child).boxed(),
    })
}

async fn wait(mut child: Child) -> Exit {
    match child.wait().await {
        Ok(status) => Exit::Code(launch::code(status)),
        Err(error) => Exit::Failed(error.to_string()),
    }
}

/// Runs a command to its end: its code and what it said. An error: it could not be run, or took too long.
pub(crate) async fn run(
    settings: &Settings,
    run: &Run,
    words: Vec<String>,
    limit: Option<Duration>,
) -> Result<(i32, String), String> {
    let streams = Streams { stdin: false, stdout: true, stderr: true, tty: false };
    let Session { stdout, stderr, exit, .. } =
        limited_session(settings, run, words, streams, limit).map_err(|refusal| refusal.to_string())?;
    let whole = async {
        let (out, complaints, exit) = tokio::join!(read(stdout), read(stderr), exit);
        match exit {
            Exit::Code(code) => Ok((code, out + &complaints)),
            Exit::Failed(why) => Err(why),
        }
    };
    let Some(limit) = limit else { return whole.await };
    let began = Instant::now();
    // The helper kills the command and reaps it. It is killed itself only if a process keeps the
    // streams open that has left the group.
    match tokio::time::timeout(limit + KILL, whole).await {
        Ok(ended) if began.elapsed() < limit => ended,
        _ => Err(format!("command timed out after {limit:?}")),
    }
}

async fn read(from: Option<Input>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut text = Vec::new();
    let _ = (&mut from).take(OUTPUT_LIMIT).read_to_end(&mut text).await;
    // What is too much is read all the same: the command must not wait for us.
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&text).into_owned()
}

fn prepare(
    settings: &Settings,
    run: &Run,
    words: Vec<String>,
    tty: bool,
    limit: Option<Duration>,
) -> Result<Command, Refusal> {
    if words.is_empty() {
        return Err(Refusal::BadRequest("you must specify at least 1 command for the container".to_owned()));
    }
    let gone = || Refusal::NotRunning("the container does not run".to_owned());
    let state =
        State::read(&run.folder).filter(|state| state.ended.is_none() && state.init.lives()).ok_or_else(gone)?;
    let launch = run.launch().ok_or_else(gone)?;
    let mut program = launch.program;
    program.arguments = words;
    if tty && !program.environment.iter().any(|(name, _)| name == "TERM") {
        program.environment.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    let limit = limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let exec = Exec { program, beside: state.init, limit, tty, cgroups: launch.cgroups };
    let file = write(run, &exec).map_err(|error| Refusal::Failed(format!("writing a command: {error}")))?;
    let mut command = shim(settings).map_err(Refusal::Failed)?;
    command.arg("exec").arg(file).kill_on_drop(true);
    Ok(command)
}

fn write(run: &Run, exec: &Exec) -> std::io::Result<PathBuf> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = run.folder.join(format!("exec-{}-{number}.json", std::process::id()));
    let open = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file)?;
    serde_json::to_writer(open, exec)?;
    Ok(file)
}
