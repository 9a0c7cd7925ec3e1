//! How much may a container use? Limits are the kernel's matter, by control groups of version 2 where the machine has them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use fairlead_api::quantity::Quantity;
use serde_json::Value;

use crate::network;

#[cfg(test)]
mod tests;

/// The kernel gives time in pieces of so many microseconds.
const PERIOD: u64 = 100_000;

/// What a container may use at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes.
    memory: Option<u64>,
    /// Thousandths of a processor.
    cpu: Option<u64>,
}

impl Limits {
    /// Those of a container.
    pub(crate) fn of(container: &Value) -> Limits {
        let limits = container.at("resources").at("limits");
        let read = |name: &str, thousandths: bool| {
            let quantity = limits.text_opt(name).and_then(|text| Quantity::parse(text).ok())?;
            let milli = quantity.milli();
            let number = if thousandths { milli } else { milli / 1000 };
            u64::try_from(number).ok().filter(|number| *number > 0)
        };
        Limits { memory: read("memory", false), cpu: read("cpu", true) }
    }

    fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// The files that set them.
    fn files(&self) -> Vec<(&'static str, String)> {
        let memory = self.memory.map(|bytes| ("memory.max", bytes.to_string()));
        let cpu = self.cpu.map(|milli| ("cpu.max", format!("{} {PERIOD}", (milli * PERIOD / 1000).max(1000))));
        memory.into_iter().chain(cpu).collect()
    }
}

/// Makes the group of a container. Where the machine cannot hold it to its limits, says so.
pub(crate) fn make(data: &Path, uid: &str, container: &Value) -> (Vec<PathBuf>, Option<String>) {
    let limits = Limits::of(container);
    let Some(root) = root() else { return (Vec::new(), unenforced(limits, "it has no control groups of version 2")) };
    let folder = ours(&root, data).join(uid).join(container.text("name"));
    match prepare(&root, &folder, limits) {
        Ok(()) => (vec![folder], None),
        Err(error) => {
            let why = format!("control groups at {} do not take them: {error}", root.display());
            let there = folder.join("cgroup.procs").exists();
            (there.then_some(folder).into_iter().collect(), unenforced(limits, &why))
        }
    }
}

fn unenforced(limits: Limits, why: &str) -> Option<String> {
    (!limits.is_none()).then(|| format!("this machine does not enforce the limits of resources: {why}"))
}

fn prepare(root: &Path, folder: &Path, limits: Limits) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // From the top down: a group has what the one above it passes on.
    let above: Vec<&Path> = folder.ancestors().skip(1).take_while(|above| above.starts_with(root)).collect();
    for group in above.into_iter().rev() {
        for controller in ["+memory", "+cpu", "+pids"] {
            let _ = fs::write(group.join("cgroup.subtree_control"), controller);
        }
    }
    limits.files().iter().try_for_each(|(file, value)| fs::write(folder.join(file), value))
}

/// The groups of a runner.
fn ours(root: &Path, data: &Path) -> PathBuf {
    root.join(format!("fairlead-{}", network::mark(data)))
}

/// Where the groups of version 2 are.
fn root() -> Option<PathBuf> {
    mounted(&fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// The same from the list of mounts.
fn mounted(text: &str) -> Option<PathBuf> {
    let mut lines = text.lines().filter_map(|line| line.split_once(" - "));
    let (mount, _) = lines.find(|(_, kind)| kind.starts_with("cgroup2 "))?;
    mount.split(' ').nth(4).map(PathBuf::from)
}

/// Removes the groups of a Pod.
pub(crate) fn remove(data: &Path, uid: &str) {
    if let Some(root) = root() {
        remove_below(&ours(&root, data).join(uid));
    }
}

/// Removes all groups of a runner, and says whether there were any.
pub(crate) fn remove_all(data: &Path) -> Option<String> {
    let ours = ours(&root()?, data);
    ours.exists().then(|| remove_below(&ours)).map(|()| format!("control groups {}", ours.display()))
}

/// Groups are removed one by one: the files in them are none.
fn remove_below(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}
