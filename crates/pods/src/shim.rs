//! The shim: the small parent of a container's process. It lives on when the runner ends, keeps the log, remembers how the
//! process ended and lets others attach to it.
//!
//! ```text
//!  runner --starts--> starter --splits--> shim ----splits----> init ------splits----> the container's process
//!                     ends when the       session of its own,   1 of its namespace     its user, no privileges
//!                     process runs        log, socket, state    of processes: what it
//!                                                               leaves is killed
//! ```
//! It is the same program as the runner, called as `fairlead shim`: a process with many threads cannot be split in two, a new one
//! with one thread can.

mod exec;
pub(crate) mod init;
pub(crate) mod launch;
pub(crate) mod log;
pub(crate) mod pause;
mod program;
mod root;
mod serve;
pub(crate) mod terminal;
mod view;
pub(crate) mod wire;

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use fairlead_kernel::process::{self, Fork, Own};

use launch::{LAUNCH, Launch, SOCKET};

/// What `fairlead shim ARGUMENTS` does; the code to exit with. Must be called before the process has a second thread.
pub fn main(arguments: &[String]) -> i32 {
    // There are as many of us as containers. Without it only memory is lost.
    let _ = process::use_small_pages();
    let outcome = match arguments {
        [what, folder] if what == "run" => start(Path::new(folder)).map(|()| 0),
        [what, file] if what == "exec" => exec::run(Path::new(file)),
        [what, folder] if what == "pause" => pause::start(Path::new(folder), None).map(|()| 0),
        [what, folder, network] if what == "pause" => {
            pause::start(Path::new(folder), Some(Path::new(network))).map(|()| 0)
        }
        _ => Err("the arguments of shim are `run FOLDER`, `exec FILE` or `pause FOLDER [NETWORK]`; \
                  the runner of Pods calls it"
            .to_owned()),
    };
    outcome.unwrap_or_else(|why| {
        // Whoever reads this has started us; without them nobody cares.
        let _ = writeln!(io::stderr(), "{why}");
        126
    })
}

/// Starts a shim, and returns once the container's process runs, or is known not to.
fn start(folder: &Path) -> Result<(), String> {
    let text = fs::read(folder.join(LAUNCH)).map_err(|error| format!("reading {}: {error}", folder.display()))?;
    let launch: Launch = serde_json::from_slice(&text).map_err(|error| format!("reading {LAUNCH}: {error}"))?;
    let (mut news, told) = io::pipe().map_err(|error| format!("making a pipe: {error}"))?;
    match process::fork().map_err(|error| error.to_string())? {
        Fork::Parent(_) => {
            drop(told);
            // One message; init has the other end too, so there is no end to wait for.
            let mut said = [0; 4096];
            let length = news.read(&mut said).map_err(|error| format!("reading a pipe: {error}"))?;
            let said = String::from_utf8_lossy(&said[..length]);
            if said == STARTED { Ok(()) } else { Err(said.into_owned()) }
        }
        Fork::Child => {
            drop(news);
            let failed = match become_shim(folder, &launch, told) {
                Ok(()) => 0,
                Err((why, mut told)) => {
                    let _ = told.write_all(why.as_bytes());
                    1
                }
            };
            process::exit(failed)
        }
    }
}

/// What the starter hears when all is well.
const STARTED: &str = "started";

/// The shim, from its first step to its last.
fn become_shim(folder: &Path, launch: &Launch, told: PipeWriter) -> Result<(), (String, PipeWriter)> {
    match prepare(folder, launch) {
        Ok(prepared) => {
            serve::serve(folder, launch, prepared, told);
            Ok(())
        }
        Err(why) => Err((why, told)),
    }
}

/// What the shim holds once init runs.
struct Prepared {
    init: i32,
    news: PipeReader,
    listener: UnixListener,
    ends: Ends,
}

/// The shim's ends of the container's streams.
enum Ends {
    Pipes { input: Option<PipeWriter>, output: PipeReader, complaints: PipeReader },
    Terminal(OwnedFd),
}

/// The container's ends.
struct Streams {
    input: OwnedFd,
    output: OwnedFd,
    complaints: OwnedFd,
    tty: bool,
}

fn prepare(folder: &Path, launch: &Launch) -> Result<Prepared, String> {
    process::new_session().map_err(text)?;
    let null = || File::options().read(true).write(true).open("/dev/null");
    let complaints = File::options().create(true).append(true).open(folder.join("shim.log")).map_err(text)?;
    let nothing = null().map_err(text)?;
    process::set_streams(nothing.as_fd(), nothing.as_fd(), complaints.as_fd()).map_err(text)?;
    let listener = listen(folder).map_err(|error| format!("making a socket: {error}"))?;
    let (ends, streams) = streams(launch, nothing.into())?;
    let (news, reports) = io::pipe().map_err(text)?;
    if let Some(first) = launch.shared_processes {
        let namespace = init::namespace(first.number, "pid")?;
        if !first.lives() {
            return Err("the first process of the Pod has ended".to_owned());
        }
        process::enter(namespace.as_fd(), Own::Processes).map_err(text)?;
    } else if launch.own_processes {
        process::unshare(Own::Processes).map_err(text)?;
    } else {
        process::adopt_orphans().map_err(text)?;
    }
    match process::fork().map_err(text)? {
        Fork::Parent(init) => {
            drop((reports, streams));
            Ok(Prepared { init, news, listener, ends })
        }
        Fork::Child => {
            drop((ends, listener, news));
            init::run(launch, streams, reports)
        }
    }
}

/// Paths of sockets are short; a folder's may be long.
fn listen(folder: &Path) -> io::Result<UnixListener> {
    let _ = fs::remove_file(folder.join(SOCKET));
    let folder = File::open(folder)?;
    UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

fn streams(launch: &Launch, nothing: OwnedFd) -> Result<(Ends, Streams), String> {
    if launch.tty {
        let (shows, writes) = process::terminal().map_err(text)?;
        let copy = || writes.try_clone().map_err(text);
        let streams = Streams { input: copy()?, output: copy()?, complaints: copy()?, tty: true };
        return Ok((Ends::Terminal(shows), streams));
    }
    let (output, writes_output) = io::pipe().map_err(text)?;
    let (complaints, writes_complaints) = io::pipe().map_err(text)?;
    let (input, reads) = match launch.stdin {
        true => io::pipe().map(|(reads, writes)| (Some(writes), OwnedFd::from(reads))).map_err(text)?,
        false => (None, nothing),
    };
    let streams =
        Streams { input: reads, output: writes_output.into(), complaints: writes_complaints.into(), tty: false };
    Ok((Ends::Pipes { input, output, complaints }, streams))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
