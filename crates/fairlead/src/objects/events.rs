//! `fairlead events`: what happened, the newest last.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use fairlead_api::{Look, age, kinds as api};
use fairlead_cluster::browse::{Form, Query};
use fairlead_cluster::{Cluster, Error, Resource};
use jiff::Timestamp;
use serde_json::Value;

use super::print::{self, Output};
use super::table::{Widths, harmless};
use super::{Place, kinds};
use crate::paint::{Paint, Tone};

#[cfg(test)]
mod tests;

pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead events                     what happened in a namespace
  fairlead events --for svc/web -w    to one object, and what happens next
  fairlead events -A --types Warning  what went wrong anywhere";

/// The options of `fairlead events`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventsFlags {
    #[command(flatten)]
    place: Place,
    /// Of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only those about this object: svc/web
    #[arg(long = "for", value_name = "KIND/NAME")]
    about: Option<String>,
    /// Only those of these types: Normal, Warning
    #[arg(long, value_name = "TYPE", value_delimiter = ',', ignore_case = true, value_parser = ["Normal", "Warning"])]
    types: Vec<String>,
    /// Then show what happens, until interrupted
    #[arg(long, short = 'w')]
    watch: bool,
    /// How to show them
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Output,
    /// Without the names of columns
    #[arg(long)]
    no_headers: bool,
}

/// Prints Events.
pub(crate) async fn run(flags: EventsFlags) -> anyhow::Result<()> {
    let cluster = flags.place.cluster().await?;
    let query = query(&cluster, &flags).await?;
    let mut printer = Printer { flags: &flags, widths: Widths::default(), headed: flags.no_headers };
    loop {
        let (events, mut after) = list(&cluster, &flags, &query).await?;
        if events.is_empty() && !flags.watch {
            return nothing(&cluster, &flags);
        }
        printer.print(&events)?;
        if !flags.watch {
            return Ok(());
        }
        match follow(&cluster, &query, &mut after, &mut printer).await {
            // What was missed is read anew.
            Err(error) if matches!(error.downcast_ref(), Some(Error::Expired(_))) => {}
            other => return other,
        }
    }
}

async fn query(cluster: &Cluster, flags: &EventsFlags) -> anyhow::Result<Query> {
    let namespace = if flags.all_namespaces { String::new() } else { flags.place.namespace(cluster) };
    let Some(about) = &flags.about else { return Ok(Query { namespace, ..Query::default() }) };
    let subject = kinds::one(cluster, about).await.context("--for")?;
    let namespace = subject.namespace.unwrap_or(namespace);
    let fields = format!("involvedObject.kind={},involvedObject.name={}", subject.resource.kind_name, subject.name);
    Ok(Query { namespace, fields, ..Query::default() })
}

/// The Events there are, the newest last, and after which version there may be more.
async fn list(cluster: &Cluster, flags: &EventsFlags, query: &Query) -> anyhow::Result<(Vec<Value>, String)> {
    let resource = Resource::of(&api::EVENT);
    let (mut events, mut after) = (Vec::new(), String::new());
    for page in cluster.look(&resource, query, Form::Whole).await? {
        after = page.body.at("metadata").text("resourceVersion").to_owned();
        events.extend(kinds::items(page.body, &resource));
    }
    events.retain(|event| flags.shows(event));
    events.sort_by_key(time);
    Ok((events, after))
}

/// Prints what happens; a watch that the server ends is opened again.
async fn follow(cluster: &Cluster, query: &Query, after: &mut String, printer: &mut Printer<'_>) -> anyhow::Result<()> {
    let resource = Resource::of(&api::EVENT);
    loop {
        let mut watch = cluster.watch(&resource, query, Form::Whole, after).await?;
        while let Some((change, event)) = watch.next().await? {
            *after = event.at("metadata").text("resourceVersion").to_owned();
            // That an Event is forgotten is none.
            if change != "DELETED" && printer.flags.shows(&event) {
                printer.print(&[event])?;
            }
        }
    }
}

fn nothing(cluster: &Cluster, flags: &EventsFlags) -> anyhow::Result<()> {
    let mut out = std::io::stderr();
    match flags.all_namespaces {
        true => writeln!(out, "No events found.")?,
        false => writeln!(out, "No events found in {} namespace.", flags.place.namespace(cluster))?,
    }
    Ok(())
}

