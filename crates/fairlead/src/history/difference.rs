//! `fairlead diff`: what is different now from what was some time ago. The object's fields as `diff -u` shows them, endpoints and
//! Pods line by line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use fairlead_api::Look;
use fairlead_cluster::{Cluster, Method, Resource};
use fairlead_history::Subject;
use jiff::Zoned;
use serde_json::{Value, json};

use super::unified::{self, Line};
use super::{Form, moment, show, timeline, times, whose};
use crate::door;
use crate::objects::table::{harmless, one_line};
use crate::objects::yaml;
use crate::paint::{Paint, Tone};
use crate::subject::similar;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead diff svc/web --since 10m          what changed about Service web in the last ten minutes
  fairlead diff svc/web --since 12:03:07     since then
  fairlead diff node/n1 --since 2h

It exits with 0 if nothing is different, with 1 if something is, and with 2 if that cannot be told.";

/// So many changes are looked through for one, and so many objects for a name that is meant.
const MOST: usize = 1000;

/// The options of `fairlead diff`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiffFlags {
    /// What: svc/NAME, pod/NAME, node/NAME, or a name alone for a Service
    #[arg(value_name = "OBJECT", required = true, num_args = 1..)]
    subject: Vec<String>,
    /// Its namespace
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Since when: a duration such as 10m, or a time such as 12:03:07 or 2026-01-31T12:03:07Z
    #[arg(long, value_name = "TIME", default_value = "10m")]
    since: String,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Answers, and says with which code to exit.
pub(crate) async fn run(flags: &DiffFlags) -> i32 {
    match told(flags).await {
        Ok(false) => 0,
        Ok(true) => 1,
        Err(error) => {
            crate::complain(&error);
            2
        }
    }
}

/// Prints the difference; whether there is any.
async fn told(flags: &DiffFlags) -> anyhow::Result<bool> {
    let now = Zoned::now();
    let since = times::read(&flags.since, &now).map_err(|why| anyhow!("--since: {why}"))?;
    let whose = whose(&flags.subject, &flags.namespace)?;
    let cluster = door::open(flags.kubeconfig.as_deref()).await?.managed_by("fairlead-history");
    let then = moment(&cluster, &whose, Some(since)).await?;
    let today = moment(&cluster, &whose, None).await?;
    if is_absent(&then) && is_absent(&today) {
        was_there(&cluster, &whose).await?;
    }
    if let Some(gap) = then.text_opt("gap") {
        let mark = Paint::stderr().tone(Tone::Fair, "Warning:");
        // What is printed is for `patch`, too.
        writeln!(std::io::stderr(), "{mark} at that time {}", one_line(gap)).context("writing the warning")?;
    }
    let parts = parts(&then, &today);
    let text = match flags.output {
        Form::Json => format!("{:#}\n", json!({"then": then, "now": today, "different": !parts.is_empty()})),
        Form::Text => {
            let when = since.to_zoned(now.time_zone().clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
            printed(&parts, &whose, &when, Paint::stdout())
        }
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")?;
    Ok(!parts.is_empty())
}

/// Nothing of it was there.
fn is_absent(answer: &Value) -> bool {
    answer.at("object").is_null() && ["endpoints", "pods"].iter().all(|part| answer.list(part).is_empty())
}

/// What is there neither then nor now may have come and gone. Of what nobody ever heard the name is wrong.
async fn was_there(cluster: &Cluster, whose: &str) -> anyhow::Result<()> {
    let past = timeline(cluster, Some(whose), None, MOST).await?;
    // A gap is told of everything.
    if past.list("items").iter().any(|item| item.text("change") != "gap") {
        return Ok(());
    }
    let subject: Subject = whose.parse().map_err(|why: String| anyhow!(why))?;
    let list = format!("{}?limit={MOST}", Resource::of(subject.kind.kind()).path(&subject.namespace));
    // Who may read the past need not be allowed to list what is there.
    let there = cluster.request(Method::GET, &list, None).await.unwrap_or_default();
    let names = there.list("items").iter().map(|one| one.at("metadata").text("name"));
    match similar(&subject.name, names) {
        Some(near) => {
            let near = Subject { name: near.to_owned(), ..subject };
            bail!("the record knows no {whose}; did you mean {near}?")
        }
        None => bail!("the record knows no {whose}; `fairlead history` shows whose changes are kept"),
    }
}

/// What differs: what it is of, then and now, as text.
pub(super) fn parts(then: &Value, now: &Value) -> Vec<(&'static str, String, String)> {
    let object = |answer: &Value| match answer.at("object") {
        Value::Null => String::new(),
        object => yaml::print(object),
    };
    let list = |answer: &Value, name: &str, line: fn(&Value) -> String| {
        answer.list(name).iter().map(|one| line(one) + "\n").collect::<String>()
    };
    let all = [
        ("", object(then), object(now)),
        ("endpoints", list(then, "endpoints", show::endpoint), list(now, "endpoints", show::endpoint)),
        ("pods", list(then, "pods", show::pod), list(now, "pods", show::pod)),
    ];
    all.into_iter().filter(|(_, then, now)| then != now).collect()
}

/// The same for people.
pub(super) fn printed(parts: &[(&str, String, String)], whose: &str, when: &str, paint: Paint) -> String {
    let mut out = String::new();
    for (what, then, now) in parts {
        let what = if what.is_empty() { String::new() } else { format!(" {what}") };
        let heads = [format!("--- {whose}{what}\t{when}"), format!("+++ {whose}{what}\tnow")];
        heads.iter().for_each(|head| out.push_str(&format!("{}\n", paint.tone(Tone::Strong, head))));
        let lines = unified::compare(then, now);
        for (place, lines) in unified::hunks(&lines) {
            out.push_str(&format!("{}\n", paint.tone(Tone::Faint, &place)));
            lines.iter().for_each(|line| out.push_str(&format!("{}\n", painted(*line, paint))));
        }
    }
    out
}

fn painted(line: Line<'_>, paint: Paint) -> String {
    let text = harmless(&line.text());
    match line {
        Line::Same(_) => text,
        Line::Gone(_) => paint.tone(Tone::Bad, &text),
        Line::New(_) => paint.tone(Tone::Good, &text),
    }
}
