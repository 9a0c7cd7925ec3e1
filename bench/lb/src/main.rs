//! What it costs to carry connections and requests through a load balancer: ours, HAProxy and nginx, in turns and in one run.
//!
//! Everything happens on loopback in a network namespace of its own: the load balancer with one thread on one core, clients and
//! backend on the other. Needs root, `ip`, `taskset` and `openssl`; a peer that is not installed is left out.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use fairlead_bench_kit::{CLIENT_CORE, SERVER_CORE, process};
use fairlead_kernel::netns::Namespace;

use kinds::Kind;
use measure::Plan;

mod backend;
mod kinds;
mod load;
mod measure;
mod ours;
mod peers;
mod table;

/// What the program has, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures load balancers.
#[derive(Debug, Parser)]
struct Options {
    /// For how many seconds each kind of traffic is made, in each round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How often everybody has a turn. The middle one counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Which kinds of traffic; all if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Ours alone.
    #[arg(long)]
    alone: bool,
    /// Another build of this benchmark that is the load balancer in place of this one.
    #[arg(long)]
    balancer: Option<PathBuf>,
    /// Writes the figures of ours to this file, for `bench/compare`.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// Be the load balancer, with the certificates in this directory: used by the benchmark itself.
    #[arg(long, hide = true)]
    balance: Option<PathBuf>,
    /// Be the backend: used by the benchmark itself.
    #[arg(long, hide = true)]
    answer: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if options.answer {
        return backend::run();
    }
    if let Some(certificates) = options.balance {
        return ours::run(&certificates);
    }
    let namespace = Namespace::unnamed()?;
    namespace.enter()?;
    ensure!(Command::new("ip").args(["link", "set", "lo", "up"]).status()?.success(), "ip link set lo up");
    process::pin_self(CLIENT_CORE)?;
    println!("load balancers on core {SERVER_CORE} with one thread, clients and backend on core {CLIENT_CORE}");
    println!("load of the machine before: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    let time = Duration::from_secs_f64(options.seconds);
    let kinds = if options.kinds.is_empty() { Kind::all() } else { options.kinds };
    let balancer = options.balancer.map_or_else(std::env::current_exe, Ok)?;
    let plan = Plan { time, rounds: options.rounds.max(1), kinds, alone: options.alone, balancer };
    let subjects = measure::measure(&plan)?;
    print!("{}", table::render(&subjects));
    if let (Some(path), [ours, ..]) = (options.figures, subjects.as_slice()) {
        fairlead_bench_kit::table::write(&path, &table::figures(ours))?;
    }
    println!("load of the machine after: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    Ok(())
}
