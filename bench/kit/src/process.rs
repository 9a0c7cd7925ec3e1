//! Processes: started on one core, watched through `/proc`, ended by their id.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

/// A program running on one core. Dropping it ends it.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts a program pinned to a core. What it says goes to a file in `logs`.
    pub fn start(program: &Path, arguments: &[String], core: usize, logs: &Path) -> anyhow::Result<Running> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let log = fs::File::create(logs.join(format!("{name}.log")))?;
        let child = Command::new("taskset")
            .args(["-c", &core.to_string()])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {} with taskset", program.display()))?;
        Ok(Running(child))
    }

    /// One that was started otherwise, such as in a network namespace.
    pub fn of(child: Child) -> Running {
        Running(child)
    }

    /// Ends it.
    pub fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// An error once it has ended by itself.
    pub fn check(&mut self) -> anyhow::Result<()> {
        let ended = self.0.try_wait()?;
        ensure!(ended.is_none(), "the server ended: {}", ended.map(|status| status.to_string()).unwrap_or_default());
        Ok(())
    }

    /// Time it has been on a core.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        cpu(&self.0.id().to_string())
    }

    /// The same to the nanosecond, of the threads it has now.
    pub fn cpu_of_threads(&self) -> anyhow::Result<Duration> {
        let mut total = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let line = fs::read_to_string(thread?.path().join("schedstat"))?;
            total += line.split_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(total))
    }

    /// The same with the programs it ran and that have ended.
    pub fn cpu_with_children(&self) -> anyhow::Result<Duration> {
        Ok(self.cpu_of_threads()? + ticks(&self.0.id().to_string(), [13, 14])?)
    }

    /// Memory it holds, in bytes.
    pub fn resident(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS in /proc/PID/status")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Time this program has been on a core.
pub fn own_cpu() -> anyhow::Result<Duration> {
    cpu("self")
}

fn cpu(process: &str) -> anyhow::Result<Duration> {
    ticks(process, [11, 12])
}

/// Fields of /proc/PID/stat that count time, behind the name.
fn ticks(process: &str, at: [usize; 2]) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in brackets may hold anything; what follows it is numbers.
    let (_, fields) = stat.rsplit_once(')').context("a line of /proc/PID/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0);
    Ok(Duration::from_millis(at.map(ticks).iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
}

/// What Linux counts processor time in, on every architecture it matters for.
const TICKS_PER_SECOND: u64 = 100;

/// Pins this program, and every thread it starts from now on.
pub fn pin_self(core: usize) -> anyhow::Result<()> {
    let id = std::process::id().to_string();
    let status = Command::new("taskset")
        .args(["-p", "-c", &core.to_string(), &id])
        .stdout(Stdio::null())
        .status()
        .context("run taskset")?;
    ensure!(status.success(), "taskset cannot pin the load to core {core}");
    Ok(())
}
