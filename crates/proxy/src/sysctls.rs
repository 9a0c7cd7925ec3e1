//! Kernel parameters the node proxy sets: how much the kernel remembers of flows, and how long; whether loopback addresses may
//! be routed. What was changed, and what could not be, is data: it is logged, and `/statusz` shows it.

use std::fmt;
use std::fs;
use std::path::Path;

use fairlead_kernel::sysctl;

use crate::{Conntrack, Mode, Settings};

#[cfg(test)]
mod tests;

/// A parameter that was to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its name, such as `net.netfilter.nf_conntrack_max`.
    pub name: String,
    /// Its value before, if that could be read.
    pub before: Option<String>,
    /// Its value now, or why it could not be set.
    pub after: Result<String, String>,
}

/// `net.ipv4.ip_forward: 1 (was 0)`, or what went wrong.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.after, &self.before) {
            (Ok(after), Some(before)) if before != after => write!(f, "{}: {after} (was {before})", self.name),
            (Ok(after), _) => write!(f, "{}: {after}", self.name),
            (Err(error), _) => write!(f, "{}: {error}", self.name),
        }
    }
}

/// Entries the kernel's memory of flows has at most, whatever the number of cores: more would be too much memory.
const MOST_FLOWS: u64 = 1 << 20;
/// How many entries share a bucket of the kernel's table at most.
const FLOWS_A_BUCKET: u64 = 4;
/// The size of that table. It is not a parameter of a network namespace.
const BUCKETS: &str = "/sys/module/nf_conntrack/parameters/hashsize";

/// Sets what settings ask for, in the network namespace of this thread. Nothing here is a reason to end: a container may not
/// be allowed to set what its host has set already.
pub fn set(settings: &Settings, mode: Mode) -> Vec<Change> {
    let mut changes: Vec<Change> =
        wanted(settings, mode, cores()).iter().map(|(name, value)| ensure(name, value)).collect();
    if let Some(most) = most_flows(&settings.conntrack, cores()) {
        changes.extend(enlarge(Path::new(BUCKETS), most / FLOWS_A_BUCKET));
    }
    report(&changes);
    changes
}

/// Whether packets of others are forwarded, for each family: without it Pods of other Nodes are not reached. The proxy does not
/// decide that, but says so.
pub fn forwarding() -> Vec<Problem> {
    let check = |name: &'static str| match sysctl::read(name) {
        Ok(value) if value == "0" => Some(Problem { name }),
        _ => None,
    };
    ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"].into_iter().filter_map(check).collect()
}

/// A parameter that is 0 and should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    name: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is 0: this Node does not forward packets, so clients that are not on it reach no endpoint",
            self.name
        )
    }
}

/// How unlikely the kernel ends this process when memory runs out.
pub fn set_oom_score(score: i16) -> Change {
    let (name, path) = ("oom_score_adj".to_owned(), "/proc/self/oom_score_adj");
    let before = fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let after = match fs::write(path, score.to_string()) {
        Ok(()) => Ok(score.to_string()),
        Err(error) => Err(format!("cannot be set to {score}: {error}")),
    };
    Change { name, before, after }
}

/// Names and values, in their order.
fn wanted(settings: &Settings, mode: Mode, cores: u64) -> Vec<(&'static str, String)> {
    let Conntrack { tcp_established, tcp_close_wait, tcp_be_liberal, udp, udp_stream, .. } = &settings.conntrack;
    let mut wanted = Vec::new();
    let mut want = |name: &'static str, value: Option<u64>| {
        wanted.extend(value.map(|value| (name, value.to_string())));
    };
    want("net.netfilter.nf_conntrack_max", most_flows(&settings.conntrack, cores));
    let seconds = |time: &Option<std::time::Duration>| time.map(|time| time.as_secs()).filter(|seconds| *seconds > 0);
    want("net.netfilter.nf_conntrack_tcp_timeout_established", seconds(tcp_established));
    want("net.netfilter.nf_conntrack_tcp_timeout_close_wait", seconds(tcp_close_wait));
    want("net.netfilter.nf_conntrack_tcp_be_liberal", tcp_be_liberal.then_some(1));
    want("net.netfilter.nf_conntrack_udp_timeout", seconds(udp));
    want("net.netfilter.nf_conntrack_udp_timeout_stream", seconds(udp_stream));
    // Packets to a node port on 127.0.0.1 leave for an endpoint with a loopback address, until they are masqueraded.
    want("net.ipv4.conf.all.route_localnet", routes_loopback(settings, mode).then_some(1));
    wanted
}

/// Userspace mode answers on loopback itself.
fn routes_loopback(settings: &Settings, mode: Mode) -> bool {
    mode != Mode::Userspace && settings.localhost_in(mode)
}

/// As many for each core, but not less than the minimum nor more than is good; nothing is set if nothing is said per core.
fn most_flows(conntrack: &Conntrack, cores: u64) -> Option<u64> {
    let per_core = u64::from(conntrack.max_per_core.filter(|count| *count > 0)?);
    let scaled = per_core.saturating_mul(cores);
    if scaled > MOST_FLOWS {
        return Some(MOST_FLOWS);
    }
    Some(scaled.max(conntrack.min.map_or(0, u64::from))).filter(|count| *count > 0)
}

/// Cores of the machine, not those we may use: all of them make flows.
fn cores() -> u64 {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let usable = || std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    listed.as_deref().and_then(count_cores).unwrap_or_else(usable)
}

/// `0-3,8` are five.
fn count_cores(list: &str) -> Option<u64> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let sum: u64 = list.trim().split(',').map(count).sum::<Option<u64>>()?;
    Some(sum).filter(|sum| *sum > 0)
}

fn ensure(name: &str, value: &str) -> Change {
    let before = sysctl::read(name).ok();
    let set = if before.as_deref() == Some(value) { Ok(()) } else { sysctl::write(name, value) };
    // In a network namespace of its own the bound is that of the machine and cannot be written: said, and gone on.
    let after = set.map(|()| value.to_owned()).map_err(|error| format!("cannot be set to {value}: {}", cause(&error)));
    Change { name: name.to_owned(), before, after }
}

/// What went wrong, without what was tried: that stands before it.
fn cause(error: &fairlead_kernel::Error) -> String {
    match error {
        fairlead_kernel::Error::System { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// Makes the kernel's table of flows larger if it is too small for so many.
fn enlarge(file: &Path, buckets: u64) -> Option<Change> {
    let before = fs::read_to_string(file).ok()?.trim().to_owned();
    if before.parse::<u64>().is_ok_and(|before| before >= buckets) {
        return None;
    }
    let written = fs::write(file, buckets.to_string());
    let after = written.map(|()| buckets.to_string()).map_err(|error| format!("cannot be set to {buckets}: {error}"));
    Some(Change { name: file.display().to_string(), before: Some(before), after })
}

fn report(changes: &[Change]) {
    for change in changes {
        match (&change.after, &change.before) {
            (Ok(after), Some(before)) if before == after => {}
            (Ok(_), _) => tracing::info!("kernel parameter {change}"),
            (Err(_), _) => tracing::warn!("kernel parameter {change}"),
        }
    }
}
