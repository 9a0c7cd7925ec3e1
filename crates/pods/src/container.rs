//! A run of a container, as the runner sees it: a folder, and in it what a shim was told, what it remembers and where to ask it.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::Command;

use crate::settings::Settings;
use crate::shim::init;
use crate::shim::launch::{self, End, LAUNCH, Launch, Process, SOCKET, State};
use crate::shim::log::numbered;
use crate::shim::pause;
use crate::shim::wire::{self, Kind};

/// How often a shim that does not answer is looked at.
const AGAIN: Duration = Duration::from_millis(200);
/// Starting a process takes milliseconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// One run of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) folder: PathBuf,
}

impl Run {
    /// Starts a process under a shim of its own. What went wrong before it could be a program of its own is an error; a program
    /// that could not be started has ended.
    pub(crate) async fn start(&self, settings: &Settings, launch: &Launch) -> Result<State, String> {
        let prepare = || {
            let _ = fs::remove_dir_all(&self.folder);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            if let Some(logs) = launch.log.file.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(logs)?;
            }
            launch::replace(&self.folder.join(LAUNCH), &serde_json::to_vec(launch)?)
        };
        prepare().map_err(|error: io::Error| format!("writing {}: {error}", self.folder.display()))?;
        let mut command = shim(settings)?;
        command.arg("run").arg(&self.folder).stdin(std::process::Stdio::null());
        let output = tokio::time::timeout(START_LIMIT, command.output()).await;
        let output = output.map_err(|_| "the shim does not start".to_owned())?;
        let output = output.map_err(|error| format!("starting the shim: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        State::read(&self.folder).ok_or_else(|| "the shim left no state".to_owned())
    }

    /// Waits until the process has ended. A shim that was killed took it along, and nobody knows how it ended.
    pub(crate) async fn ended(&self) -> End {
        loop {
            if let Ok(Some(end)) = self.listen().await {
                return end;
            }
            let Some(state) = State::read(&self.folder) else { return unknown("its state is gone") };
            if let Some(end) = state.ended {
                return end;
            }
            if state.boot != launch::boot() {
                return unknown("the machine was started again");
            }
            if !state.shim.lives() {
                // It may have ended in order just now.
                let state = State::read(&self.folder).and_then(|state| state.ended);
                return state.unwrap_or_else(|| unknown("its shim was killed"));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn listen(&self) -> io::Result<Option<End>> {
        let mut connection = self.connect().await?;
        while let Some((kind, bytes)) = wire::receive(&mut connection).await? {
            if kind == Kind::State
                && let Ok(State { ended: Some(end), .. }) = serde_json::from_slice(&bytes)
            {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Sends a signal to the process. Fine if it has ended.
    pub(crate) async fn signal(&self, signal: u8) {
        let sent = async {
            let mut connection = self.connect().await?;
            wire::send(&mut connection, Kind::Signal, &[signal]).await?;
            connection.shutdown().await?;
            // Until the shim has read it.
            while wire::receive(&mut connection).await?.is_some() {}
            io::Result::Ok(())
        };
        if let Err(error) = sent.await {
            tracing::debug!(%error, folder = %self.folder.display(), "no signal was sent");
        }
    }

    /// Ends the process and all that came of it, shim or no shim. Whether there was one.
    pub(crate) async fn kill(&self) -> bool {
        let here = State::read(&self.folder).filter(|state| state.boot == launch::boot() && state.init.lives());
        let Some(state) = here else { return false };
        // By its handle, checked again: numbers are used again.
        let handle = fairlead_kernel::process::Handle::open(state.init.number);
        matches!(handle, Ok(handle) if state.init.lives() && handle.signal(SIGKILL).is_ok())
    }

    /// Ends all processes of a container that shares the namespace of processes with others of its
    /// Pod. Its first process does it, as the parent of all the others.
    pub(crate) async fn kill_all(&self) {
        self.signal(KILL_ALL).await;
    }

    /// True if the container shares the namespace of processes with others of its Pod.
    pub(crate) fn shares_processes(&self) -> bool {
        self.launch().is_some_and(|launch| launch.shared_processes.is_some())
    }

    /// A connection to the shim.
    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        // Paths of sockets are short; a folder's may be long.
        let folder = fs::File::open(&self.folder)?;
        UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())).await
    }

    /// What was started.
    pub(crate) fn launch(&self) -> Option<Launch> {
        serde_json::from_slice(&fs::read(self.folder.join(LAUNCH)).ok()?).ok()
    }
}

const SIGKILL: i32 = 9;
/// The signal as it is sent to a shim.
const KILL_ALL: u8 = init::KILL_ALL as u8;

/// Starts the first process of the Pod whose state is in a folder, unless it lives, and returns it.
/// `network` stands for the Pod's network namespace; `None`: the host's.
pub(crate) async fn pause(settings: &Settings, folder: &Path, network: Option<&Path>) -> Result<Process, String> {
    if let Some(process) = pause::running(folder) {
        return Ok(process);
    }
    let mut command = shim(settings)?;
    command.arg("pause").arg(folder).args(network).stdin(std::process::Stdio::null());
    let output = tokio::time::timeout(START_LIMIT, command.output()).await;
    let output = output.map_err(|_| "the shim does not start".to_owned())?;
    let output = output.map_err(|error| format!("starting the shim: {error}"))?;
    let started = pause::running(folder).filter(|_| output.status.success());
    started.ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// The shim as a program.
pub(crate) fn shim(settings: &Settings) -> Result<Command, String> {
    let (program, arguments) = settings.shim.split_first().ok_or("no shim is set")?;
    let mut command = Command::new(program);
    // The name people see in lists of processes.
    command.args(arguments).arg0("fairlead").env_clear();
    Ok(command)
}

fn unknown(why: &str) -> End {
    let at = format!("{:.6}", jiff::Timestamp::now());
    End { code: 137, signal: 9, at, failure: Some(format!("{UNKNOWN}{why}")) }
}

/// Begins the failure of an end that nobody saw.
pub(crate) const UNKNOWN: &str = "The container could not be located: ";

/// Removes the folder of a run that nobody needs.
pub(crate) fn forget(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// Removes the log of a run that nobody needs, with its older parts.
pub(crate) fn forget_log(log: &Path) {
    let parts = std::iter::once(log.to_owned()).chain((1..100).map(|number| numbered(log, number)));
    for part in parts {
        if fs::remove_file(part).is_err() {
            return;
        }
    }
}
