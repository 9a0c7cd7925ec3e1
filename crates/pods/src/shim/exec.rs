//! A command beside a container's process: in its namespaces, as its user, with the streams we were started with.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use fairlead_kernel::process::{self, Fork, Handle, Own};
use fairlead_kernel::relay::{Events, Poller};

use super::launch::{Exec, Process};
use super::{Streams, init, program};

const SIGKILL: i32 = 9;

/// Waits for the end of a child, but not longer than a limit. Returns false if it still runs then.
///
/// A thread could not do this: no process makes threads whose children would be in another
/// namespace of processes (clone(2), EINVAL).
fn ends_within(child: i32, limit: Duration) -> bool {
    let wait = || -> io::Result<bool> {
        let handle = Handle::open(child).map_err(io::Error::other)?.into_fd();
        let poller = Poller::new()?;
        poller.watch_reads(handle.as_fd(), 0)?;
        let mut events = Events::with_capacity(1);
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            poller.wait(&mut events, Some(left))?;
            if events.iter().next().is_some() {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    };
    // Without a way to wait, the command ends with this process, which the runner kills when it is
    // late.
    wait().unwrap_or(true)
}

/// Runs it, and returns the code it ended with.
pub(super) fn run(file: &Path) -> Result<i32, String> {
    let text = fs::read(file).map_err(|error| format!("reading {}: {error}", file.display()))?;
    // It has secrets in its environment.
    let _ = fs::remove_file(file);
    let exec: Exec = serde_json::from_slice(&text).map_err(|error| format!("reading a command: {error}"))?;
    if Process::of(exec.beside.number) != Some(exec.beside) {
        return Err("the container has ended".to_owned());
    }
    for cgroup in &exec.cgroups {
        let _ = fs::write(cgroup.join("cgroup.procs"), "0");
    }
    let mounts = init::enter_all(exec.beside.number)?;
    let copy = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(|error| error.to_string());
    let streams = Streams {
        input: copy(io::stdin().as_fd())?,
        output: copy(io::stdout().as_fd())?,
        complaints: copy(io::stderr().as_fd())?,
        tty: exec.tty,
    };
    match process::fork().map_err(|error| error.to_string())? {
        Fork::Parent(child) => {
            drop(streams);
            let limit = exec.limit.map(Duration::from_millis);
            if limit.is_some_and(|limit| !ends_within(child, limit)) {
                // It leads a session and so a process group of its own. Its children would live on
                // if it alone were killed.
                let _ = process::signal(-child, SIGKILL);
            }
            let status = process::wait(child).map_err(|error| error.to_string())?;
            Ok(super::launch::code(status))
        }
        Fork::Child => {
            // Only now: what is mounted at /proc there knows nothing of the process that was split.
            let (why, code) = match process::enter(mounts.as_fd(), Own::Mounts) {
                Ok(()) => program::become_program(&exec.program, &streams),
                Err(error) => (error.to_string(), 126),
            };
            let _ = io::Write::write_all(&mut io::stderr(), format!("{why}\n").as_bytes());
            process::exit(code)
        }
    }
}
