//! How long a write takes to reach the last of many watchers.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fairlead_bench_kit::http::{Client, Lines, Target};
use serde_json::Value;

/// From sending the write to its arrival at the last watcher.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latency {
    /// Half of the writes were faster.
    pub(crate) p50: Duration,
    /// All but one in a hundred were faster.
    pub(crate) p99: Duration,
}

/// Changes the object at `object` so many times, one after the other, with so many watchers of `list`.
pub(crate) fn measure(
    target: &Target,
    list: &str,
    object: &str,
    watchers: usize,
    writes: usize,
) -> anyhow::Result<Latency> {
    let mut writer = Client::connect(target)?;
    let answer = writer.expect("GET", &format!("{list}?limit=1"), b"")?;
    let version = serde_json::from_slice::<Value>(&answer.body)?["metadata"]["resourceVersion"]
        .as_str()
        .context("a list has a resourceVersion")?
        .to_owned();
    let (sender, arrivals) = channel();
    for _ in 0..watchers {
        let watch = Client::connect(target)?.watch(&format!("{list}?watch=1&resourceVersion={version}"))?;
        let sender = sender.clone();
        thread::spawn(move || report(watch, &sender));
    }
    let mut times = Vec::with_capacity(writes);
    for number in 0..writes {
        let body = format!(r#"{{"metadata":{{"annotations":{{"bench":"{number}"}}}}}}"#);
        let since = Instant::now();
        writer.expect("PATCH", object, body.as_bytes())?;
        times.push(last_of(&arrivals, watchers)?.duration_since(since));
    }
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    Ok(Latency { p50: at(50), p99: at(99) })
}

/// Says when each event arrived, until the server goes or nobody listens.
fn report(mut watch: Lines, sender: &Sender<Instant>) {
    while watch.line().is_ok() {
        if sender.send(Instant::now()).is_err() {
            return;
        }
    }
}

fn last_of(arrivals: &Receiver<Instant>, watchers: usize) -> anyhow::Result<Instant> {
    let mut last = None;
    for seen in 0..watchers {
        let arrival = arrivals.recv_timeout(Duration::from_secs(10));
        last = last.max(Some(arrival.with_context(|| format!("an event reached {seen} of {watchers} watchers"))?));
    }
    last.context("there is at least one watcher")
}
