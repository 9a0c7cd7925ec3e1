//! What a shim is told, and what it remembers: two files in the folder of a container's run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairlead_kernel::process::Identity;
use serde::{Deserialize, Serialize};

/// What to start.
pub(crate) const LAUNCH: &str = "launch.json";
/// What became of it.
pub(crate) const STATE: &str = "state.json";
/// Where to ask.
pub(crate) const SOCKET: &str = "socket";

/// A process to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) program: Program,
    /// A file that stands for the network namespace; the shim's own if `None`.
    pub(crate) network: Option<PathBuf>,
    /// A host name of its own.
    pub(crate) hostname: Option<String>,
    /// Whether it sees the processes of its container only.
    pub(crate) own_processes: bool,
    /// The first process of the Pod, if its containers see each other's processes.
    #[serde(default)]
    pub(crate) shared_processes: Option<Process>,
    /// Where its shared memory and semaphores are its own.
    pub(crate) own_ipc: bool,
    /// The unpacked file system of its image. `None`: the machine's files.
    #[serde(default)]
    pub(crate) root: Option<PathBuf>,
    /// Kernel parameters of its namespaces, names with dots and values.
    #[serde(default)]
    pub(crate) sysctls: Vec<(String, String)>,
    pub(crate) mounts: Vec<Mount>,
    /// It may write to what is mounted for it, and to nothing else.
    pub(crate) read_only: bool,
    pub(crate) stdin: bool,
    /// Its input ends when the first who attached leaves.
    pub(crate) stdin_once: bool,
    pub(crate) tty: bool,
    pub(crate) log: Log,
    /// The folders of cgroups it is put into.
    pub(crate) cgroups: Vec<PathBuf>,
}

impl Launch {
    /// True if its /proc shows the processes of its container or Pod, and not those of the machine.
    pub(crate) fn has_own_proc(&self) -> bool {
        self.own_processes || self.shared_processes.is_some()
    }
}

/// A program with its arguments and its surroundings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) folder: String,
    pub(crate) who: Who,
    /// True if it is refused the system calls that container runtimes refuse by default.
    #[serde(default)]
    pub(crate) default_seccomp: bool,
}

/// Who it runs as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) capabilities: u64,
    pub(crate) escalation: bool,
}

impl Who {
    pub(crate) fn identity(&self) -> Identity {
        let Who { user, group, groups, capabilities, escalation } = self.clone();
        Identity { user, group, groups, capabilities, escalation }
    }
}

/// Something shown at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    /// A path below the source, which nothing inside leads out of.
    pub(crate) below: Option<PathBuf>,
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
    /// Left out where the place does not exist.
    pub(crate) optional: bool,
}

/// Where output goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Log {
    pub(crate) file: PathBuf,
    /// A file of so many bytes is full.
    pub(crate) size: u64,
    /// So many are kept, the present one included.
    pub(crate) files: u32,
}

/// A command to run beside a container's process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Exec {
    pub(crate) program: Program,
    pub(crate) beside: Process,
    /// Time until the command and all processes of its group are killed, in milliseconds.
    #[serde(default)]
    pub(crate) limit: Option<u64>,
    pub(crate) tty: bool,
    pub(crate) cgroups: Vec<PathBuf>,
}

/// A process, told from one that got its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) number: i32,
    /// When it began, in the kernel's ticks since the machine did.
    pub(crate) began: u64,
}

impl Process {
    /// The process that has this number now.
    pub(crate) fn of(number: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name, in parentheses, may contain anything; the 22nd field is the 20th after it.
        let after = &stat[stat.rfind(')')? + 1..];
        let began = after.split_whitespace().nth(19)?.parse().ok()?;
        Some(Process { number, began })
    }

    /// Whether it is still there, and no zombie.
    pub(crate) fn lives(&self) -> bool {
        let zombie = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.number)).unwrap_or_default();
            stat.rfind(')').is_none_or(|at| stat[at + 1..].trim_start().starts_with(['Z', 'X']))
        };
        Process::of(self.number).is_some_and(|now| now == *self) && !zombie()
    }
}

/// What a shim knows of its container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Since when the machine runs: after another start numbers of processes mean nothing.
    pub(crate) boot: String,
    pub(crate) shim: Process,
    pub(crate) init: Process,
    /// RFC 3339.
    pub(crate) started: String,
    pub(crate) ended: Option<End>,
}

/// How a container's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// The code, or 128 and the number of the signal.
    pub(crate) code: i32,
    /// 0: by itself.
    pub(crate) signal: i32,
    /// RFC 3339.
    pub(crate) at: String,
    /// Why it never began.
    pub(crate) failure: Option<String>,
}

impl State {
    /// What a folder says; `None` if nothing was ever started there.
    pub(crate) fn read(folder: &Path) -> Option<State> {
        serde_json::from_slice(&fs::read(folder.join(STATE)).ok()?).ok()
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        replace(&folder.join(STATE), &serde_json::to_vec(self)?)
    }
}

/// Writes a file so that others see the old one or the whole new one.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    fs::write(&new, content)?;
    fs::rename(&new, file)
}

/// Tells one start of the machine from another.
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The code a process ended with: its own, or 128 and the number of the signal.
pub(crate) fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}
