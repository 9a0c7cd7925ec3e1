//! How fast the API server is: starts one, loads it from one other core, and prints what was measured. With the binaries
//! of a peer (kube-apiserver and etcd) it measures those in the same way in the same go, and prints ratios.

#![allow(clippy::print_stdout)] // the table is what it is for

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use fairlead_bench_kit::{CLIENT_CORE, SERVER_CORE, process, server, table};

mod latency;
mod measure;

/// Measures the API server.
#[derive(Debug, Parser)]
struct Options {
    /// The program to measure.
    #[arg(long)]
    fairlead: PathBuf,
    /// How long each phase of creates and gets runs at most.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How many Services make the full store.
    #[arg(long, default_value_t = 10_000)]
    services: usize,
    /// Measure only creates, with so many clients, for all of the seconds: the load to look at with a profiler.
    #[arg(long)]
    creates: Option<usize>,
    /// Writes the figures to this file, for `bench/compare`.
    #[arg(long)]
    figures: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    process::pin_self(CLIENT_CORE)?;
    let plan = measure::Plan {
        time: Duration::from_secs_f64(options.seconds),
        services: options.services,
        creates: options.creates,
    };
    println!("server on core {SERVER_CORE}, {} s a phase, {} Services when full", options.seconds, plan.services);
    let ours = measured(server::Server::fairlead(&options.fairlead)?, &plan)?;
    if let Some(path) = &options.figures {
        table::write(path, &ours)?;
    }
    let peer = match server::Peer::from_environment() {
        Some(peer) => Some(measured(server::Server::peer(&peer)?, &plan)?),
        None => None,
    };
    print!("{}", table::render(&ours, peer.as_deref()));
    Ok(())
}

/// Measures a server, which ends with that.
fn measured(server: server::Server, plan: &measure::Plan) -> anyhow::Result<Vec<table::Figure>> {
    println!("measuring {}", server.name);
    measure::all(&server, plan)
}