impl EventsFlags {
    fn shows(&self, event: &Value) -> bool {
        self.types.is_empty() || self.types.iter().any(|one| one.eq_ignore_ascii_case(event.text("type")))
    }
}

struct Printer<'a> {
    flags: &'a EventsFlags,
    widths: Widths,
    headed: bool,
}

impl Printer<'_> {
    fn print(&mut self, events: &[Value]) -> anyhow::Result<()> {
        let text = match self.flags.output {
            Output::Table | Output::Wide => self.rows(events),
            Output::Name => events.iter().map(|event| print::name(&Resource::of(&api::EVENT), event)).collect(),
            output => {
                let mut events = events.to_vec();
                events.iter_mut().for_each(print::without_managers);
                match (self.flags.watch, events.as_slice()) {
                    (true, [event]) => print::object(event, output),
                    _ => print::object(&print::list(events), output),
                }
            }
        };
        let mut out = std::io::stdout();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn rows(&mut self, events: &[Value]) -> String {
        let now = Timestamp::now().as_second();
        let rows: Vec<Vec<String>> = events.iter().map(|event| row(event, self.flags.all_namespaces, now)).collect();
        let namespace = self.flags.all_namespaces.then_some("NAMESPACE");
        let head = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
        let head: Vec<String> = namespace.into_iter().chain(head).map(str::to_owned).collect();
        let head = (!std::mem::replace(&mut self.headed, true)).then_some(head);
        self.widths.fit(head.iter().chain(&rows).map(Vec::as_slice));
        let paint = Paint::stdout();
        let head = head.map(|head| self.widths.line(&head, |_, cell| paint.tone(Tone::Strong, cell)));
        let lines = rows.iter().map(|row| self.widths.line(row, |_, cell| paint.word(cell)));
        head.into_iter().chain(lines).collect()
    }
}

fn row(event: &Value, with_namespace: bool, now: i64) -> Vec<String> {
    let about = event.at("involvedObject");
    let namespace = with_namespace.then(|| event.at("metadata").text("namespace").to_owned());
    let cells = [
        interval(event, now),
        event.text("type").to_owned(),
        event.text("reason").to_owned(),
        format!("{}/{}", about.text("kind"), about.text("name")),
        event.text("message").trim().to_owned(),
    ];
    namespace.into_iter().chain(cells).map(|cell| harmless(&cell)).collect()
}

/// The Events of an object at the end of what is said of it.
pub(super) fn describe(text: &mut String, events: &[Value]) {
    if events.is_empty() {
        text.push_str("Events:\t<none>\n");
        return;
    }
    text.push_str("Events:\n  Type\tReason\tAge\tFrom\tMessage\n  ----\t------\t----\t----\t-------\n");
    let now = Timestamp::now().as_second();
    for event in events {
        let source = Some(event.at("source").text("component")).filter(|source| !source.is_empty());
        let source = source.unwrap_or_else(|| event.text("reportingComponent"));
        let message = event.text("message").trim();
        let message = match event.at("involvedObject").text("fieldPath") {
            "" => message.to_owned(),
            path => format!("{path}: {message}"),
        };
        let cells = [event.text("type"), event.text("reason"), &interval(event, now), source, &message].join("\t");
        text.push_str(&format!("  {cells}\n"));
    }
}

/// When it was last seen.
pub(super) fn time(event: &Value) -> Option<Timestamp> {
    let series = event.at("series").text("lastObservedTime");
    let times = [series, event.text("lastTimestamp"), event.text("eventTime")];
    times.iter().find_map(|time| time.parse().ok())
}

/// `5m`, or `10s (x4 over 5m)`.
fn interval(event: &Value, now: i64) -> String {
    let first = Some(event.text("eventTime")).filter(|time| !time.is_empty());
    let first = age::age(first.unwrap_or_else(|| event.text("firstTimestamp")), now);
    let series = event.at("series");
    let (last, count) = match series.is_null() {
        false => (series.text("lastObservedTime"), series.int("count")),
        true if event.int("count") > 1 => (event.text("lastTimestamp"), event.int("count")),
        true => return first,
    };
    format!("{} (x{count} over {first})", age::age(last, now))
}
