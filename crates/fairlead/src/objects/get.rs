//! `fairlead get`: objects as tables, as kubectl prints them, or whole.

use std::io::Write;

use clap::Args;
use fairlead_cluster::Cluster;
use fairlead_cluster::browse::Form;
use serde_json::Value;

use super::asked::{Asked, Scope, asked, failures, forgiven, warn};
use super::kinds;
use super::print::{self, Output};
use super::table::{Design, Table, Widths};
use crate::paint::{Paint, Tone};

pub(super) use follow::revision;

mod follow;

/// What every help of a command on objects shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead get svc                     Services of a namespace
  fairlead get svc,endpointslices -A   of all namespaces
  fairlead get svc/web -o yaml         one object, whole
  fairlead get pods -l app=web -w      and what changes";

/// The options of `fairlead get`.
#[derive(Debug, Clone, Args)]
pub(crate) struct GetFlags {
    /// KIND or KIND,KIND with NAME…, or KIND/NAME…: svc, endpointslices, pods, nodes, events, …; `all` is everything usual
    #[arg(value_name = "WHAT", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// How to show them
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Output,
    /// Then show what changes, until interrupted
    #[arg(long, short = 'w')]
    watch: bool,
    /// With a column of all labels
    #[arg(long)]
    show_labels: bool,
    /// With a column for each of these labels
    #[arg(long, short = 'L', value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// Without the names of columns
    #[arg(long)]
    no_headers: bool,
    /// An object that is not there is no mistake
    #[arg(long)]
    ignore_not_found: bool,
    /// With who set which field, in json and yaml
    #[arg(long)]
    show_managed_fields: bool,
}

/// Prints objects.
pub(crate) async fn run(flags: GetFlags) -> anyhow::Result<()> {
    let cluster = flags.scope.place.cluster().await?;
    let asked = asked(&cluster, &flags.words, &flags.scope).await?;
    if flags.watch {
        return follow::run(&cluster, &flags, &asked).await;
    }
    match flags.output {
        Output::Table | Output::Wide => tables(&cluster, &flags, &asked).await,
        Output::Json | Output::Yaml | Output::Name => whole(&cluster, &flags, &asked).await,
    }
}

impl GetFlags {
    fn design(&self, asked: &Asked, with_kind: bool) -> Design {
        Design {
            wide: self.output == Output::Wide,
            namespaces: self.scope.all_namespaces && asked.resource.namespaced,
            labels: self.show_labels,
            label_columns: self.label_columns.clone(),
            prefix: if with_kind { format!("{}/", kinds::told(&asked.resource)) } else { String::new() },
        }
    }

    fn nothing_found(&self, cluster: &Cluster, asked: &[Asked]) -> anyhow::Result<()> {
        let here = !self.scope.all_namespaces && asked.iter().all(|one| one.resource.namespaced);
        let mut out = std::io::stderr();
        match here {
            true => writeln!(out, "No resources found in {} namespace.", self.scope.place.namespace(cluster))?,
            false => writeln!(out, "No resources found")?,
        }
        Ok(())
    }
}

/// One table a kind.
async fn tables(cluster: &Cluster, flags: &GetFlags, asked: &[Asked]) -> anyhow::Result<()> {
    let (mut errors, mut found, mut warned) = (Vec::new(), Vec::new(), Vec::new());
    for one in asked {
        match cluster.look(&one.resource, &one.query, Form::Table).await {
            Ok(pages) => found.extend(pages.into_iter().map(|page| (one, page))),
            Err(error) if forgiven(&error, flags.ignore_not_found) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    let with_kind = found.iter().any(|(one, _)| one.resource != found[0].0.resource);
    let now = jiff::Timestamp::now().as_second();
    let mut groups: Vec<(&Asked, Table)> = Vec::new();
    for (one, page) in &found {
        warn(&page.warnings, &mut warned);
        let table = Table::read(&page.body, &flags.design(one, with_kind), now);
        match groups.last_mut() {
            Some((last, group)) if last.resource == one.resource => group.rows.extend(table.rows),
            _ => groups.push((one, table)),
        }
    }
    groups.retain(|(_, table)| !table.rows.is_empty());
    let texts: Vec<String> = groups.iter().map(|(_, table)| text(table, flags.no_headers)).collect();
    let gap = if flags.no_headers { "" } else { "\n" };
    std::io::stdout().write_all(texts.join(gap).as_bytes())?;
    if groups.is_empty() && errors.is_empty() && !flags.ignore_not_found {
        flags.nothing_found(cluster, asked)?;
    }
    failures(errors)
}

/// A table as text.
fn text(table: &Table, headless: bool) -> String {
    let mut widths = Widths::default();
    let head = (!headless).then_some(table.head.as_slice());
    widths.fit(head.into_iter().chain(table.rows.iter().map(|row| row.cells.as_slice())));
    let paint = Paint::stdout();
    let head = head.map(|head| widths.line(head, |_, cell| paint.tone(Tone::Strong, cell)));
    let rows = table.rows.iter().map(|row| widths.line(&row.cells, |_, cell| paint.word(cell)));
    head.into_iter().chain(rows).collect()
}

/// Whole objects.
async fn whole(cluster: &Cluster, flags: &GetFlags, asked: &[Asked]) -> anyhow::Result<()> {
    let (mut errors, mut found, mut warned) = (Vec::new(), Vec::new(), Vec::new());
    for one in asked {
        match cluster.look(&one.resource, &one.query, Form::Whole).await {
            Ok(pages) => {
                for page in pages {
                    warn(&page.warnings, &mut warned);
                    found.extend(kinds::items(page.body, &one.resource).into_iter().map(|object| (one, object)));
                }
            }
            Err(error) if forgiven(&error, flags.ignore_not_found) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    let single = matches!(asked, [one] if !one.query.name.is_empty());
    if !(found.is_empty() && (single || flags.ignore_not_found)) {
        std::io::stdout().write_all(printed(found, flags, single).as_bytes())?;
    }
    failures(errors)
}

fn printed(found: Vec<(&Asked, Value)>, flags: &GetFlags, single: bool) -> String {
    if flags.output == Output::Name {
        return found.iter().map(|(one, object)| print::name(&one.resource, object)).collect();
    }
    let mut objects: Vec<Value> = found.into_iter().map(|(_, object)| object).collect();
    if !flags.show_managed_fields {
        objects.iter_mut().for_each(print::without_managers);
    }
    match objects.pop() {
        Some(object) if single => print::object(&object, flags.output),
        last => print::object(&print::list(objects.into_iter().chain(last).collect()), flags.output),
    }
}
