//! What an answer of cluster DNS costs: processor time of the server for each, at a fixed rate and flat out, how long it takes, and how
//! soon a new Service has its name. Knot, if installed, and a CoreDNS that `COREDNS` names have the same records and the same questions;
//! a bare echo of datagrams, one by one, is what a server cannot do without.
//!
//! Everything happens in a network namespace of its own, servers on one core, questions from the other. Needs root and `ip`.

#![allow(clippy::print_stdout)] // the table is what it is for

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use fairlead_bench_kit::table::{self, Figure};
use fairlead_bench_kit::{CLIENT_CORE, SERVER_CORE, process};
use fairlead_kernel::netns::Namespace;

use measure::Plan;

mod columns;
mod create;
mod load;
mod measure;
mod records;
mod subjects;

/// Measures servers of cluster DNS.
#[derive(Debug, Parser)]
struct Options {
    /// The program to measure.
    #[arg(long, required_unless_present = "echo")]
    fairlead: Option<PathBuf>,
    /// Numbers of Services.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    services: Vec<usize>,
    /// Questions a second, where the rate is fixed.
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    /// How long a look takes, in seconds.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How often everybody has a turn. The middle one counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many Services are created to see when their names are there.
    #[arg(long, default_value_t = 500)]
    creates: usize,
    /// Ours alone.
    #[arg(long)]
    alone: bool,
    /// Writes the figures of ours to this file, for `bench/compare`.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// Be the echo, at an address.
    #[arg(long, hide = true)]
    echo: Option<SocketAddr>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(at) = options.echo {
        return subjects::echo(at);
    }
    let fairlead = options.fairlead.context("--fairlead")?;
    let namespace = Namespace::unnamed()?;
    namespace.enter()?;
    ensure!(Command::new("ip").args(["link", "set", "lo", "up"]).status()?.success(), "ip link set lo up");
    process::pin_self(CLIENT_CORE)?;
    let peers = if options.alone { Vec::new() } else { subjects::peers() };
    println!(
        "servers on core {SERVER_CORE}, questions from core {CLIENT_CORE}; {}/s where the rate is fixed",
        options.rate
    );
    println!("load of the machine before: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    if peers.is_empty() {
        println!("peer absent");
    }
    let time = Duration::from_secs_f64(options.seconds);
    let plan = Plan { rate: options.rate, time, rounds: options.rounds.max(1), alone: options.alone };
    let mut all = Vec::new();
    let mut figures = Vec::new();
    for services in &options.services {
        let rows = measure::measure(&fairlead, &peers, *services, &plan)?;
        figures.extend(columns::figures(&format!("{services} Services"), rows.first()));
        print!("{}", columns::render(&format!("{services} Services"), &rows));
        all.push((*services, rows));
    }
    if let [(few, first), .., (many, last)] = all.as_slice() {
        print!("{}", columns::growth(&format!("{many} Services, times {few}"), first, last));
    }
    if options.creates > 0 {
        let times = create::measure(&fairlead, options.services.first().copied().unwrap_or(0), options.creates)?;
        println!("from the API's 201 to the first right answer, of {}: {times}", options.creates);
        for (what, part) in [("p50", 0.5), ("p99", 0.99)] {
            let what = format!("201 to the first right answer, {what}");
            figures.push(Figure { what, value: times.at(part), unit: "ms" });
        }
    }
    if let Some(path) = options.figures {
        table::write(&path, &figures)?;
    }
    println!("load of the machine after: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    Ok(())
}

/// A program by its name, in PATH or where Debian keeps servers.
fn find(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&paths).collect();
    places.push("/usr/sbin".into());
    places.into_iter().map(|place| place.join(name)).find(|path| path.is_file())
}
