//! Whom does a Pod serve at the moment, and does it listen yet? The kernel's lists of sockets, seen
//! from inside the Pod.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use fairlead_api::Look;
use serde_json::Value;
use tokio::time::sleep;

use crate::container::Run;
use crate::shim::launch::State;

#[cfg(test)]
mod tests;

/// State of a TCP socket that accepts connections (include/net/tcp_states.h, TCP_LISTEN).
const LISTENS: &str = "0A";
/// State of a UDP socket without a peer: TCP_CLOSE.
const UNCONNECTED: &str = "07";
/// Time until a container that does not listen is checked for the second time. It is doubled from
/// check to check, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// Maximum time between two checks whether a container listens.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A port that a container declares: its protocol as the API has it, and its number.
pub(crate) type Port = (String, u16);

/// Returns the ports a container declares, but for those of protocols whose sockets are not listed.
pub(crate) fn declared(container: &Value) -> Vec<Port> {
    let ports = container.list("ports").iter().filter_map(|port| {
        let protocol = port.text_opt("protocol").unwrap_or("TCP");
        let number = u16::try_from(port.int("containerPort")).ok()?;
        matches!(protocol, "TCP" | "UDP").then(|| (protocol.to_owned(), number))
    });
    ports.collect()
}

/// Waits until a socket of the container's network receives on one of these ports.
pub(crate) async fn listening(run: &Run, ports: &[Port]) {
    let mut pause = FIRST_PAUSE;
    loop {
        let run = run.clone();
        let wanted = ports.to_vec();
        // In the network of a Node the lists may be long.
        let check = tokio::task::spawn_blocking(move || {
            let Some(init) = State::read(&run.folder).map(|state| state.init) else { return false };
            let read = |name: &str| fs::read_to_string(format!("/proc/{}/net/{name}", init.number)).unwrap_or_default();
            let tcp = || read("tcp") + &read("tcp6");
            let udp = || read("udp") + &read("udp6");
            listens(&wanted, "TCP", LISTENS, tcp) || listens(&wanted, "UDP", UNCONNECTED, udp)
        });
        if check.await.unwrap_or(false) {
            return;
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// True if a socket in a list of a protocol's sockets has a state and one of the ports.
fn listens(ports: &[Port], protocol: &str, state: &str, list: impl FnOnce() -> String) -> bool {
    let numbers: Vec<u16> = ports.iter().filter(|(known, _)| known == protocol).map(|(_, number)| *number).collect();
    if numbers.is_empty() {
        return false;
    }
    list().lines().filter_map(socket).any(|socket| socket.state == state && numbers.contains(&socket.port))
}

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
