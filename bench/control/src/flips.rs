//! Pods that become unready and ready again, one at a time, and when the slice says so.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fairlead_bench_kit::http::{Client, Lines};
use fairlead_bench_kit::table::Figure;
use serde_json::Value;

use crate::Options;
use crate::arrangement::Arrangement;
use crate::cluster::{self, PODS, SLICES};

/// Everything of one arrangement at one size.
pub(crate) fn measure(arrangement: &Arrangement, options: &Options, services: usize) -> anyhow::Result<Vec<Figure>> {
    let mut started = arrangement.start()?;
    let target = started.server.target.clone();
    cluster::fill(&target, services)?;
    arrangement.start_controllers(&mut started)?;
    let since = Instant::now();
    cluster::wait(&target, services)?;
    let synced = since.elapsed();

    let arrivals = watch(&started.server.target)?;
    let mut client = Client::connect(&target)?;
    // What the controllers do after their start is over by then.
    thread::sleep(Duration::from_secs(2));
    let before = started.cpu()?;
    let mut times = Vec::with_capacity(options.flips);
    for number in 0..options.flips {
        let pod = fastrand::usize(..services * PODS);
        let since = Instant::now();
        cluster::set_ready(&mut client, pod, false)?;
        times.push(arrival(&arrivals, pod, false)?.duration_since(since));
        cluster::set_ready(&mut client, pod, true)?;
        arrival(&arrivals, pod, true).with_context(|| format!("flip {number}"))?;
    }
    // Endpoints and whatever else follows the slice.
    thread::sleep(Duration::from_millis(300));
    let cpu = started.cpu()?.saturating_sub(before).as_secs_f64() / (2 * options.flips) as f64;
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    let figure = |what: &str, value, unit| Figure {
        what: format!("{}{services} Services, {what}", arrangement.prefix()),
        value,
        unit,
    };
    Ok(vec![
        figure("all slices after start", synced.as_secs_f64() * 1000.0, "ms"),
        figure("flip to slice, p50", at(50), "ms"),
        figure("flip to slice, p99", at(99), "ms"),
        figure("CPU of a flip", cpu * 1e6, "us"),
        figure("memory", started.resident()? as f64 / (1 << 20) as f64, "MiB"),
    ])
}

/// A slice arrived, with these endpoints: name of the Pod, and whether it is ready.
struct Arrival {
    when: Instant,
    endpoints: Vec<(String, bool)>,
}

fn watch(target: &fairlead_bench_kit::http::Target) -> anyhow::Result<Receiver<Arrival>> {
    let list = Client::connect(target)?.expect("GET", &format!("{SLICES}?limit=1"), b"")?;
    let list: Value = serde_json::from_slice(&list.body)?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list has a resourceVersion")?;
    let watch = Client::connect(target)?.watch(&format!("{SLICES}?watch=1&resourceVersion={version}"))?;
    let (sender, arrivals) = channel();
    thread::spawn(move || report(watch, &sender));
    Ok(arrivals)
}

fn report(mut watch: Lines, sender: &Sender<Arrival>) {
    while let Ok(line) = watch.line() {
        let when = Instant::now();
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let endpoints = event["object"]["endpoints"].as_array().into_iter().flatten().map(|endpoint| {
            let name = endpoint["targetRef"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), endpoint["conditions"]["ready"] == true)
        });
        if sender.send(Arrival { when, endpoints: endpoints.collect() }).is_err() {
            return;
        }
    }
}

/// When the slice arrived that says so of the Pod.
fn arrival(arrivals: &Receiver<Arrival>, pod: usize, ready: bool) -> anyhow::Result<Instant> {
    let wanted = (cluster::pod_name(pod), ready);
    loop {
        let arrival = arrivals.recv_timeout(Duration::from_secs(30)).context("no slice arrived for 30 s")?;
        if arrival.endpoints.contains(&wanted) {
            return Ok(arrival.when);
        }
    }
}
