//! Whose life a registration follows: a command we start, another process, or nobody's.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::RegisterFlags;

/// How often a process that is not ours is looked for.
const PACE: Duration = Duration::from_millis(200);

pub(super) enum Subject {
    Nobody,
    Command(Child),
    /// A process, and when it began: its number may be another's later.
    Process(u32, String),
}

/// How it ended by itself.
pub(super) struct Ended {
    pub(super) told: String,
    /// What we exit with.
    pub(super) code: i32,
}

impl Subject {
    /// Starts the command, or finds the process.
    pub(super) fn start(flags: &RegisterFlags) -> anyhow::Result<Subject> {
        if let Some(pid) = flags.pid {
            let began = began(pid).ok_or_else(|| anyhow!("--pid: there is no process {pid}"))?;
            return Ok(Subject::Process(pid, began));
        }
        let Some((program, arguments)) = flags.command.split_first() else { return Ok(Subject::Nobody) };
        // In a group of its own: Ctrl-C is for us, who end it when nobody uses it any more.
        let child = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).spawn();
        Ok(Subject::Command(child.with_context(|| format!("cannot start {program:?}"))?))
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended(&mut self) -> Ended {
        match self {
            Subject::Nobody => std::future::pending().await,
            Subject::Command(child) => match child.wait().await {
                Ok(status) => Ended { told: format!("the command has ended: {status}"), code: code(status) },
                Err(error) => Ended { told: format!("cannot wait for the command: {error}"), code: 1 },
            },
            Subject::Process(pid, start) => {
                while began(*pid).as_ref() == Some(start) {
                    sleep(PACE).await;
                }
                Ended { told: format!("process {pid} has ended"), code: 0 }
            }
        }
    }

    /// Ends it, if it is ours: asks, waits, and does not ask again.
    pub(super) async fn end(&mut self, grace: Duration) {
        let Subject::Command(child) = self else { return };
        if let Some(pid) = child.id() {
            // Who cannot be asked is not there any more.
            let _ = fairlead_kernel::process::terminate_group(pid);
        }
        if timeout(grace, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }
}

/// As shells say it.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// When a process began, in the kernel's own unit; `None` if it has ended.
fn began(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let alive = !matches!(*fields.first()?, "Z" | "X");
    fields.get(19).filter(|_| alive).map(|&began| began.to_owned())
}
