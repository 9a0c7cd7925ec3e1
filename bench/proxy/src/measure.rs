//! What is measured of one proxy with so many Services.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fairlead_bench_kit::http::Client;
use fairlead_bench_kit::process::Running;
use fairlead_bench_kit::table::Figure;

use crate::connections;
use crate::objects::{self, ENDPOINTS, endpoint, virtual_address};
use crate::proxies::Proxy;
use crate::world::{World, ask, run};

/// Nobody waits for longer than that.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures, and leaves the node as it was.
pub(crate) fn measure(world: &World, proxy: &Proxy, services: usize, changes: usize) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut note = |what: &str, value: f64, unit| {
        figures.push(Figure { what: format!("{services} Services: {what}"), value, unit });
    };
    let bare = connections::bare(world)?;
    let began = Instant::now();
    let mut running = proxy.start(world)?;
    all_answer(world, &mut running, services)?;
    note("start to all answer", began.elapsed().as_secs_f64() * 1e3, "ms");
    settle(&running)?;
    note("CPU until then", running.cpu_with_children()?.as_secs_f64(), "s");
    note("memory", running.resident()? as f64 / f64::from(1 << 20), "MiB");

    let before = running.cpu_with_children()?;
    let mut times = change(world, proxy, services, changes)?;
    settle(&running)?;
    let spent = running.cpu_with_children()?.saturating_sub(before);
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1e3;
    note("change to packet, p50", at(0.5), "ms");
    note("change to packet, p99", at(0.99), "ms");
    note("CPU of a change", spent.as_secs_f64() * 1e3 / changes as f64, "ms");
    note("memory after the changes", running.resident()? as f64 / f64::from(1 << 20), "MiB");

    let first = connections::cost(world, virtual_address(0))?;
    let last = connections::cost(world, virtual_address(services - 1))?;
    running.end();
    run("nft flush ruleset")?;
    let bare = connections::between(&bare, &connections::bare(world)?);
    note("new connection, bare DNAT, CPU", bare.microseconds, "us");
    note("new connection, first Service, CPU", first.microseconds, "us");
    note("new connection, last Service, CPU", last.microseconds, "us");
    note("new connections, bare DNAT", bare.rate, "/s");
    note("new connections, last Service", last.rate, "/s");
    Ok(figures)
}

/// Waits until the first, a middle and the last Service answer.
fn all_answer(world: &World, running: &mut Running, services: usize) -> anyhow::Result<()> {
    let since = Instant::now();
    for service in [0, services / 2, services - 1] {
        while world.as_client(|| ask(virtual_address(service)))?.is_none() {
            running.check()?;
            ensure!(since.elapsed() < PATIENCE, "Service {service} does not answer");
            thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// Waits until it has nothing to do.
fn settle(running: &Running) -> anyhow::Result<()> {
    loop {
        let before = running.cpu_with_children()?;
        thread::sleep(Duration::from_millis(300));
        if running.cpu_with_children()?.saturating_sub(before) < Duration::from_millis(15) {
            return Ok(());
        }
    }
}

/// Replaces all endpoints of a Service, again and again, each time another's; how long it takes until a new one answers.
fn change(world: &World, proxy: &Proxy, services: usize, changes: usize) -> anyhow::Result<Vec<Duration>> {
    let mut client = Client::connect(&world.server.target)?;
    let mut fresh = world.take_endpoints(ENDPOINTS * u32::try_from(changes)?);
    let pause = Duration::from_millis(proxy.pause());
    world.as_client(move || {
        let mut times = Vec::new();
        for turn in 0..changes {
            let service = turn * 7919 % services;
            objects::replace(&mut client, service, fresh)?;
            let since = Instant::now();
            let new = |ip: IpAddr| (fresh..fresh + ENDPOINTS).any(|number| ip == endpoint(number));
            while !ask(virtual_address(service)).is_some_and(new) {
                ensure!(since.elapsed() < PATIENCE, "the new endpoints of Service {service} do not answer");
                thread::sleep(Duration::from_micros(200));
            }
            times.push(since.elapsed());
            fresh += ENDPOINTS;
            thread::sleep(pause);
        }
        Ok(times)
    })?
}
