//! The first process of a container: makes its surroundings, starts its process, passes signals on and reaps whatever is left to
//! it. When the container's process ends it ends too, and with it all others of its namespace.

use std::fs::{self, File};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use fairlead_kernel::Error;
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::process::{self, Fork, Own};
use fairlead_kernel::sysctl;

use super::launch::Launch;
use super::{Streams, program, view};

/// What init tells the shim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The process runs.
    Started,
    /// It never will.
    Failed(String),
    /// It has ended: the kernel's word for how.
    Ended(i32),
}

impl Report {
    fn line(&self) -> String {
        match self {
            Report::Started => "started\n".to_owned(),
            Report::Failed(why) => format!("failed {}\n", why.replace('\n', " ")),
            Report::Ended(status) => format!("ended {status}\n"),
        }
    }

    pub(super) fn read(line: &str) -> Option<Report> {
        match line.split_once(' ') {
            None if line == "started" => Some(Report::Started),
            Some(("failed", why)) => Some(Report::Failed(why.to_owned())),
            Some(("ended", status)) => status.parse().ok().map(Report::Ended),
            _ => None,
        }
    }
}

/// Init, from its first step to its last.
pub(super) fn run(launch: &Launch, streams: Streams, mut reports: PipeWriter) -> ! {
    let mut tell = |report: Report| drop(reports.write_all(report.line().as_bytes()));
    let started = surroundings(launch).map_err(|error| error.to_string()).and_then(|()| start(launch, streams));
    let child = match started {
        Ok(child) => child,
        Err(why) => {
            tell(Report::Failed(why));
            process::exit(1)
        }
    };
    tell(Report::Started);
    let status = watch(child);
    if !launch.own_processes {
        kill_the_rest();
    }
    tell(Report::Ended(status.into_raw()));
    process::exit(0)
}

fn surroundings(launch: &Launch) -> Result<(), Error> {
    process::end_with_parent()?;
    if !launch.own_processes {
        process::adopt_orphans()?;
    }
    process::hold_signals()?;
    for cgroup in &launch.cgroups {
        // Limits nobody enforces were told of; a process without them is better than none.
        let _ = fs::write(cgroup.join("cgroup.procs"), "0");
    }
    if let Some(network) = &launch.network {
        Namespace::at(network)?.enter()?;
    }
    if launch.own_ipc {
        process::unshare(Own::Ipc)?;
    }
    if let Some(name) = &launch.hostname {
        process::unshare(Own::Hostname)?;
        process::set_hostname(name)?;
    }
    for (name, value) in &launch.sysctls {
        sysctl::write(name, value)?;
    }
    view::make(launch)
}

/// Starts the container's process, and returns once it is the program it should be.
fn start(launch: &Launch, streams: Streams) -> Result<i32, String> {
    let text = |error: io::Error| error.to_string();
    let (mut failure, mut told) = io::pipe().map_err(text)?;
    match process::fork().map_err(|error| error.to_string())? {
        Fork::Child => {
            drop(failure);
            let (why, code) = program::become_program(&launch.program, &streams);
            let _ = told.write_all(why.as_bytes());
            process::exit(code)
        }
        Fork::Parent(child) => {
            drop((told, streams));
            let mut why = String::new();
            failure.read_to_string(&mut why).map_err(text)?;
            if why.is_empty() { Ok(child) } else { Err(why) }
        }
    }
}

/// Passes signals on and reaps until the process has ended.
fn watch(child: i32) -> ExitStatus {
    loop {
        match process::next_signal() {
            Ok(libc_sigchld) if libc_sigchld == SIGCHLD => {
                while let Some((ended, status)) = process::reap() {
                    if ended == child {
                        return status;
                    }
                }
            }
            Ok(KILL_ALL) => drop(process::signal(child, SIGKILL)),
            // It may just have ended.
            Ok(signal) => drop(process::signal(child, signal)),
            Err(_) => return process::wait(child).unwrap_or_default(),
        }
    }
}

const SIGCHLD: i32 = 17;
const SIGKILL: i32 = 9;
/// Signal (SIGRTMAX) upon which init kills all processes of its container. SIGKILL would end init
/// alone where containers share their processes, and leave its descendants to the Pod.
pub(crate) const KILL_ALL: i32 = 64;

/// Ends all descendants: those whose parents have ended became children of ours.
pub(super) fn kill_the_rest() {
    loop {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
            let _ = process::signal(child, SIGKILL);
        }
        if process::wait_any().is_none() {
            return;
        }
    }
}

/// Opens what stands for a namespace of a process.
pub(super) fn namespace(process: i32, kind: &str) -> Result<File, String> {
    let path = format!("/proc/{process}/ns/{kind}");
    File::open(Path::new(&path)).map_err(|error| format!("opening {path}: {error}"))
}

/// Enters the namespaces of a process but for its mounts, which come back. Its children are then among its processes.
pub(super) fn enter_all(process: i32) -> Result<File, String> {
    let text = |error: Error| error.to_string();
    let open = |kind| namespace(process, kind);
    let (mounts, hostname, ipc, processes) = (open("mnt")?, open("uts")?, open("ipc")?, open("pid")?);
    let network = Namespace::at(Path::new(&format!("/proc/{process}/ns/net"))).map_err(text)?;
    network.enter().map_err(text)?;
    process::enter(ipc.as_fd(), Own::Ipc).map_err(text)?;
    process::enter(hostname.as_fd(), Own::Hostname).map_err(text)?;
    process::enter(processes.as_fd(), Own::Processes).map_err(text)?;
    Ok(mounts)
}
