//! `fairlead describe`: everything about an object and what happened to it, in kubectl's layout, and what kubectl cannot know.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::Args;
use fairlead_api::{Look, age, kinds};
use fairlead_cluster::browse::{Form, Query};
use fairlead_cluster::{Cluster, Resource};
use serde_json::Value;

use super::asked::{Asked, Scope, asked, failures};
use super::columns::align;
use super::events;
use super::table::harmless;

mod data;
mod endpoints;
mod generic;
mod node;
mod pod;
mod service;

pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead describe svc/web      a Service, its endpoints and Events
  fairlead describe pod web-1    why is it not ready?
  fairlead describe nodes        all of a kind";

/// The options of `fairlead describe`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DescribeFlags {
    /// KIND [NAME…] or KIND/NAME…: svc/web, pod web-1, nodes
    #[arg(value_name = "WHAT", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    scope: Scope,
}

/// Prints what there is to say of objects.
pub(crate) async fn run(flags: DescribeFlags) -> anyhow::Result<()> {
    let cluster = flags.scope.place.cluster().await?;
    let (mut errors, mut texts) = (Vec::new(), Vec::new());
    for one in asked(&cluster, &flags.words, &flags.scope).await? {
        match objects(&cluster, &one).await {
            Ok(objects) => {
                for object in objects {
                    texts.push(described(&cluster, &one.resource, &object).await);
                }
            }
            Err(error) => errors.push(error),
        }
    }
    if texts.is_empty() && errors.is_empty() {
        writeln!(std::io::stderr(), "No resources found in {} namespace.", flags.scope.place.namespace(&cluster))?;
    }
    std::io::stdout().write_all(texts.join("\n\n").as_bytes())?;
    failures(errors)
}

async fn objects(cluster: &Cluster, one: &Asked) -> anyhow::Result<Vec<Value>> {
    let pages = cluster.look(&one.resource, &one.query, Form::Whole).await?;
    Ok(pages.into_iter().flat_map(|page| super::kinds::items(page.body, &one.resource)).collect())
}

/// All about one object.
async fn described(cluster: &Cluster, resource: &Resource, object: &Value) -> String {
    let mut page = Page::default();
    let is = |kind: &fairlead_api::Kind| resource.kind() == Some(kind);
    let mut own = String::new();
    if is(&kinds::SERVICE) {
        let slices = service::slices(cluster, object).await;
        service::describe(&mut page, object, &slices);
        own = service::known(cluster, object, &slices).await;
    } else if is(&kinds::ENDPOINTS) {
        endpoints::describe(&mut page, object);
    } else if is(&kinds::ENDPOINT_SLICE) {
        endpoints::describe_slice(&mut page, object);
    } else if is(&kinds::POD) {
        pod::describe(&mut page, object);
    } else if is(&kinds::NODE) {
        node::describe(&mut page, object, &node::pods(cluster, object).await);
    } else if is(&kinds::CONFIG_MAP) {
        data::describe_config_map(&mut page, object);
    } else if is(&kinds::SECRET) {
        data::describe_secret(&mut page, object);
        return align(&harmless(&page.text));
    } else {
        generic::describe(&mut page, object);
    }
    // Without them the rest is still worth reading.
    if let Ok(list) = happened(cluster, object).await {
        events::describe(&mut page.text, &list);
    }
    let text = align(&harmless(&page.text));
    if own.is_empty() { text } else { format!("{text}\n{}", align(&harmless(&own))) }
}

/// The Events of an object.
async fn happened(cluster: &Cluster, object: &Value) -> anyhow::Result<Vec<Value>> {
    let metadata = object.at("metadata");
    let namespace = metadata.text("namespace");
    let mut fields = vec![
        format!("involvedObject.name={}", metadata.text("name")),
        format!("involvedObject.namespace={namespace}"),
        format!("involvedObject.kind={}", object.text("kind")),
        format!("involvedObject.uid={}", metadata.text("uid")),
    ];
    fields.retain(|field| !field.ends_with('='));
    let query = Query { namespace: namespace.to_owned(), fields: fields.join(","), ..Query::default() };
    let resource = Resource::of(&kinds::EVENT);
    let pages = cluster.look(&resource, &query, Form::Whole).await?;
    let mut list: Vec<Value> = pages.into_iter().flat_map(|page| super::kinds::items(page.body, &resource)).collect();
    list.sort_by_key(events::time);
    Ok(list)
}

/// What is written, with tabs between columns.
#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    /// A line, indented by levels of two blanks.
    fn line(&mut self, level: usize, line: impl AsRef<str>) {
        // Writing to memory does not fail.
        let _ = writeln!(self.text, "{}{}", "  ".repeat(level), line.as_ref());
    }

    /// `Name:\tvalue`
    fn field(&mut self, name: &str, value: impl std::fmt::Display) {
        self.line(0, format!("{name}:\t{value}"));
    }

    /// The same, where there is something to say.
    fn field_if(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(name, value);
        }
    }

    /// Name and labels, as they stand at the top of everything.
    fn head(&mut self, object: &Value) {
        let metadata = object.at("metadata");
        self.field("Name", metadata.text("name"));
        self.field("Namespace", metadata.text("namespace"));
        self.labels("Labels", metadata.at("labels"));
        self.annotations(metadata.at("annotations"));
    }

    /// A label a line.
    fn labels(&mut self, name: &str, labels: &Value) {
        let mut pairs = pairs(labels);
        pairs.sort();
        let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.field(name, if lines.is_empty() { "<none>".to_owned() } else { lines.join("\n\t") });
    }

    fn annotations(&mut self, annotations: &Value) {
        let mut pairs = pairs(annotations);
        pairs.retain(|(key, _)| *key != LAST_APPLIED);
        pairs.sort();
        let lines: Vec<String> = pairs.iter().map(|(key, value)| annotation(key, value)).collect();
        self.field("Annotations", if lines.is_empty() { "<none>".to_owned() } else { lines.join("\n\t") });
    }
}

/// What `kubectl apply` remembers: long, and of no interest to people.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Longer annotations have lines of their own.
const ANNOTATION: usize = 140;

fn annotation(key: &str, value: &str) -> String {
    let value = value.strip_suffix('\n').unwrap_or(value);
    if key.len() + value.len() + 2 <= ANNOTATION && !value.contains('\n') {
        return format!("{key}: {value}");
    }
    let lines = value.split('\n').map(|line| format!("\n\t  {}", shortened(line, ANNOTATION - 2)));
    format!("{key}:{}", lines.collect::<String>())
}

fn shortened(text: &str, most: usize) -> String {
    match (0..=most).rev().find(|at| text.is_char_boundary(*at)) {
        Some(end) if text.len() > most => format!("{}...", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Keys and values of an object of texts.
fn pairs(object: &Value) -> Vec<(&str, &str)> {
    let entries = object.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}

/// `app=web,tier=front` or `<none>`.
fn selector(labels: &Value) -> String {
    let mut pairs: Vec<String> = pairs(labels).iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

/// `Mon, 16 Nov 2026 14:05:00 +0000`, in the time of this machine.
fn moment(time: &str) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else { return time.to_owned() };
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%a, %d %b %Y %H:%M:%S %z").to_string()
}

/// How long ago.
fn since(time: &str) -> String {
    age::age(time, jiff::Timestamp::now().as_second())
}
