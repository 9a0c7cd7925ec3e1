//! Whom does a Pod serve at the moment? The kernel's list of connections, seen from inside the Pod.

use std::collections::BTreeSet;
use std::fs;

use crate::container::Run;
use crate::shim::launch::State;

#[cfg(test)]
mod tests;

/// How many connections others have to ports these containers listen on, or to the given ports.
pub(crate) fn served(runs: &[&Run], ports: Option<&[u16]>) -> usize {
    // All containers of a Pod are in one network.
    let states = runs.iter().filter_map(|run| State::read(&run.folder));
    let Some(init) = states.map(|state| state.init).find(|init| init.lives()) else { return 0 };
    let read = |name: &str| fs::read_to_string(format!("/proc/{}/net/{name}", init.number)).unwrap_or_default();
    count(&(read("tcp") + &read("tcp6")), ports)
}

/// The same from the text of `/proc/net/tcp` and `tcp6`.
fn count(text: &str, ports: Option<&[u16]>) -> usize {
    const ESTABLISHED: &str = "01";
    const LISTENS: &str = "0A";
    let sockets: Vec<Socket<'_>> = text.lines().filter_map(socket).collect();
    let listens = sockets.iter().filter(|socket| socket.state == LISTENS).map(|socket| socket.port);
    let listens: BTreeSet<u16> = ports.map_or_else(|| listens.collect(), |ports| ports.iter().copied().collect());
    let served = sockets.iter().filter(|socket| socket.state == ESTABLISHED && listens.contains(&socket.port));
    // What containers of one Pod say to each other ends with them.
    served.filter(|socket| !socket.from_inside).count()
}

struct Socket<'a> {
    port: u16,
    state: &'a str,
    from_inside: bool,
}

/// `  0: 0100007F:1F90 00000000:0000 0A ...`
fn socket(line: &str) -> Option<Socket<'_>> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, port) = local.split_once(':')?;
    let (from, _) = remote.split_once(':')?;
    // Four bytes in the machine's order: 127 comes last. Of IPv6, ::1 and what is mapped from IPv4.
    let loopback = match from.len() {
        8 => from.ends_with("7F"),
        32 => {
            from == "00000000000000000000000001000000"
                || from.starts_with("0000000000000000FFFF0000") && from.ends_with("7F")
        }
        _ => false,
    };
    Some(Socket { port: u16::from_str_radix(port, 16).ok()?, state, from_inside: loopback })
}
