//! `fairlead run`: makes a Pod of a command and stays with it, or leaves it to run.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fairlead_api::{Look, kinds};
use fairlead_cluster::streams::{Log, Streams, Wanted};
use fairlead_cluster::{Cluster, Delete};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::manifest::{self, RunFlags};
use super::{follow, state, stop, terminal};

/// Makes the Pod and waits for it, unless told not to. The exit code is the command's.
pub(crate) async fn run(mut flags: RunFlags) -> anyhow::Result<i32> {
    if flags.tty && !terminal::is_one() {
        say("no terminal is given to it: there is none here");
        flags.tty = false;
    }
    let cluster = flags.place.cluster().await?;
    let pod = manifest::pod(&flags, here(&flags).as_deref())?;
    let made = cluster.create(&kinds::POD, &pod).await?;
    let name = made.at("metadata").text("name").to_owned();
    if flags.detach {
        writeln!(std::io::stdout(), "pod/{name}")?;
        return Ok(0);
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let code = tokio::select! {
        code = stay(&cluster, &flags, &name) => code?,
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    match code {
        Some(code) if !flags.rm => return Ok(code),
        Some(_) => {}
        None => say(&format!("stopping pod/{name}")),
    }
    let how = Delete::default();
    let gone = stop::stop(&cluster, &flags.place, &name, &how);
    tokio::select! {
        gone = gone => gone.or_else(|error| if stop::is_gone(&error) { Ok(()) } else { Err(error) })?,
        // Who asks twice does not want to wait.
        _ = interrupt.recv() => bail!("pod/{name} is being stopped"),
    }
    Ok(code.unwrap_or(130))
}

/// Shows what a Pod says until it has ended; its exit code, or nothing if somebody removed it.
async fn stay(cluster: &Cluster, flags: &RunFlags, name: &str) -> anyhow::Result<Option<i32>> {
    if !started(cluster, flags, name).await? {
        return Ok(None);
    }
    let streams = flags.place.streams().await?;
    if flags.tty {
        let wanted = Wanted { stdin: true, tty: true, ..Wanted::default() };
        match streams.attach(name, &wanted).await {
            Ok(attached) => {
                // What it said before anybody looked.
                show_log(&streams, name, false).await?;
                drop(terminal::join(attached, true).await?);
            }
            // It may have ended already; then its log is all there is.
            Err(_) => show_log(&streams, name, true).await?,
        }
    } else {
        let input = flags.stdin.then(|| pass_input(&streams, name));
        let input = async {
            if let Some(input) = input {
                input.await
            }
        };
        // The log has all of it, also what was said before somebody looked.
        tokio::select! {
            shown = show_log(&streams, name, true) => shown?,
            () = async { input.await; std::future::pending().await } => {}
        }
    }
    ended(cluster, flags, name).await
}

/// Waits until it has started. Says once what keeps it.
async fn started(cluster: &Cluster, flags: &RunFlags, name: &str) -> anyhow::Result<bool> {
    let mut told = String::new();
    let mut states = follow(cluster, flags.place.pod(name));
    while let Some(pod) = states.next().await {
        let Some(pod) = pod else { return Ok(false) };
        if state(&pod).0 != "waiting" || ["Succeeded", "Failed"].contains(&pod.at("status").text("phase")) {
            return Ok(true);
        }
        let why = waits_for(&pod);
        if !why.is_empty() && why != told {
            say(&format!("pod/{name} waits: {why}"));
            told = why;
        }
    }
    Ok(false)
}

/// What keeps a Pod from running, if that is known.
fn waits_for(pod: &Value) -> String {
    let (_, waiting) = state(pod);
    if !waiting.text("message").is_empty() {
        return format!("{}: {}", waiting.text("reason"), waiting.text("message"));
    }
    let conditions = pod.at("status").list("conditions").iter();
    let unscheduled =
        |condition: &&Value| condition.text("type") == "PodScheduled" && condition.text("status") == "False";
    conditions.filter(unscheduled).map(|condition| condition.text("message").to_owned()).next().unwrap_or_default()
}

/// Waits until it has ended for good.
async fn ended(cluster: &Cluster, flags: &RunFlags, name: &str) -> anyhow::Result<Option<i32>> {
    let mut states = follow(cluster, flags.place.pod(name));
    while let Some(pod) = states.next().await {
        let Some(pod) = pod else { return Ok(None) };
        if ["Succeeded", "Failed"].contains(&pod.at("status").text("phase")) {
            let (_, ended) = state(&pod);
            let code = ended.at("exitCode").as_i64().unwrap_or(1);
            let message =
                [ended.text("message"), pod.at("status").text("message")].into_iter().find(|text| !text.is_empty());
            if let (Some(message), true) = (message, code != 0) {
                say(message);
            }
            return Ok(Some(i32::try_from(code).unwrap_or(1)));
        }
    }
    Ok(None)
}

async fn show_log(streams: &Streams, name: &str, follow: bool) -> anyhow::Result<()> {
    let log = streams.log(name, &Log { follow, ..Log::default() }).await?;
    terminal::show(log, &mut tokio::io::stdout()).await.context("printing")
}

/// Sends what is typed here to its input. What goes wrong there is in its log, or does not matter any more.
async fn pass_input(streams: &Streams, name: &str) {
    let wanted = Wanted { stdin: true, ..Wanted::default() };
    if let Ok(attached) = streams.attach(name, &wanted).await {
        terminal::feed(attached).await;
    }
}

/// Directories of which a Pod has its own.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The working directory, if a user without rights can be in it.
fn here(flags: &RunFlags) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    if flags.workdir.is_none() && flags.user.is_none() && !is_open(&here) {
        say(&format!("it starts in /: not everybody may enter {}", here.display()));
        return Some(PathBuf::from("/"));
    }
    if flags.workdir.is_none() && PRIVATE.iter().any(|private| here.starts_with(private)) {
        say(&format!("it starts in /: a Pod has a /tmp, /var/tmp and /dev/shm of its own, without {}", here.display()));
        return Some(PathBuf::from("/"));
    }
    Some(here)
}

/// Whether everybody may enter a directory, and those it is in.
fn is_open(directory: &Path) -> bool {
    const ENTER: u32 = 0o001;
    let open = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & ENTER != 0);
    directory.ancestors().all(open)
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "fairlead: {text}");
}
