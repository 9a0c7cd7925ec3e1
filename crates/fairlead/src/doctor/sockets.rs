//! Who listens on this machine, and which program is it? The kernel tells the sockets, `/proc/PID/fd` whose they are.

use std::collections::BTreeMap;
use std::fs;

use fairlead_kernel::sockets::{self, Transport};

use super::facts::Listener;

/// As many programs are looked at, at most.
const MOST_PROGRAMS: usize = 100_000;

/// Everybody who listens in the network namespace of this thread.
pub(super) fn listeners() -> Result<Vec<Listener>, fairlead_kernel::Error> {
    let owners = owners();
    let listener = |socket: sockets::Listening| Listener {
        protocol: match socket.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        },
        address: socket.at,
        program: owners.get(&socket.inode).cloned(),
    };
    Ok(sockets::listening()?.into_iter().map(listener).collect())
}

/// Programs of this machine: number and name.
pub(super) fn programs() -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten().take(MOST_PROGRAMS);
    let program = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((pid, name.trim_end().to_owned()))
    };
    entries.filter_map(program).collect()
}

/// Which program has a socket. Those of others only root can see.
fn owners() -> BTreeMap<u64, (u32, String)> {
    let mut owners = BTreeMap::new();
    for (pid, name) in programs() {
        for link in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(link.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            if let Some(inode) = inode {
                owners.entry(inode).or_insert_with(|| (pid, name.clone()));
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_this_process_is_seen_with_its_program() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let all = listeners().unwrap();
        let found = all.into_iter().find(|one| one.address == address && one.protocol == "TCP").unwrap();
        assert_eq!(found.program.map(|(pid, _)| pid), Some(std::process::id()));
    }
}
