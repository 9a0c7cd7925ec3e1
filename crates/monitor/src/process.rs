//! What this process uses, under the names every Prometheus client has.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Looks at `/proc` whenever it is asked.
#[derive(Debug)]
pub struct Process;

/// Of a second. The kernel tells processor time to programs in these, whatever it counts in itself.
const TICKS: f64 = 100.0;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| -> fmt::Result {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        let fds = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
        gauge("process_open_fds", "Number of open file descriptors", fds)?;
        gauge("process_max_fds", "Maximum number of open file descriptors", max_fds())?;
        gauge("process_resident_memory_bytes", "Resident memory size in bytes", kilobytes(&status, "VmRSS:"))?;
        gauge("process_virtual_memory_bytes", "Virtual memory size in bytes", kilobytes(&status, "VmSize:"))?;
        let help = "Start time of the process since unix epoch in seconds";
        gauge("process_start_time_seconds", help, started(&stat))?;
        let help = "Total user and system CPU time spent in seconds";
        let time = ConstCounter::new(processor_time(&stat).unwrap_or_default());
        time.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, time.metric_type())?)
    }
}

/// A field of `/proc/self/stat`, counted from 1 as its manual does. The name in the second may hold anything.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn processor_time(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS)
}

/// When the process began, in seconds since 1970.
fn started(stat: &str) -> Option<f64> {
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + field(stat, 22)? / TICKS)
}

fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn max_fds() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
