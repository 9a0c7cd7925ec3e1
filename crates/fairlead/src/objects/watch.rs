//! `fairlead watch`: a table that stays and changes. Where nobody looks at a terminal, a line a change.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use fairlead_api::{Look, age};
use fairlead_cluster::browse::Form;
use fairlead_cluster::{Cluster, Error};
use serde_json::Value;

use super::asked::{Asked, Scope, asked};
use super::table::{Columns, Design, Table};
use board::{Board, Mark};

mod board;

pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead watch svc                  Services as they change
  fairlead watch endpointslices -A    of all namespaces
  fairlead watch pods -l app=web";

/// How often ages are counted anew.
const TICK: Duration = Duration::from_secs(1);

/// The options of `fairlead watch`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WatchFlags {
    /// KIND, KIND NAME or KIND/NAME: svc, endpointslices, pod/web-1
    #[arg(value_name = "WHAT", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// With more columns
    #[arg(long)]
    wide: bool,
}

/// Shows objects of a kind as they change, until interrupted.
pub(crate) async fn run(flags: WatchFlags) -> anyhow::Result<()> {
    let cluster = flags.scope.place.cluster().await?;
    let asked = asked(&cluster, &flags.words, &flags.scope).await?;
    let [one] = &asked[..] else { bail!("one kind, or one object, is watched at a time") };
    let namespaces = flags.scope.all_namespaces && one.resource.namespaced;
    let design = Design { wide: flags.wide, namespaces, ..Design::default() };
    let terminal = std::io::stdout().is_terminal();
    let mut screen = Screen { board: Board::default(), columns: Columns::default(), terminal, lines: 0 };
    loop {
        let mut after = String::new();
        let mut rows = Vec::new();
        // An object that is not there may come.
        let query = fairlead_cluster::browse::Query { name: String::new(), fields: fields(one), ..one.query.clone() };
        let list = Asked { resource: one.resource.clone(), query };
        for mut page in cluster.look(&list.resource, &list.query, Form::Table).await? {
            screen.columns.complete(&mut page.body);
            after = page.body.at("metadata").text("resourceVersion").to_owned();
            let table = Table::read(&page.body, &design, now());
            screen.board.head(table.head);
            rows.extend(table.rows);
        }
        let changes = screen.board.replace(rows, Instant::now());
        screen.show(&changes)?;
        match follow(&cluster, &list, &design, &mut after, &mut screen).await {
            // What was missed is read anew.
            Err(error) if matches!(error.downcast_ref(), Some(Error::Expired(_))) => {}
            other => return other,
        }
    }
}

/// The name as a field selector.
fn fields(one: &Asked) -> String {
    match one.query.name.as_str() {
        "" => one.query.fields.clone(),
        name => format!("metadata.name={name}"),
    }
}

async fn follow(
    cluster: &Cluster,
    list: &Asked,
    design: &Design,
    after: &mut String,
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let mut tick = tokio::time::interval(TICK);
    loop {
        let mut watch = cluster.watch(&list.resource, &list.query, Form::Table, after).await?;
        loop {
            tokio::select! {
                change = watch.next() => {
                    let Some((change, answer)) = change? else { break };
                    let seen = super::get::revision(&answer);
                    if !seen.is_empty() {
                        *after = seen;
                    }
                    screen.take(&change, answer, design)?;
                }
                _ = tick.tick() => screen.age()?,
            }
        }
    }
}

/// Where it is shown.
struct Screen {
    board: Board,
    columns: Columns,
    terminal: bool,
    /// So many lines are on the terminal.
    lines: usize,
}

impl Screen {
    fn take(&mut self, change: &str, mut answer: Value, design: &Design) -> anyhow::Result<()> {
        self.columns.complete(&mut answer);
        let table = Table::read(&answer, design, now());
        self.board.head(table.head);
        let mut changes = Vec::new();
        for row in table.rows {
            changes.extend(match change {
                "DELETED" => self.board.remove(row, Instant::now()),
                _ => self.board.put(row, Instant::now()),
            });
        }
        self.show(&changes)
    }

    /// Shows the board, or, where nobody looks at it, what changed.
    fn show(&mut self, changes: &[(Mark, Vec<String>)]) -> anyhow::Result<()> {
        let mut out = std::io::stdout();
        if !self.terminal {
            out.write_all(self.board.lines(changes).as_bytes())?;
            return Ok(out.flush()?);
        }
        let (columns, rows) = fairlead_kernel::terminal::size(&out).unwrap_or((80, 24));
        let text = self.board.render(usize::from(columns), usize::from(rows));
        let up = if self.lines > 0 { format!("\u{1b}[{}A", self.lines) } else { String::new() };
        write!(out, "{up}\r\u{1b}[J{text}")?;
        self.lines = text.lines().count();
        Ok(out.flush()?)
    }

    /// Time has passed.
    fn age(&mut self) -> anyhow::Result<()> {
        let now = now();
        self.board.age(Instant::now(), |created| age::age(created, now));
        if self.terminal { self.show(&[]) } else { Ok(()) }
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
