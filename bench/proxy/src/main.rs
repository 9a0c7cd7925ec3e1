//! What a node proxy costs: from its start to the last Service that answers, from a change of endpoints to the first packet at a
//! new one, and for every new connection. With a kube-proxy named by `KUBE_PROXY` it measures that one too, in the same run.
//!
//! Everything happens in network namespaces of its own: a node with the API server and the proxy, a client, and a host that answers
//! at all addresses endpoints have. Needs root, `ip` and `nft`.

#![allow(clippy::print_stdout)] // the table is what it is for

use std::env;
use std::path::PathBuf;

use clap::Parser;
use fairlead_bench_kit::{CLIENT_CORE, SERVER_CORE, process, table};

use proxies::Proxy;
use world::World;

mod connections;
mod measure;
mod objects;
mod proxies;
mod world;

/// Measures node proxies.
#[derive(Debug, Parser)]
struct Options {
    /// The program to measure.
    #[arg(long)]
    fairlead: PathBuf,
    /// Numbers of Services, with ten endpoints each.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    services: Vec<usize>,
    /// The most Services the peer is measured with: it takes minutes beyond ten thousand.
    #[arg(long, default_value_t = 10_000)]
    peer_services: usize,
    /// How many changes of endpoints, one at a time.
    #[arg(long, default_value_t = 300)]
    changes: usize,
    /// How many of the peer, each two seconds after the last, so that its own pacing does not count.
    #[arg(long, default_value_t = 15)]
    peer_changes: usize,
    /// The mode, as --proxy-mode names it.
    #[arg(long, default_value = "nftables")]
    mode: String,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    process::pin_self(SERVER_CORE)?;
    println!(
        "mode {}, 10 endpoints a Service; API server and client on core {SERVER_CORE}, proxy on core {CLIENT_CORE}",
        options.mode
    );
    let peer = env::var_os("KUBE_PROXY").map(PathBuf::from).filter(|path| path.exists());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for services in &options.services {
        let world = World::new(&options.fairlead)?;
        objects::fill(&world, *services)?;
        let measure = |proxy: &Proxy, changes| measure::measure(&world, proxy, *services, changes);
        let fairlead = Proxy::Fairlead(options.fairlead.clone(), options.mode.clone());
        ours.extend(measure(&fairlead, options.changes)?);
        if let Some(program) = peer.as_ref().filter(|_| *services <= options.peer_services) {
            theirs.extend(measure(&Proxy::Peer(program.clone(), options.mode.clone()), options.peer_changes)?);
        }
    }
    print!("{}", table::render(&ours, peer.is_some().then_some(&theirs[..])));
    Ok(())
}
