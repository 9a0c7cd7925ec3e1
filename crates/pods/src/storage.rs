//! How much of the Node's disk does a Pod use? Measured now and then for Pods with limits: a Pod
//! that exceeds one is evicted, with the kubelet's words (pkg/kubelet/eviction/eviction_manager.go,
//! localStorageEviction).

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use fairlead_api::kinds::pod::requests;
use fairlead_api::quantity::Quantity;
use fairlead_kernel::mount;
use serde_json::Value;

use crate::volumes::Volumes;

#[cfg(test)]
mod tests;

/// The resource that limits the local storage of a container.
const RESOURCE: &str = "ephemeral-storage";
/// Maximum number of files and folders that are counted in one measurement. What is beyond is not
/// counted, as the measurement would take too long.
const MOST_FILES: usize = 1_000_000;

/// An amount in bytes, and as the Pod writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    name: String,
    bytes: u64,
    text: String,
}

/// The limits of a Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of each emptyDir with a `sizeLimit` that is on disk.
    volumes: Vec<Limit>,
    /// Of all containers together.
    pod: Option<u64>,
    /// Of each container with a limit.
    containers: Vec<Limit>,
}

/// The folders of a Pod that count.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Each emptyDir on disk, by name.
    pub(crate) volumes: Vec<(String, PathBuf)>,
    /// The folder with a folder of logs for each container.
    pub(crate) logs: PathBuf,
}

/// Bytes that a Pod uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Usage {
    volumes: Vec<(String, u64)>,
    /// Logs, by container.
    containers: Vec<(String, u64)>,
}

impl Limits {
    /// Returns the limits of a Pod; `None` if it has none.
    pub(crate) fn of(pod: &Value) -> Option<Limits> {
        let limit = |name: &str, text: Option<&str>| {
            let bytes = Quantity::parse(text?).ok()?.milli() / 1000;
            let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
            Some(Limit { name: name.to_owned(), bytes, text: text?.to_owned() })
        };
        let spec = pod.at("spec");
        let on_disk = spec.list("volumes").iter().filter(|volume| is_on_disk(volume));
        let volumes: Vec<Limit> = on_disk
            .filter_map(|volume| limit(volume.text("name"), volume.at("emptyDir").text_opt("sizeLimit")))
            .collect();
        let containers: Vec<Limit> = spec
            .list("initContainers")
            .iter()
            .chain(spec.list("containers"))
            .filter_map(|one| limit(one.text("name"), one.at("resources").at("limits").text_opt(RESOURCE)))
            .collect();
        let whole = u64::try_from(requests::limit(pod, RESOURCE) / 1000).ok().filter(|bytes| *bytes > 0);
        let limits = Limits { volumes, pod: whole, containers };
        (limits != Limits::default()).then_some(limits)
    }

    /// Returns the message about the first limit that a Pod exceeds, if it does. A measurement that
    /// fails is one of nothing.
    pub(crate) fn exceeded(&self, places: &Places) -> Option<String> {
        let volumes = places.volumes.iter().map(|(name, folder)| (name.clone(), used(folder))).collect();
        let logs = fs::read_dir(&places.logs).into_iter().flatten().flatten();
        let containers =
            logs.map(|entry| (entry.file_name().to_string_lossy().into_owned(), used(&entry.path()))).collect();
        self.judge(&Usage { volumes, containers })
    }

    fn judge(&self, usage: &Usage) -> Option<String> {
        let exceeds = |limit: &&Limit, known: &[(String, u64)]| {
            known.iter().any(|(name, bytes)| *name == limit.name && *bytes > limit.bytes)
        };
        if let Some(Limit { name, text, .. }) = self.volumes.iter().find(|limit| exceeds(limit, &usage.volumes)) {
            return Some(format!("Usage of EmptyDir volume {name:?} exceeds the limit {text:?}. "));
        }
        let whole: u64 = usage.volumes.iter().chain(&usage.containers).map(|(_, bytes)| bytes).sum();
        if let Some(limit) = self.pod.filter(|limit| whole > *limit) {
            return Some(format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "));
        }
        let container = self.containers.iter().find(|limit| exceeds(limit, &usage.containers));
        container.map(|Limit { name, text, .. }| {
            format!("Container {name} exceeded its local ephemeral storage limit {text:?}. ")
        })
    }
}

impl Places {
    /// The folders of a Pod whose volumes are there.
    pub(crate) fn of(pod: &Value, volumes: &Volumes, logs: PathBuf) -> Places {
        let on_disk = pod.at("spec").list("volumes").iter().filter(|volume| is_on_disk(volume));
        let folders = on_disk.filter_map(|volume| {
            let name = volume.text("name");
            Some((name.to_owned(), volumes.folders.get(name)?.clone()))
        });
        Places { volumes: folders.collect(), logs }
    }
}

/// True for an emptyDir that is not in memory: there the file system itself keeps the limit.
fn is_on_disk(volume: &Value) -> bool {
    volume.map("emptyDir").is_some() && volume.at("emptyDir").text("medium") != "Memory"
}

/// Returns the bytes of disk that a folder uses with all that is in it.
fn used(folder: &Path) -> u64 {
    let Ok(root) = File::open(folder) else { return 0 };
    let mut bytes = 0;
    let mut left = MOST_FILES;
    let mut folders = vec![PathBuf::from(".")];
    while let Some(path) = folders.pop() {
        // A file that cannot be read has just gone.
        let _ = each_entry(&root, &path, |name, about| {
            bytes += about.blocks() * 512;
            if about.is_dir() {
                folders.push(path.join(name));
            }
            left = left.saturating_sub(1);
            left > 0
        });
        if left == 0 {
            break;
        }
    }
    bytes
}

/// Calls a function with the name of each entry of a folder below a root and with what it is, until
/// the function returns false. Links are not followed, and lead nowhere outside of the root: the
/// Pod may put one in the place of a folder at any time.
fn each_entry(
    root: &File,
    path: &Path,
    mut visit: impl FnMut(&std::ffi::OsStr, &fs::Metadata) -> bool,
) -> io::Result<()> {
    let folder = mount::open_below(root, path)?;
    for entry in fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))? {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        if !visit(&entry.file_name(), &about) {
            break;
        }
    }
    Ok(())
}
