//! Limits of the machine that default budgets are derived from: file descriptors and memory.

use std::fs;
use std::path::Path;

#[cfg(test)]
mod tests;

/// Descriptors that no budget for clients may use: the store, the API listener, controllers, netlink and logs need them.
pub const RESERVED_DESCRIPTORS: u64 = 256;

/// Descriptors assumed when `/proc` is not readable, the usual soft limit of Linux.
const FALLBACK_DESCRIPTORS: u64 = 1024;
/// Memory assumed when `/proc` is not readable, in bytes.
const FALLBACK_MEMORY: u64 = 1 << 30;

/// Resources that this process may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Soft limit of open file descriptors (`RLIMIT_NOFILE`).
    pub descriptors: u64,
    /// Bytes of memory: the smaller of the machine's and the limit of the process's cgroup and its ancestors.
    pub memory: u64,
}

impl MachineLimits {
    /// Reads the limits of this process. Call after raising `RLIMIT_NOFILE`.
    pub fn read() -> MachineLimits {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let installed = total_memory(&meminfo).unwrap_or(FALLBACK_MEMORY);
        let allowed = cgroup_memory(&cgroup, Path::new("/sys/fs/cgroup"));
        MachineLimits {
            descriptors: open_files(&limits).unwrap_or(FALLBACK_DESCRIPTORS),
            memory: allowed.map_or(installed, |allowed| allowed.min(installed)),
        }
    }

    /// Returns the descriptors that clients of all components together may use, at least half of the limit.
    pub fn client_descriptors(&self) -> u64 {
        self.descriptors.saturating_sub(RESERVED_DESCRIPTORS).max(self.descriptors / 2)
    }
}

/// Returns the soft limit in the line `Max open files  1024  524288  files` of `/proc/self/limits`.
fn open_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::from(u32::MAX)) } else { soft.parse().ok() }
}

/// Returns the bytes in the line `MemTotal:  24610140 kB` of `/proc/meminfo`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the smallest `memory.max` (cgroup v2) or `memory.limit_in_bytes` (v1) from the process's cgroup up to the root.
fn cgroup_memory(cgroup: &str, root: &Path) -> Option<u64> {
    let mut smallest: Option<u64> = None;
    for line in cgroup.lines() {
        // hierarchy:controllers:path; hierarchy 0 with no controllers is cgroup v2 (man 7 cgroups).
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut folder = mount.join(path.trim_start_matches('/'));
        while folder.starts_with(&mount) {
            // The value `max` (v2) is no number and means no limit.
            let limit = fs::read_to_string(folder.join(file)).ok().and_then(|text| text.trim().parse::<u64>().ok());
            smallest = smallest.into_iter().chain(limit).min();
            if !folder.pop() {
                break;
            }
        }
    }
    smallest
}
