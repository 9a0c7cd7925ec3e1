//! `fairlead lb describe`: everything about a load balancer, with where each fact comes from.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, ensure};
use fairlead_api::view::Service;
use fairlead_api::{Look, kinds};
use fairlead_balancer::run::page::{self, Balance, ListenerReport};
use fairlead_balancer::spec::Spec;
use fairlead_cluster::Selection;
use serde_json::{Value, json};

use super::list::Row;
use super::look::{self, Known};
use super::{Output, Place};
use crate::objects::table::harmless;
use crate::pods::list::aligned;

/// Prints everything about one.
pub(super) async fn run(place: &Place, namespace: &str, name: &str, output: Output) -> anyhow::Result<()> {
    let known = Known::look(place, Some(namespace), Some(name)).await?;
    let service = known.services.first().with_context(|| format!("there is no Service {namespace}/{name}"))?;
    ensure!(look::is_balanced(service), "the Service {namespace}/{name} is not of type LoadBalancer");
    let events = events(&known, service).await?;
    let text = match output {
        Output::Json => format!("{:#}\n", as_json(&known, service, &events)),
        Output::Table => as_text(&known, service, &events),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

async fn events(known: &Known, service: &Service) -> anyhow::Result<Vec<Value>> {
    let key = look::key_of(service);
    let about = format!("involvedObject.kind=Service,involvedObject.name={}", key.name);
    let list =
        known.cluster.list(&Selection::all(&kinds::EVENT).in_namespace(&*key.namespace).with_fields(about)).await?;
    let mut events: Vec<Value> = list.objects.iter().filter_map(|one| serde_json::from_slice(&one.json).ok()).collect();
    events.sort_by_key(|event| event.text("lastTimestamp").to_owned());
    Ok(events)
}

fn as_json(known: &Known, service: &Service, events: &[Value]) -> Value {
    let mut value = Row::of(known, service).json();
    match look::read(service) {
        Ok(spec) => {
            let facts = spec.facts(service).into_iter();
            value["facts"] =
                facts.map(|fact| json!({"label": fact.label, "value": fact.value, "why": fact.why})).collect();
            value["notes"] = spec.notes.iter().map(ToString::to_string).collect();
            value["rules"] = rules(known, service, &spec).into();
        }
        Err(refused) => value["refused"] = refused.iter().map(ToString::to_string).collect(),
    }
    if let Some(balance) = known.balance(service) {
        if !balance.refused.is_empty() {
            value["refused"] = balance.refused.clone().into();
        }
        value["listeners"] = serde_json::to_value(&balance.listeners).unwrap_or_default();
        value["owners"] = serde_json::to_value(&balance.owners).unwrap_or_default();
    }
    let event = |event: &Value| {
        json!({"type": event.text("type"), "reason": event.text("reason"), "message": event.text("message"),
               "lastTimestamp": event.text("lastTimestamp"), "count": event.at("count")})
    };
    value["events"] = events.iter().map(event).collect();
    value
}

fn as_text(known: &Known, service: &Service, events: &[Value]) -> String {
    let mut text = String::new();
    // Writing into a String does not fail.
    let _ = write(&mut text, known, service, events);
    harmless(&text)
}

fn write(text: &mut String, known: &Known, service: &Service, events: &[Value]) -> std::fmt::Result {
    let row = Row::of(known, service);
    let addresses = if row.addresses.is_empty() { "<pending>".to_owned() } else { row.addresses.join(", ") };
    writeln!(text, "Service:    {}/{}\nAddresses:  {addresses}\nState:      {}", row.namespace, row.name, row.state)?;
    let balance = known.balance(service);
    for owner in balance.iter().flat_map(|balance| &balance.owners) {
        writeln!(text, "Announcer:  {}", owner)?;
    }
    match look::read(service) {
        Ok(spec) => {
            // What the balancer misses, such as a certificate, is not to be seen in the Service.
            let refused = balance.map_or(&[][..], |balance| &balance.refused);
            if !refused.is_empty() {
                writeln!(text, "\nWhat is wrong:")?;
                refused.iter().try_for_each(|one| writeln!(text, "  {one}"))?;
            }
            asked(text, known, service, &spec)?;
        }
        Err(refused) => {
            writeln!(text, "\nWhat is wrong:")?;
            refused.iter().try_for_each(|one| writeln!(text, "  {one}"))?;
        }
    }
    match (balance, &known.report) {
        (Some(balance), _) => backends(text, balance)?,
        (None, Err(why)) => writeln!(text, "\nBackends:  {} of {} ready ({why})", row.healthy.0, row.healthy.1)?,
        (None, Ok(_)) => writeln!(text, "\nBackends:  {} of {} ready", row.healthy.0, row.healthy.1)?,
    }
    writeln!(text, "\nEvents:")?;
    for event in events {
        let (kind, reason, message) = (event.text("type"), event.text("reason"), event.text("message"));
        writeln!(text, "  {}  {kind}  {reason}  {message}", event.text("lastTimestamp"))?;
    }
    Ok(())
}

/// What its Service asks for.
fn asked(text: &mut String, known: &Known, service: &Service, spec: &Spec) -> std::fmt::Result {
    writeln!(text, "\nWhat it does, and what says so:")?;
    let facts = spec.facts(service);
    let rows: Vec<Vec<String>> =
        facts.into_iter().map(|fact| vec![format!("  {}", fact.label), fact.value, fact.why]).collect();
    text.push_str(&aligned(&rows));
    for note in &spec.notes {
        writeln!(text, "  note: {note}")?;
    }
    let rules = rules(known, service, spec);
    if !rules.is_empty() {
        writeln!(text, "\nRules of the network load balancer:")?;
        rules.iter().try_for_each(|rule| writeln!(text, "  {rule}"))?;
    }
    Ok(())
}

/// The balancer knows where health checks come from; without it that is left open.
fn rules(known: &Known, service: &Service, spec: &Spec) -> Vec<String> {
    match known.balance(service) {
        Some(balance) => balance.rules.clone(),
        None => spec.rules(&[], &spec.name).iter().map(page::rule).collect(),
    }
}

fn backends(text: &mut String, balance: &Balance) -> std::fmt::Result {
    for listener in &balance.listeners {
        writeln!(text, "\n{}", title(listener))?;
        if let Some(problem) = &listener.problem {
            writeln!(text, "  {problem}")?;
        }
        if listener.unserved {
            continue;
        }
        let head = ["  BACKEND", "HEALTH", "WEIGHT", "ACTIVE", "TOTAL", "FAILED", "NODE", "ZONE"].map(str::to_owned);
        let rows = listener.backends.iter().map(|backend| {
            let health =
                if backend.draining { format!("{}, draining", backend.health) } else { backend.health.clone() };
            let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            vec![
                format!("  {}", backend.address),
                health,
                backend.weight.to_string(),
                backend.active.to_string(),
                backend.total.to_string(),
                backend.failures.to_string(),
                or(&backend.node),
                or(&backend.zone),
            ]
        });
        let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
        text.push_str(&aligned(&rows));
    }
    Ok(())
}

fn title(listener: &ListenerReport) -> String {
    let connections = listener.active.map(|active| format!(", {active} connections")).unwrap_or_default();
    let unserved = if listener.unserved { ", not served" } else { "" };
    format!("Listener {}/{}{unserved}{connections}:", listener.port, listener.protocol)
}
