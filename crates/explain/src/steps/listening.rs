//! Does something listen in the Pods where the Service sends its packets?

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol, ServicePort};
use serde_json::json;

use super::{Case, Draft, SHOWN, list, ports, remedy};
use crate::{Cause, Pod, Severity, Socket};

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.service.spec.selector.is_empty() || case.is_alias() {
        return Draft::skipped("it selects no Pods");
    }
    if case.ports.is_empty() {
        return Draft::skipped("it has no ports");
    }
    let ready: Vec<&Pod> = case.pods.iter().copied().filter(|pod| is_endpoint(case, pod)).collect();
    let seen: Vec<(&Pod, &[Socket])> = ready.iter().filter_map(|pod| Some((*pod, case.sockets(pod)?))).collect();
    if seen.is_empty() {
        return case.blind("what listens in the Pods was not looked at");
    }
    let mut draft = Draft::default();
    let mut wrong = BTreeMap::<Cause, Vec<Miss<'_>>>::new();
    let (mut looks, mut right) = (0, Vec::new());
    for (pod, sockets) in &seen {
        for port in case.ports.iter().filter(|port| port.protocol != Protocol::Sctp) {
            let Some(number) = ports::number(pod, port).and_then(|number| u16::try_from(number).ok()) else { continue };
            looks += 1;
            match listens(case, pod, sockets, number, port.protocol) {
                Ok(line) => right.push(format!("{}: {line}", pod.view.metadata.name)),
                Err(cause) => wrong.entry(cause).or_default().push(Miss { pod, sockets, port, number }),
            }
        }
    }
    if looks == 0 {
        return case.blind("only TCP and UDP sockets are looked at");
    }
    right.into_iter().take(SHOWN).for_each(|line| draft.see(line));
    let all = wrong.values().map(Vec::len).sum::<usize>() == looks && seen.len() == ready.len();
    for (cause, misses) in wrong {
        let severity = if all { case.severity() } else { Severity::Warning };
        report(case, cause, &misses, severity, &mut draft);
    }
    draft
}

/// A port of a Pod where nothing answers.
struct Miss<'a> {
    pod: &'a Pod,
    sockets: &'a [Socket],
    port: &'a ServicePort,
    number: u16,
}

/// Whether it gets traffic.
fn is_endpoint(case: &Case<'_>, pod: &Pod) -> bool {
    let ready = pod.view.is_ready() || case.service.spec.publish_not_ready_addresses;
    ready && !pod.view.is_terminal() && !pod.view.is_terminating()
}

/// Who listens on a port for packets to the Pod's addresses; else the cause why nobody does.
fn listens(case: &Case<'_>, pod: &Pod, sockets: &[Socket], number: u16, protocol: Protocol) -> Result<String, Cause> {
    let families = fairlead_endpoints::members::families(case.service);
    let addresses: Vec<IpAddr> = pod.view.addresses().filter_map(ip::parse).collect();
    let wanted = addresses.iter().filter(|ip| families.contains(&family(**ip)));
    let at: Vec<&Socket> = sockets.iter().filter(|socket| socket.address.port() == number).collect();
    let right: Vec<&Socket> = at.iter().copied().filter(|socket| socket.protocol == protocol).collect();
    let hit = wanted.into_iter().find_map(|ip| right.iter().find(|socket| takes(socket, *ip)));
    if let Some(socket) = hit {
        return Ok(text(socket));
    }
    let of_port = |wrong: fn(&Socket) -> bool| right.iter().any(|socket| wrong(socket));
    Err(if of_port(|socket| socket.address.ip().is_loopback()) {
        Cause::ListensOnLoopback
    } else if of_port(|socket| socket.address.ip().is_unspecified()) {
        Cause::ListensOnOtherFamily
    } else if !right.is_empty() {
        // An address of the Pod, but of a family the Service has not.
        let own = right.iter().any(|socket| addresses.contains(&socket.address.ip()));
        if own { Cause::ListensOnOtherFamily } else { Cause::ListensOnOtherAddress }
    } else if !at.is_empty() {
        Cause::ListensOnOtherProtocol
    } else if sockets.iter().any(|socket| socket.protocol == protocol) {
        Cause::ListensOnOtherPort
    } else {
        Cause::NothingListens
    })
}

