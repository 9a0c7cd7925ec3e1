//! `fairlead get --watch`: what is there, then every change as it comes.

use std::io::Write;

use anyhow::bail;
use fairlead_api::Look;
use fairlead_cluster::browse::Form;
use fairlead_cluster::{Cluster, Error};
use serde_json::Value;

use super::super::asked::{Asked, warn};
use super::super::kinds;
use super::super::print::{self, Output};
use super::super::table::{Columns, Table, Widths};
use super::GetFlags;
use crate::paint::{Paint, Tone};

/// Prints what is there, and then what changes, for ever.
pub(super) async fn run(cluster: &Cluster, flags: &GetFlags, asked: &[Asked]) -> anyhow::Result<()> {
    let [one] = asked else { bail!("one kind, or one object, is watched at a time") };
    let form = match flags.output {
        Output::Table | Output::Wide => Form::Table,
        _ => Form::Whole,
    };
    let mut printer = Printer {
        flags,
        one,
        columns: Columns::default(),
        widths: Widths::default(),
        head: Vec::new(),
        printed: false,
    };
    let mut warned = Vec::new();
    loop {
        let mut after = String::new();
        for page in cluster.look(&one.resource, &one.query, form).await? {
            warn(&page.warnings, &mut warned);
            after = page.body.at("metadata").text("resourceVersion").to_owned();
            printer.print(page.body)?;
        }
        match changes(cluster, one, form, &mut after, &mut printer).await {
            // What was missed is read anew.
            Err(error) if matches!(error.downcast_ref(), Some(Error::Expired(_))) => {}
            other => return other,
        }
    }
}

/// Prints changes; a watch that the server ends is opened again.
async fn changes(
    cluster: &Cluster,
    one: &Asked,
    form: Form,
    after: &mut String,
    printer: &mut Printer<'_>,
) -> anyhow::Result<()> {
    loop {
        let mut watch = cluster.watch(&one.resource, &one.query, form, after).await?;
        while let Some((_, object)) = watch.next().await? {
            let seen = revision(&object);
            if !seen.is_empty() {
                *after = seen;
            }
            printer.print(object)?;
        }
    }
}

/// The resourceVersion of an object, or of the last row of a table.
pub(in crate::objects) fn revision(object: &Value) -> String {
    let last = object.list("rows").last().map_or(object, |row| row.at("object"));
    last.at("metadata").text("resourceVersion").to_owned()
}

/// Prints one answer after the other, in columns that stay.
struct Printer<'a> {
    flags: &'a GetFlags,
    one: &'a Asked,
    columns: Columns,
    widths: Widths,
    head: Vec<String>,
    printed: bool,
}

impl Printer<'_> {
    fn print(&mut self, mut answer: Value) -> anyhow::Result<()> {
        self.columns.complete(&mut answer);
        let text = match self.flags.output {
            Output::Table | Output::Wide => self.rows(&answer),
            output => self.objects(answer, output),
        };
        let mut out = std::io::stdout();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    fn rows(&mut self, answer: &Value) -> String {
        let table = Table::read(answer, &self.flags.design(self.one, false), jiff::Timestamp::now().as_second());
        let new_head = !table.head.is_empty() && table.head != self.head && !table.rows.is_empty();
        let head = (new_head && !self.flags.no_headers).then(|| table.head.clone());
        if new_head {
            self.head = table.head;
        }
        self.widths.fit(head.iter().map(Vec::as_slice).chain(table.rows.iter().map(|row| row.cells.as_slice())));
        let paint = Paint::stdout();
        let head = head.map(|head| self.widths.line(&head, |_, cell| paint.tone(Tone::Strong, cell)));
        let rows = table.rows.iter().map(|row| self.widths.line(&row.cells, |_, cell| paint.word(cell)));
        head.into_iter().chain(rows).collect()
    }

    fn objects(&mut self, answer: Value, output: Output) -> String {
        let mut text = String::new();
        for mut object in kinds::items(answer, &self.one.resource) {
            if output == Output::Name {
                text.push_str(&print::name(&self.one.resource, &object));
                continue;
            }
            if !self.flags.show_managed_fields {
                print::without_managers(&mut object);
            }
            if output == Output::Yaml && std::mem::replace(&mut self.printed, true) {
                text.push_str("---\n");
            }
            text.push_str(&print::object(&object, output));
        }
        text
    }
}
