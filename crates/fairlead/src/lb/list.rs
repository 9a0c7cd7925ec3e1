//! `fairlead lb ls`: a line a load balancer.

use std::io::Write;

use fairlead_api::view::Service;
use fairlead_balancer::run::page::{Balance, OwnerReport};
use serde_json::{Value, json};

use super::look::{self, Known};
use super::{Output, Place};
use crate::pods::list::aligned;

/// Prints load balancers.
pub(super) async fn run(place: &Place, namespace: Option<&str>, output: Output) -> anyhow::Result<()> {
    let known = Known::look(place, namespace, None).await?;
    let rows: Vec<Row> = known.services.iter().map(|service| Row::of(&known, service)).collect();
    let mut out = std::io::stdout();
    if output == Output::Json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        return Ok(writeln!(out, "{:#}", json!({"balancers": rows}))?);
    }
    if rows.is_empty() {
        return Ok(writeln!(out, "No load balancers.")?);
    }
    let head = ["NAMESPACE", "NAME", "ADDRESS", "PORTS", "PATH", "ANNOUNCER", "HEALTHY", "STATE"].map(str::to_owned);
    let lines: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows.iter().map(Row::cells)).collect();
    out.write_all(aligned(&lines).as_bytes())?;
    if let Err(why) = &known.report {
        writeln!(std::io::stderr(), "({why}: who announces and what checks say is not known)")?;
    }
    Ok(())
}

/// What is said of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
    pub(super) ports: Vec<String>,
    pub(super) path: String,
    pub(super) announcers: Vec<String>,
    pub(super) healthy: (usize, usize),
    pub(super) state: String,
}

impl Row {
    pub(super) fn of(known: &Known, service: &Service) -> Row {
        let balance = known.balance(service);
        let (addresses, healthy) = (look::addresses(service), known.healthy(service));
        let owners = balance.map_or(&[][..], |balance| &balance.owners);
        Row {
            namespace: service.metadata.namespace.clone(),
            name: service.metadata.name.clone(),
            ports: service.spec.ports.iter().map(|port| format!("{}/{}", port.port, port.protocol)).collect(),
            path: path(service),
            announcers: announcers(owners),
            state: state(known, service, &addresses, healthy),
            addresses,
            healthy,
        }
    }

    fn cells(&self) -> Vec<String> {
        let or = |texts: &[String], otherwise: &str| match texts {
            [] => otherwise.to_owned(),
            texts => texts.join(","),
        };
        vec![
            self.namespace.clone(),
            self.name.clone(),
            or(&self.addresses, "<pending>"),
            self.ports.join(","),
            self.path.clone(),
            or(&self.announcers, "-"),
            format!("{}/{}", self.healthy.0, self.healthy.1),
            self.state.clone(),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "namespace": self.namespace,
            "name": self.name,
            "addresses": self.addresses,
            "ports": self.ports,
            "path": self.path,
            "announcers": self.announcers,
            "healthy": self.healthy.0,
            "backends": self.healthy.1,
            "state": self.state,
        })
    }
}

/// Who carries the bytes, by what clients in the cluster are told.
fn path(service: &Service) -> String {
    let mode = service.status.load_balancer.ingress.first().and_then(|one| one.ip_mode.as_deref());
    match mode {
        Some("Proxy") => "userspace".to_owned(),
        Some(_) => "kernel".to_owned(),
        None => "-".to_owned(),
    }
}

/// The Nodes that answer for the addresses, each once.
fn announcers(owners: &[OwnerReport]) -> Vec<String> {
    let mut nodes: Vec<String> = owners.iter().filter_map(|owner| owner.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

/// What is wrong, the worst first.
fn state(known: &Known, service: &Service, addresses: &[String], healthy: (usize, usize)) -> String {
    let balance = known.balance(service);
    let refused = balance.and_then(|balance| balance.refused.first());
    let problem =
        known.balance(service).and_then(|one| one.listeners.iter().find_map(|listener| listener.problem.clone()));
    match known.refusal(service) {
        Some(message) if addresses.is_empty() => return format!("pending: {}", short(message)),
        None if addresses.is_empty() => return "pending".to_owned(),
        _ => {}
    }
    let unannounced = balance.iter().flat_map(|balance| &balance.owners).find(|owner| owner.node.is_none());
    if let Some((owner, why)) = unannounced.and_then(|owner| Some((owner, owner.unguarded.as_ref()?))) {
        return format!("{} is not announced: its kernel does not take the rules that guard it: {why}", owner.address);
    }
    if let Some(unserved) = unserved(known, service, balance) {
        return unserved;
    }
    if let Some(refused) = refused {
        return format!("served as before: {refused}");
    }
    if let Some(problem) = problem {
        return problem;
    }
    match healthy {
        (_, 0) => "no backends".to_owned(),
        (0, _) => "no healthy backend".to_owned(),
        _ => "serving".to_owned(),
    }
}

/// Returns which port is not served and why, as the balancer of this machine says, or where none
/// runs the status of the Service.
fn unserved(known: &Known, service: &Service, balance: Option<&Balance>) -> Option<String> {
    let listeners = balance.iter().flat_map(|balance| &balance.listeners).filter(|listener| listener.unserved);
    let mut ports: Vec<(String, String)> = listeners
        .map(|one| (format!("{}/{}", one.port, one.protocol), one.problem.clone().unwrap_or_default()))
        .collect();
    if balance.is_none() {
        let errors = service.status.load_balancer.ingress.first().into_iter().flat_map(|one| &one.ports);
        let why =
            |error: &String| known.refusal(service).map_or_else(|| error.clone(), |event| short(event).to_owned());
        ports = errors
            .filter_map(|one| Some((format!("{}/{}", one.port, one.protocol), why(one.error.as_ref()?))))
            .collect();
    }
    let (port, why) = ports.first()?;
    let more = match ports.len() - 1 {
        0 => String::new(),
        1 => ", and 1 more port".to_owned(),
        more => format!(", and {more} more ports"),
    };
    Some(format!("port {port} is not served{more}: {why}"))
}

/// Returns a message of the controller without its beginning, which is the same in all.
fn short(message: &str) -> &str {
    message.rsplit("failed to ensure load balancer: ").next().unwrap_or(message)
}
