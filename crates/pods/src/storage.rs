//! How much of the Node's disk does a Pod use? Measured now and then for Pods with limits: a Pod
//! that exceeds one is evicted, with the kubelet's words (pkg/kubelet/eviction/eviction_manager.go,
//! localStorageEviction).

use std::collections::HashSet;
use std::fs::{self, File, ReadDir};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::Look;
use fairlead_api::kinds::pod::requests;
use fairlead_api::quantity::Quantity;
use fairlead_kernel::mount;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::volumes::Volumes;

#[cfg(test)]
mod tests;

/// The resource that limits the local storage of a container.
const RESOURCE: &str = "ephemeral-storage";
/// Maximum number of files and folders in a folder that is measured. A folder with more exceeds
/// every limit, as counting them would take too long.
const MOST_FILES: usize = 1_000_000;
/// Maximum depth of a folder that is measured. A folder with deeper ones exceeds every limit: each
/// level holds a descriptor and a buffer of 32 KiB while what is below is measured.
const MOST_LEVELS: usize = 128;
/// Bytes of a folder that exceeds every limit.
const TOO_LARGE: u64 = u64::MAX;
/// Minimum pause after a measurement of a Pod, as a multiple of the time it took, so that a Pod
/// with many files does not keep the disk busy.
const REST: u32 = 10;
/// Number of Pods that are measured at a time.
static MEASUREMENTS: Semaphore = Semaphore::const_new(1);

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
    /// fails is one of nothing, and one that is stopped has no result.
    fn exceeded(&self, places: &Places, stop: &CancellationToken) -> Option<String> {
        let used = |folder: &Path| used(folder, MOST_FILES, stop);
        let volumes = places.volumes.iter().map(|(name, folder)| (name.clone(), used(folder))).collect();
        let logs = fs::read_dir(&places.logs).into_iter().flatten().flatten();
        let containers =
            logs.map(|entry| (entry.file_name().to_string_lossy().into_owned(), used(&entry.path()))).collect();
        let usage = Usage { volumes, containers };
        if stop.is_cancelled() { None } else { self.judge(&usage) }
    }

    fn judge(&self, usage: &Usage) -> Option<String> {
        let exceeds = |limit: &&Limit, known: &[(String, u64)]| {
            known.iter().any(|(name, bytes)| *name == limit.name && *bytes > limit.bytes)
        };
        if let Some(Limit { name, text, .. }) = self.volumes.iter().find(|limit| exceeds(limit, &usage.volumes)) {
            return Some(format!("Usage of EmptyDir volume {name:?} exceeds the limit {text:?}. "));
        }
        let parts = usage.volumes.iter().chain(&usage.containers);
        let whole = parts.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
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

/// Measures a Pod as soon as no other Pod is measured. Returns the message about the first limit
/// that the Pod exceeds, and the time until it may be measured again. A caller that drops the
/// future has to cancel `stop` too, which ends the thread that measures.
pub(crate) async fn measure(pod: Arc<(Limits, Places)>, stop: CancellationToken) -> (Option<String>, Duration) {
    let turn = MEASUREMENTS.acquire().await;
    let measurement = move || {
        let begun = Instant::now();
        let exceeded = pod.0.exceeded(&pod.1, &stop);
        // The turn ends with this thread, even if the future was dropped before.
        drop(turn);
        (exceeded, begun.elapsed().saturating_mul(REST))
    };
    tokio::task::spawn_blocking(measurement).await.unwrap_or_default()
}

/// Returns the bytes of disk that a folder uses with all that is in it; [`TOO_LARGE`] if it has
/// more than `most` entries, or some that are too deep. A measurement that is stopped ends with
/// what it has found.
fn used(folder: &Path, most: usize, stop: &CancellationToken) -> u64 {
    let Ok(root) = File::open(folder) else { return 0 };
    let mut bytes: u64 = 0;
    let mut left = most;
    let mut linked = HashSet::new();
    // The folder that is read, and those that it is in. There is no queue of folders to read: a Pod
    // can give them names that need gigabytes.
    let mut path = PathBuf::from(".");
    let mut levels: Vec<ReadDir> = entries(&root, &path).into_iter().collect();
    while let Some(level) = levels.last_mut() {
        if stop.is_cancelled() {
            break;
        }
        let Some(Ok(entry)) = level.next() else {
            levels.pop();
            path.pop();
            continue;
        };
        if left == 0 {
            return TOO_LARGE;
        }
        left -= 1;
        // A file that cannot be read has just gone.
        let Ok(about) = entry.metadata() else { continue };
        // The links of a file share its blocks.
        if about.is_dir() || about.nlink() < 2 || linked.insert((about.dev(), about.ino())) {
            bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
        }
        if !about.is_dir() {
            continue;
        }
        if levels.len() == MOST_LEVELS {
            return TOO_LARGE;
        }
        path.push(entry.file_name());
        match entries(&root, &path) {
            Ok(level) => levels.push(level),
            // ENAMETOOLONG: the folder is below more than 4,096 bytes of names.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => return TOO_LARGE,
            Err(_) => drop(path.pop()),
        }
    }
    bytes
}

/// Reads a folder below a root. Links lead nowhere outside of the root: the Pod may put one in the
/// place of a folder at any time.
fn entries(root: &File, path: &Path) -> io::Result<ReadDir> {
    let folder = mount::open_below(root, path)?;
    fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}
