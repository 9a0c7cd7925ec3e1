//! What machine is this? As its kernel and files say; what they do not say stays empty.

use std::fs;

use serde_json::{Value, json};

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    pub(super) processors: usize,
    pub(super) memory_kib: u64,
    machine_id: String,
    boot_id: String,
    kernel: String,
    system: String,
}

impl Machine {
    /// This one.
    pub fn read() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let line = |path: &str| text(path).trim().to_owned();
        Machine {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_kib: memory_kib(&text("/proc/meminfo")),
            machine_id: line("/etc/machine-id"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            kernel: line("/proc/sys/kernel/osrelease"),
            system: system(&text("/etc/os-release")),
        }
    }

    /// As a Node says it.
    pub(super) fn info(&self) -> Value {
        let version = format!("v{}", env!("CARGO_PKG_VERSION"));
        json!({
            "machineID": self.machine_id,
            "systemUUID": self.machine_id,
            "bootID": self.boot_id,
            "kernelVersion": self.kernel,
            "osImage": self.system,
            "containerRuntimeVersion": format!("fairlead://{}", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": architecture(),
        })
    }
}

/// The architecture, as Go names it.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

fn memory_kib(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn system(release: &str) -> String {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map(|name| name.trim_matches('"').to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{memory_kib, system};

    #[test]
    fn files_of_the_system_are_read() {
        assert_eq!(memory_kib("MemTotal:       16303428 kB\nMemFree: 1 kB\n"), 16_303_428);
        assert_eq!(memory_kib(""), 0);
        assert_eq!(
            system("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)"
        );
    }
}
