//! The manual, followed to the letter: every command of README.md and docs/ is typed on a machine of its own, and must print what the
//! page shows. CONTRIBUTING.md says how pages are written.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

mod expect;
mod lab;
mod packaging;
mod page;
mod run;

use std::collections::BTreeSet;
use std::fs;

use fairlead_testkit::{need, project};
use page::{Step, What};

/// A test for each page, so that they run beside each other.
macro_rules! pages {
    ($($name:ident => $file:literal,)*) => {
        $(#[test] fn $name() { follow($file); })*
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    readme => "README.md",
    readme_in_chinese => "README.zh.md",
    start => "docs/start.md",
    start_cluster => "docs/start-cluster.md",
    api => "docs/api.md",
    controllers => "docs/controllers.md",
    command_line => "docs/command-line.md",
    dns => "docs/dns.md",
    environment => "docs/environment.md",
    explain => "docs/explain.md",
    history => "docs/history.md",
    images => "docs/images.md",
    ipvs => "docs/ipvs.md",
    load_balancer => "docs/load-balancer.md",
    nftables => "docs/nftables.md",
    operations => "docs/operations.md",
    web_page => "docs/page.md",
    pods => "docs/pods.md",
    proxy => "docs/proxy.md",
    register => "docs/register.md",
    security => "docs/security.md",
    several_machines => "docs/several-machines.md",
    store => "docs/store.md",
    telemetry => "docs/telemetry.md",
    trace => "docs/trace.md",
    userspace => "docs/userspace.md",
}

fn follow(file: &str) {
    let text = fs::read_to_string(project().join(file)).unwrap();
    let steps = page::steps(&text);
    let needed = text.lines().filter_map(|line| line.strip_prefix("<!-- needs: ")?.strip_suffix(" -->"));
    let needed: Vec<&str> = needed.flat_map(str::split_whitespace).collect();
    if !lab::possible(file) || !needed.iter().all(|what| need(file, what)) {
        return;
    }
    if let Err(why) = run::page(file, &steps) {
        panic!("{file}: {why}");
    }
}

/// Pages without a test of their own.
#[test]
fn other_pages() {
    pages().iter().filter(|file| !PAGES.contains(&file.as_str())).for_each(|file| follow(file));
}

/// README.md in its languages, and all of docs/.
fn pages() -> BTreeSet<String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(project().join(folder)).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(".md"))
    };
    let mut all: BTreeSet<String> = names(".").filter(|name| name.starts_with("README.")).collect();
    all.extend(names("docs").map(|name| format!("docs/{name}")));
    all
}

#[test]
fn every_block_runs_or_says_why_not() {
    let (mut run, mut not_run, mut wrong) = (0, Vec::new(), Vec::new());
    for file in pages() {
        let text = fs::read_to_string(project().join(&file)).unwrap();
        let steps = page::steps(&text);
        wrong.extend(unused(&steps).map(|name| format!("{file}: no command names the file {name}")));
        for Step { line, what, .. } in steps {
            match what {
                What::NotRun { reason } => not_run.push(format!("{file}:{line}: {reason}")),
                What::Wrong(why) => wrong.push(format!("{file}:{line}: {why}")),
                What::Session { commands, .. } => run += commands.len(),
                What::Lab { .. } | What::File { .. } | What::Manifest { .. } => run += 1,
            }
        }
    }
    println!("{run} commands and files run, {} blocks not-run:\n{}", not_run.len(), not_run.join("\n"));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(run > 0, "no page has a command");
}

/// Files the reader writes and no command reads.
fn unused(steps: &[Step]) -> impl Iterator<Item = &str> {
    let named = |name: &str| {
        steps.iter().any(|step| match &step.what {
            What::Session { commands, .. } => commands.iter().any(|command| command.text.contains(name)),
            What::Lab { commands, .. } => commands.iter().any(|command| command.contains(name)),
            _ => false,
        })
    };
    let files = steps.iter().filter_map(|step| match &step.what {
        What::File { name, .. } => Some(name.as_str()),
        _ => None,
    });
    files.filter(move |name| !named(name))
}
