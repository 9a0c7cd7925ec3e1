//! How fast endpoints follow Pods: from the change of a Pod's readiness to the EndpointSlice on a watch, and what that costs the
//! controllers. With a kube-controller-manager named by `KUBE_CONTROLLER_MANAGER` it measures that one too, on the same API server.

#![allow(clippy::print_stdout)] // the table is what it is for

use std::env;
use std::path::PathBuf;

use clap::Parser;
use fairlead_bench_kit::{CLIENT_CORE, SERVER_CORE, process, table};

use arrangement::Arrangement;

mod arrangement;
mod cluster;
mod flips;

/// Measures the endpoint controllers.
#[derive(Debug, Parser)]
struct Options {
    /// The program to measure.
    #[arg(long)]
    fairlead: PathBuf,
    /// Numbers of Services, with five Pods each.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    services: Vec<usize>,
    /// How many Pods change, one at a time.
    #[arg(long, default_value_t = 600)]
    flips: usize,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    process::pin_self(CLIENT_CORE)?;
    println!(
        "API server on core {SERVER_CORE}, controllers and client on core {CLIENT_CORE}, {} flips, 5 Pods a Service",
        options.flips
    );
    let peer = env::var_os("KUBE_CONTROLLER_MANAGER").map(PathBuf::from).filter(|path| path.exists());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for services in &options.services {
        let measure = |arrangement: &Arrangement| flips::measure(arrangement, &options, *services);
        ours.extend(measure(&Arrangement::Beside(options.fairlead.clone()))?);
        ours.extend(measure(&Arrangement::Inside(options.fairlead.clone()))?);
        if let Some(program) = &peer {
            theirs.extend(measure(&Arrangement::Peer(options.fairlead.clone(), program.clone()))?);
        }
    }
    print!("{}", table::render(&ours, peer.is_some().then_some(&theirs[..])));
    Ok(())
}
