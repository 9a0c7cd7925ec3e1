//! Which node ports a Service gets: for its ports, and one for the health checks of a load balancer.

use std::collections::{HashMap, HashSet};

use crate::value::Value;

use super::{Ledger, invalid, put};
use crate::field::{FieldError, FieldErrors, Path};
use crate::kinds::service::spec;
use crate::schema::core::SERVICE_PORT;
use crate::{Failure, Look};

/// Node ports of a new Service. Ports of one number share one, whatever their protocols.
pub(super) fn create(service: &mut Value, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let spec = service.at("spec");
    if spec::may_have_node_ports(spec) {
        let mut ports = spec.list("ports").to_vec();
        let given = assign(&mut ports, spec::needs_node_ports(spec), ledger);
        given.map_err(|refusal| refusal.failure(service))?;
        set_ports(service, ports);
    }
    if spec::needs_health_check(service.at("spec")) { health_check(service, ledger) } else { Ok(()) }
}

/// What a change takes and gives back.
pub(super) fn update(service: &mut Value, old: &Value, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let before = old.at("spec");
    let spec = service.at("spec");
    let had: HashSet<i64> = owned(before).into_iter().collect();
    if spec::may_have_node_ports(spec) {
        let mut ports = spec.list("ports").to_vec();
        let given = reassign(&mut ports, &had, spec::needs_node_ports(spec), ledger);
        given.map_err(|refusal| refusal.failure(service))?;
        set_ports(service, ports);
        let has: HashSet<i64> = spec::node_ports(service.at("spec")).into_iter().collect();
        free(ledger, had.into_iter().filter(|port| !has.contains(port)));
    } else {
        free(ledger, had);
    }
    match (spec::needs_health_check(before), spec::needs_health_check(service.at("spec"))) {
        (false, true) => health_check(service, ledger),
        (true, false) => {
            free(ledger, [before.int("healthCheckNodePort")]);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The node ports that a stored Service holds. An ExternalName Service may name some without having been given them.
pub(super) fn owned(spec: &Value) -> Vec<i64> {
    if spec::may_have_node_ports(spec) { spec::node_ports(spec) } else { Vec::new() }
}

/// Restores node ports that the client left out, by the names of the ports. One that it gave to another port is not.
pub(super) fn restore(spec: &mut Value, old: &Value) {
    let had: HashMap<&str, i64> =
        old.list("ports").iter().map(|port| (port.text("name"), port.int("nodePort"))).collect();
    let owned: HashSet<i64> = had.values().copied().collect();
    let kept: HashSet<i64> = spec::node_ports(spec).into_iter().filter(|port| owned.contains(port)).collect();
    for port in spec::ports_mut(spec) {
        let before = had.get(port.text("name")).copied().unwrap_or_default();
        if port.int("nodePort") == 0 && before != 0 && !kept.contains(&before) {
            SERVICE_PORT.place(port, "nodePort", before);
        }
    }
}

/// Notes ports to be given back; what is no port is passed over.
pub(super) fn free(ledger: &mut Ledger<'_>, ports: impl IntoIterator<Item = i64>) {
    ledger.freed_ports.extend(ports.into_iter().filter_map(|port| u16::try_from(port).ok()).filter(|port| *port != 0));
}

/// Why a port could not be had.
enum Refusal {
    /// The port that was chosen, of the port at this place.
    Chosen(usize, i64, String),
    /// None is left.
    Full,
    /// Two ports with one node port.
    Twice(String, i64),
}

impl Refusal {
    fn failure(self, service: &Value) -> Failure {
        match self {
            Refusal::Chosen(i, port, why) => {
                let path = Path::new("spec.ports").index(i).child("nodePort");
                invalid(service, FieldErrors::from([FieldError::invalid(&path, port, why)]))
            }
            Refusal::Full => Failure::internal("failed to allocate a nodePort: range is full"),
            Refusal::Twice(protocol, port) => {
                Failure::new(500, "", format!("duplicate nodePort: {{{protocol} {port}}}"))
            }
        }
    }
}

fn assign(ports: &mut [Value], all: bool, ledger: &mut Ledger<'_>) -> Result<(), Refusal> {
    let mut shared: HashMap<i64, i64> = HashMap::new();
    // The first node port that is wanted for a number, whichever of the ports of that number names
    // it. Ports before the present one have no say: they were given theirs, which made `shared`
    // know the number.
    let mut wanted_for: HashMap<i64, i64> = HashMap::new();
    for port in ports.iter().filter(|port| port.int("nodePort") != 0) {
        wanted_for.entry(port.int("port")).or_insert(port.int("nodePort"));
    }
    for (i, port) in ports.iter_mut().enumerate() {
        let (number, wanted) = (port.int("port"), port.int("nodePort"));
        if wanted == 0 && !all {
            continue;
        }
        let got = match shared.get(&number) {
            Some(taken) if wanted == 0 || wanted == *taken => *taken,
            Some(_) => choose(i, wanted, ledger)?,
            None => {
                let got = match wanted_for.get(&number) {
                    Some(wanted) => choose(i, *wanted, ledger)?,
                    None => draw(ledger)?,
                };
                shared.insert(number, got);
                got
            }
        };
        SERVICE_PORT.place(port, "nodePort", got);
    }
    Ok(())
}

fn reassign(ports: &mut [Value], had: &HashSet<i64>, all: bool, ledger: &mut Ledger<'_>) -> Result<(), Refusal> {
    let mut seen: HashSet<(String, i64)> = HashSet::new();
    let mut given: HashSet<i64> = HashSet::new();
    for (i, port) in ports.iter_mut().enumerate() {
        let got = match port.int("nodePort") {
            0 if !all => continue,
            0 => draw(ledger)?,
            wanted if had.contains(&wanted) || given.contains(&wanted) => wanted,
            wanted => choose(i, wanted, ledger)?,
        };
        let pair = (port.text("protocol").to_owned(), got);
        if !seen.insert(pair) {
            return Err(Refusal::Twice(port.text("protocol").to_owned(), got));
        }
        given.insert(got);
        SERVICE_PORT.place(port, "nodePort", got);
    }
    Ok(())
}

fn health_check(service: &mut Value, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let wanted = service.at("spec").int("healthCheckNodePort");
    let port = if wanted == 0 {
        let none = "failed to allocate a HealthCheck NodePort 0: range is full";
        draw(ledger).map_err(|_| Failure::internal(none))?
    } else {
        take(wanted, ledger).map_err(|why| {
            Failure::internal(format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}"))
        })?;
        wanted
    };
    if let Some(spec) = service.get_mut("spec") {
        put(spec, "healthCheckNodePort", port);
    }
    Ok(())
}

fn choose(i: usize, wanted: i64, ledger: &mut Ledger<'_>) -> Result<i64, Refusal> {
    take(wanted, ledger).map(|()| wanted).map_err(|why| Refusal::Chosen(i, wanted, why))
}

fn take(wanted: i64, ledger: &mut Ledger<'_>) -> Result<(), String> {
    let port = u16::try_from(wanted).ok().filter(|port| ledger.node_ports.holds(*port));
    let Some(port) = port else {
        // A dry run of the reference server only asks whether the port is in use.
        if ledger.dry_run {
            return Ok(());
        }
        let range = ledger.node_ports.range_text();
        return Err(format!("provided port is not in the valid range. The range of valid ports is {range}"));
    };
    if !ledger.node_ports.take(port) {
        return Err("provided port is already allocated".to_owned());
    }
    ledger.taken_ports.push(port);
    Ok(())
}

fn draw(ledger: &mut Ledger<'_>) -> Result<i64, Refusal> {
    let port = ledger.node_ports.take_any(ledger.random).ok_or(Refusal::Full)?;
    ledger.taken_ports.push(port);
    Ok(port.into())
}

fn set_ports(service: &mut Value, ports: Vec<Value>) {
    if let Some(spec) = service.get_mut("spec")
        && !ports.is_empty()
    {
        put(spec, "ports", ports);
    }
}
