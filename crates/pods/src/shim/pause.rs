//! The first process of a Pod whose containers share their processes: it does nothing but reap
//! those whose parents have ended, and all processes of the Pod end with it. It lives on when the
//! runner ends, as shims do.

use std::fs;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use fairlead_kernel::mount;
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::process::{self, Fork, Identity, Own};
use serde::{Deserialize, Serialize};

use super::launch::{self, Process, replace};
use super::text;
use super::view::{OLD, STAGE, leave_old_root};

/// File in the folder of a Pod that names the process.
const FILE: &str = "pause.json";
/// The user and group of the process: it needs no rights.
const NOBODY: u32 = 65534;

/// The process as the runner remembers it.
#[derive(Debug, Serialize, Deserialize)]
struct Pause {
    /// The start of the machine it belongs to: after another one its number means nothing.
    boot: String,
    process: Process,
}

/// Starts the process for the Pod whose state is in a folder, in the network namespace that a file
/// stands for, and returns once it runs and has left the host's namespaces.
pub(super) fn start(folder: &Path, network: Option<&Path>) -> Result<(), String> {
    process::new_session().map_err(text)?;
    process::unshare(Own::Processes).map_err(text)?;
    let (mut news, mut told) = io::pipe().map_err(text)?;
    match process::fork().map_err(text)? {
        Fork::Parent(number) => {
            drop(told);
            let mut failure = String::new();
            news.read_to_string(&mut failure).map_err(text)?;
            if !failure.is_empty() {
                return Err(failure);
            }
            let process = Process::of(number).ok_or("the first process of the Pod has ended")?;
            let pause = Pause { boot: launch::boot(), process };
            let written = serde_json::to_vec(&pause).map_err(text).and_then(|json| {
                replace(&file(folder), &json).map_err(|error| format!("writing {}: {error}", file(folder).display()))
            });
            if written.is_err() {
                // Nobody would find it again.
                let _ = process::signal(number, SIGKILL);
            }
            written
        }
        Fork::Child => {
            drop(news);
            if let Err(why) = leave_host(network) {
                let _ = told.write_all(why.as_bytes());
                process::exit(1)
            }
            drop(told);
            let code = if wait().is_ok() { 0 } else { 1 };
            process::exit(code)
        }
    }
}

const SIGCHLD: i32 = 17;
const SIGKILL: i32 = 9;

/// Enters the network namespace of the Pod, makes an empty directory the root and gives up all
/// rights. Containers of the Pod see the network and the mounts of its first process by /proc/1,
/// and with CAP_SYS_PTRACE they reach its files.
fn leave_host(network: Option<&Path>) -> Result<(), String> {
    let null = File::options().read(true).write(true).open("/dev/null").map_err(text)?;
    process::hold_signals().map_err(text)?;
    process::set_streams(null.as_fd(), null.as_fd(), null.as_fd()).map_err(text)?;
    if let Some(network) = network {
        Namespace::at(network).and_then(|network| network.enter()).map_err(text)?;
    }
    mount::isolate().map_err(text)?;
    let root = Path::new(STAGE);
    mount::memory(root, "size=4k,nr_inodes=4,mode=0555").map_err(text)?;
    fs::create_dir(root.join(OLD)).map_err(text)?;
    mount::become_root(root, &root.join(OLD)).map_err(text)?;
    leave_old_root().map_err(text)?;
    mount::make_read_only(Path::new("/")).map_err(text)?;
    let nobody = Identity { user: NOBODY, group: NOBODY, groups: Vec::new(), capabilities: 0, escalation: false };
    nobody.take().map_err(text)
}

/// Reaps until the process is killed. Signals from inside the Pod do nothing.
fn wait() -> Result<(), String> {
    loop {
        if process::next_signal().map_err(text)? == SIGCHLD {
            while process::reap().is_some() {}
        }
    }
}

/// Returns the first process of the Pod whose state is in a folder, if it lives.
pub(crate) fn running(folder: &Path) -> Option<Process> {
    let pause: Pause = serde_json::from_slice(&fs::read(file(folder)).ok()?).ok()?;
    (pause.boot == launch::boot() && pause.process.lives()).then_some(pause.process)
}

/// Kills the first process of the Pod whose state is in a folder, and with it all processes of the
/// Pod. Does nothing for Pods without such a process.
pub(crate) fn kill(folder: &Path) {
    let Some(pause) = running(folder) else { return };
    // By its handle, checked again: numbers are used again.
    let Ok(handle) = process::Handle::open(pause.number) else { return };
    if pause.lives() {
        let _ = handle.signal(SIGKILL);
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
