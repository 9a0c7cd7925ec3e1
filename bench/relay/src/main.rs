//! What it costs to carry connections in a process: mode userspace beside HAProxy, each between a client and three servers in
//! network namespaces of their own, in one run. HAProxy is the program that `HAPROXY` names, or the one in `PATH`.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use fairlead_bench_kit::table::{self, Figure};

use measure::Kind;
use subject::{HaProxy, Subject};

mod client;
mod measure;
mod server;
mod subject;
mod world;

/// Measures mode userspace.
#[derive(Debug, Parser)]
struct Options {
    /// For how many seconds each kind of small traffic is made, in each round.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// How many rounds; the medians are printed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many gigabytes are sent in each direction, in each round.
    #[arg(long, default_value_t = 2)]
    gigabytes: u64,
    /// How many connections are open without a byte.
    #[arg(long, default_value_t = 4000)]
    idle: usize,
    /// HAProxy splices everything, through pipes as large as ours, instead of what it finds worth while (`splice-auto`).
    #[arg(long)]
    always_splice: bool,
    /// Which kinds of traffic.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "connections,requests,download,upload,idle")]
    kinds: Vec<Kind>,
    /// Be the proxy: used by the benchmark itself.
    #[arg(long, hide = true)]
    carry: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if options.carry {
        return subject::carry();
    }
    let amounts = measure::Amounts {
        time: Duration::from_secs(options.seconds),
        bytes: options.gigabytes << 30,
        idle: options.idle,
    };
    let mut ours = measure::Bench::new(Subject::Ours)?;
    let always_splices = options.always_splice;
    let peer = |program| measure::Bench::new(Subject::HaProxy(HaProxy { program, always_splices }));
    let mut peer = haproxy().map(peer).transpose()?;
    println!(
        "{} rounds, 8 clients, 3 servers, 2 threads, {} s and {} GiB each",
        options.rounds, options.seconds, options.gigabytes
    );
    let (mut our_figures, mut peer_figures) = (Vec::new(), Vec::new());
    for kind in options.kinds {
        // One after the other, so that whatever else the machine does is shared out evenly.
        let (mut our_rounds, mut peer_rounds) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds.max(1) {
            our_rounds.push(ours.run(kind, &amounts)?);
            if let Some(peer) = &mut peer {
                peer_rounds.push(peer.run(kind, &amounts)?);
            }
        }
        our_figures.extend(medians(&our_rounds));
        peer_figures.extend(medians(&peer_rounds));
    }
    print!("{}", table::render(&our_figures, peer.is_some().then_some(&peer_figures[..])));
    Ok(())
}

fn haproxy() -> Option<PathBuf> {
    let named = env::var_os("HAPROXY").map(PathBuf::from).filter(|path| path.is_file());
    let paths = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let usual = paths.into_iter().chain(["/usr/sbin".into()]).map(|folder| folder.join("haproxy"));
    named.or_else(|| usual.into_iter().find(|path| path.is_file()))
}

/// Of each figure the one in the middle.
fn medians(rounds: &[Vec<Figure>]) -> Vec<Figure> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let median = |(at, figure): (usize, &Figure)| {
        let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.get(at)).map(|figure| figure.value).collect();
        values.sort_by(f64::total_cmp);
        Figure { value: values[values.len() / 2], ..figure.clone() }
    };
    first.iter().enumerate().map(median).collect()
}
