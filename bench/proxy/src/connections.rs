//! What a new connection costs client, server and everything between them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairlead_bench_kit::process;

use crate::objects::endpoint;
use crate::world::{PORT, World, ask, run};

/// How long one look takes, and how many there are; the middle one counts.
const LOOK: Duration = Duration::from_millis(700);
const LOOKS: usize = 5;
/// An address with one rule.
const BARE: &str = "10.9.9.9";

/// What connections cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Time on cores, for one.
    pub(crate) microseconds: f64,
    /// How many there were in a second.
    pub(crate) rate: f64,
}

/// Through the address of a Service.
pub(crate) fn cost(world: &World, at: SocketAddr) -> anyhow::Result<Cost> {
    let mut looks: Vec<Cost> = (0..LOOKS).map(|_| world.as_client(|| look(at))?).collect::<anyhow::Result<_>>()?;
    looks.sort_by(|one, other| one.microseconds.total_cmp(&other.microseconds));
    Ok(looks[LOOKS / 2])
}

/// Through one rule of its own and nothing else.
pub(crate) fn bare(world: &World) -> anyhow::Result<Cost> {
    run("nft add table ip bench")?;
    run("nft add chain ip bench nat { type nat hook prerouting priority -100 ; }")?;
    run(&format!("nft add rule ip bench nat ip daddr {BARE} tcp dport 80 dnat to {}:{PORT}", endpoint(0)))?;
    let cost = cost(world, SocketAddr::from(([10, 9, 9, 9], 80)));
    run("nft delete table ip bench")?;
    cost
}

/// The middle of two.
pub(crate) fn between(one: &Cost, other: &Cost) -> Cost {
    let middle = |one: f64, other: f64| (one + other) / 2.0;
    Cost { microseconds: middle(one.microseconds, other.microseconds), rate: middle(one.rate, other.rate) }
}

fn look(at: SocketAddr) -> anyhow::Result<Cost> {
    let (before, since) = (process::own_cpu()?, Instant::now());
    let mut count = 0_u32;
    while since.elapsed() < LOOK {
        anyhow::ensure!(ask(at).is_some(), "{at} does not answer");
        count += 1;
    }
    let (spent, took) = (process::own_cpu()?.saturating_sub(before), since.elapsed());
    Ok(Cost { microseconds: spent.as_secs_f64() * 1e6 / f64::from(count), rate: f64::from(count) / took.as_secs_f64() })
}