fn family(ip: IpAddr) -> Family {
    if ip.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// Whether a socket takes packets for an address.
fn takes(socket: &Socket, ip: IpAddr) -> bool {
    let own = socket.address.ip();
    if !own.is_unspecified() {
        return own == ip;
    }
    own.is_ipv4() == ip.is_ipv4() || own.is_ipv6() && !socket.only_v6
}

/// `0.0.0.0:8080/TCP (python3)`
pub(super) fn text(socket: &Socket) -> String {
    let program = socket.program.as_ref().map(|program| format!(" ({program})")).unwrap_or_default();
    format!("{}/{}{program}", socket.address, socket.protocol)
}

fn report(case: &Case<'_>, cause: Cause, misses: &[Miss<'_>], severity: Severity, draft: &mut Draft) {
    let Some(first) = misses.first() else { return };
    for Miss { pod, sockets, .. } in misses.iter().take(5) {
        let has = list(sockets.iter().map(text));
        draft.see(format!("{}: listening: {}", pod.view.metadata.name, if has.is_empty() { "nothing" } else { &has }));
    }
    let rest = misses.len() - 1;
    let more = if rest == 0 { String::new() } else { format!(" (and {rest} more likewise)") };
    draft.find(severity, cause, format!("{}{more}", first.message(cause)), first.remedy(case, cause));
}

impl Miss<'_> {
    /// The socket on the port, if there is one.
    fn at(&self) -> Option<&Socket> {
        let on_port = || self.sockets.iter().filter(|socket| socket.address.port() == self.number);
        on_port().find(|socket| socket.protocol == self.port.protocol).or_else(|| on_port().next())
    }

    /// Sockets of the right protocol, those that others can reach first.
    fn others(&self) -> Vec<&Socket> {
        let mut others: Vec<_> = self.sockets.iter().filter(|socket| socket.protocol == self.port.protocol).collect();
        others.sort_by_key(|socket| socket.address.ip().is_loopback());
        others
    }

    fn message(&self, cause: Cause) -> String {
        let Miss { pod, port, number, .. } = self;
        let protocol = port.protocol;
        let name = &pod.view.metadata.name;
        let at = self.at().map(text).unwrap_or_default();
        let listens = format!("in Pod {name} the program listens on {at}");
        let nothing = format!("in Pod {name} nothing listens on {number}/{protocol}, to which the Service leads");
        match cause {
            Cause::ListensOnLoopback => {
                format!("{listens}, which only the Pod itself can reach: let it listen on 0.0.0.0 or [::]")
            }
            Cause::ListensOnOtherFamily => format!("{listens}, which is not the family of the Service"),
            Cause::ListensOnOtherAddress => format!("{listens}, which is not the Pod's address"),
            Cause::ListensOnOtherProtocol => format!("{listens}, but the Service sends {protocol}"),
            Cause::ListensOnOtherPort => {
                let others = list(self.others().iter().map(|socket| socket.address.port()));
                format!("{nothing}, but on {others}")
            }
            _ => nothing,
        }
    }

    fn remedy(&self, case: &Case<'_>, cause: Cause) -> Vec<String> {
        let meta = &self.pod.view.metadata;
        let key = Key::new(meta.namespace.as_str(), meta.name.as_str());
        let container = self.pod.view.spec.containers.first().map_or("", |container| &container.name);
        let change = match cause {
            Cause::ListensOnOtherPort => {
                let others = self.others();
                others.first().map(|other| case.set_port(self.port, "targetPort", &json!(other.address.port())))
            }
            Cause::ListensOnOtherProtocol => {
                self.at().map(|other| case.set_port(self.port, "protocol", &json!(other.protocol)))
            }
            _ => None,
        };
        let look = [remedy::get("pod", &key), remedy::logs(&key, container, false)];
        change.into_iter().chain(look).collect()
    }
}
