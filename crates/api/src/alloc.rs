//! Which cluster IPs and node ports a Service gets, keeps and gives back. A [`Ledger`] is made for one write; what it
//! has noted at the end is written together with the Service, so that nothing is taken without one or left without one.

use std::net::IpAddr;

use crate::value::Value;
use ipnet::IpNet;

use crate::field::FieldErrors;
use crate::kinds::service::spec;
use crate::status::Subject;
use crate::{Failure, Look, Settings, ip};

mod addresses;
mod families;
mod node_ports;
mod ports;
mod record;

pub use node_ports::NodePorts;
pub use record::ip_address_object;

/// What is free, what this write takes and what it gives back.
pub struct Ledger<'a> {
    /// The ranges of all ServiceCIDRs that are ready, in the order in which they are to be used.
    pub ranges: &'a [IpNet],
    /// Whether an IPAddress object of that address is there.
    pub taken: &'a dyn Fn(IpAddr) -> bool,
    /// A random number below the one given, which is not 0.
    pub random: &'a mut dyn FnMut(u64) -> u64,
    /// The node ports in use; changed as ports are taken.
    pub node_ports: NodePorts,
    /// Nothing will be written: addresses need not be free, and what is noted is to be forgotten.
    pub dry_run: bool,
    /// Addresses whose IPAddress objects are to be created.
    pub taken_ips: Vec<IpAddr>,
    /// Addresses whose IPAddress objects are to be deleted.
    pub freed_ips: Vec<IpAddr>,
    /// Node ports that this write takes.
    pub taken_ports: Vec<u16>,
    /// Node ports that this write gives back; [`Ledger::settle`] does so.
    pub freed_ports: Vec<u16>,
}

impl<'a> Ledger<'a> {
    /// A ledger in which nothing is noted yet.
    pub fn new(
        ranges: &'a [IpNet],
        taken: &'a dyn Fn(IpAddr) -> bool,
        random: &'a mut dyn FnMut(u64) -> u64,
        node_ports: NodePorts,
    ) -> Ledger<'a> {
        Ledger {
            ranges,
            taken,
            random,
            node_ports,
            dry_run: false,
            taken_ips: Vec::new(),
            freed_ips: Vec::new(),
            taken_ports: Vec::new(),
            freed_ports: Vec::new(),
        }
    }

    /// The same for a dry run.
    pub fn dry(mut self) -> Ledger<'a> {
        self.dry_run = true;
        self
    }

    /// Whether the node-port map must be written.
    pub fn ports_changed(&self) -> bool {
        !(self.dry_run || (self.taken_ports.is_empty() && self.freed_ports.is_empty()))
    }

    /// The node-port map after this write: freed ports are free only once the Service is written, so that a write that
    /// fails has given nothing away.
    pub fn settle(mut self) -> NodePorts {
        for port in &self.freed_ports {
            self.node_ports.release(*port);
        }
        self.node_ports
    }
}

impl std::fmt::Debug for Ledger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger")
            .field("ranges", &self.ranges)
            .field("dry_run", &self.dry_run)
            .field("taken_ips", &self.taken_ips)
            .field("freed_ips", &self.freed_ips)
            .field("taken_ports", &self.taken_ports)
            .field("freed_ports", &self.freed_ports)
            .finish_non_exhaustive()
    }
}

/// Completes a new Service: families, cluster IPs, node ports. Comes after defaults and before `prepare_create` and
/// validation, for which the Service must be whole. After a failure the ledger is to be thrown away.
pub fn create(service: &mut Value, ledger: &mut Ledger<'_>, settings: &Settings) -> Result<(), Failure> {
    normalize(service, None);
    families::complete(service, None, settings)?;
    addresses::create(service, ledger)?;
    ports::create(service, ledger)
}

/// Completes a Service that takes the place of `old`: what the client left out is restored, what the change needs is
/// taken, what it no longer needs is given back. Comes after defaults and before `prepare_update` and validation.
pub fn update(service: &mut Value, old: &Value, ledger: &mut Ledger<'_>, settings: &Settings) -> Result<(), Failure> {
    restore(service, old);
    normalize(service, Some(old));
    families::complete(service, Some(old), settings)?;
    addresses::update(service, old, ledger)?;
    ports::update(service, old, ledger)
}

/// Gives back all that a deleted Service had.
pub fn delete(service: &Value, ledger: &mut Ledger<'_>) {
    let spec = service.at("spec");
    if spec::needs_cluster_ip(spec) && !spec::is_headless(spec) {
        ledger.freed_ips.extend(spec.texts("clusterIPs").into_iter().filter_map(ip::parse));
    }
    ports::free(ledger, ports::owned(spec));
    if spec::needs_health_check(spec) {
        ports::free(ledger, [spec.int("healthCheckNodePort")]);
    }
}

/// Restores what was allocated before and the client left out, so that a manifest may be sent twice.
fn restore(service: &mut Value, old: &Value) {
    let old = old.at("spec");
    let Some(new) = service.get_mut("spec") else {
        return;
    };
    if spec::needs_cluster_ip(old) && spec::needs_cluster_ip(new) {
        for name in ["clusterIP", "clusterIPs"] {
            if new.at(name).is_null() {
                put(new, name, old.at(name).clone());
            }
        }
    }
    if spec::needs_node_ports(old) && spec::needs_node_ports(new) {
        ports::restore(new, old);
    }
    let checked = spec::needs_health_check(old) && spec::needs_health_check(new);
    if checked && new.int("healthCheckNodePort") == 0 {
        put(new, "healthCheckNodePort", old.at("healthCheckNodePort").clone());
    }
}

/// Brings `clusterIPs` in line with `clusterIP`, which is all that old clients know.
fn normalize(service: &mut Value, old: Option<&Value>) {
    let Some(new) = service.get_mut("spec") else {
        return;
    };
    let Some(old) = old.map(|old| old.at("spec")) else {
        if new.list("clusterIPs").is_empty() && !new.text("clusterIP").is_empty() {
            put(new, "clusterIPs", vec![new.at("clusterIP").clone()]);
        }
        return;
    };
    let changed = old.text("clusterIP") != new.text("clusterIP");
    if !changed && new.list("clusterIPs").is_empty() {
        put(new, "clusterIPs", old.at("clusterIPs").clone());
    }
    if changed && old.at("clusterIPs") == new.at("clusterIPs") {
        match new.at("clusterIP").clone() {
            Value::Null => put(new, "clusterIPs", Value::Null),
            address => put(new, "clusterIPs", vec![address]),
        }
    }
}

/// Sets a field of a spec, in its place.
fn put(spec: &mut Value, name: &'static str, value: impl Into<Value>) {
    crate::schema::core::SERVICE_SPEC.place(spec, name, value);
}

/// A Service that cannot be because of these mistakes.
fn invalid(service: &Value, errors: FieldErrors) -> Failure {
    let name = service.at("metadata").text("name");
    Failure::invalid(Subject { group: "", kind: "Service", name }, &errors)
}

#[cfg(test)]
mod tests;
