//! Rounds of traffic, and what they cost.

use std::time::{Duration, Instant};

use anyhow::ensure;
use fairlead_bench_kit::process::{self, Running};
use fairlead_bench_kit::table::Figure;

use crate::client;
use crate::server::{self, Held};
use crate::subject::Subject;
use crate::world::World;

/// How much of each.
#[derive(Debug)]
pub(crate) struct Amounts {
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
    pub(crate) idle: usize,
}

/// A kind of traffic.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Connections of one request each.
    Connections,
    /// Requests on connections that stay.
    Requests,
    /// Much from servers.
    Download,
    /// Much from clients.
    Upload,
    /// Connections without a byte.
    Idle,
}

/// A proxy at work.
pub(crate) struct Bench {
    world: World,
    subject: Subject,
    running: Running,
    held: Held,
    folder: tempfile::TempDir,
}

/// What a piece of work took.
struct Cost {
    count: f64,
    seconds: f64,
    /// Of the proxy.
    proxy: f64,
    /// Of the proxy, clients and servers.
    all: f64,
}

impl Bench {
    pub(crate) fn new(subject: Subject) -> anyhow::Result<Bench> {
        let (world, folder) = (World::new()?, tempfile::tempdir()?);
        let held = server::start(&world)?;
        let running = subject.start(&world, folder.path())?;
        Ok(Bench { world, subject, running, held, folder })
    }

    /// One kind of traffic, once.
    pub(crate) fn run(&mut self, kind: Kind, amounts: &Amounts) -> anyhow::Result<Vec<Figure>> {
        let small = |name: &str, cost: &Cost| {
            vec![
                figure(name, cost.count / cost.seconds, "1/s"),
                figure(&format!("{name}: CPU of the proxy"), cost.proxy / cost.count * 1e6, "us each"),
                figure(&format!("{name}: CPU of all"), cost.all / cost.count * 1e6, "us each"),
            ]
        };
        let large = |name: &str, cost: &Cost| {
            let gigabytes = cost.count / 1e9;
            vec![
                figure(name, gigabytes / cost.seconds, "GB/s"),
                figure(&format!("{name}: CPU of the proxy"), cost.proxy / gigabytes * 1e3, "ms/GB"),
                figure(&format!("{name}: CPU of all"), cost.all / gigabytes * 1e3, "ms/GB"),
            ]
        };
        Ok(match kind {
            Kind::Connections => {
                small("short connections", &self.cost(|world| client::connections(world, amounts.time))?)
            }
            Kind::Requests => small("small requests", &self.cost(|world| client::requests(world, amounts.time))?),
            Kind::Download => large("download", &self.cost(|world| client::download(world, amounts.bytes))?),
            Kind::Upload => large("upload", &self.cost(|world| client::upload(world, amounts.bytes))?),
            Kind::Idle => self.idle(amounts.idle)?,
        })
    }

    /// Memory of connections without a byte, with a proxy that carried nothing before.
    fn idle(&mut self, count: usize) -> anyhow::Result<Vec<Figure>> {
        self.running.check()?;
        self.running.end();
        self.running = self.subject.start(&self.world, self.folder.path())?;
        let before = self.running.resident()?;
        let connections = client::hold(&self.world, count)?;
        let end = Instant::now() + Duration::from_secs(20);
        let reached = || self.held.lock().expect("nobody panics with it").len();
        while reached() < count {
            ensure!(Instant::now() < end, "{} of {count} connections reached a server", reached());
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = self.running.resident()?;
        drop(connections);
        self.held.lock().expect("nobody panics with it").clear();
        let each = after.saturating_sub(before) as f64 / count as f64;
        Ok(vec![
            figure("memory of the proxy at rest", before as f64 / f64::from(1 << 20), "MiB"),
            figure(&format!("memory of {count} connections"), each, "bytes each"),
        ])
    }

    fn cost(&self, work: impl FnOnce(&World) -> anyhow::Result<u64>) -> anyhow::Result<Cost> {
        let (proxy, own, began) = (self.running.cpu_of_threads()?, process::own_cpu()?, Instant::now());
        let count = work(&self.world)? as f64;
        let seconds = began.elapsed().as_secs_f64();
        // What is still being closed.
        std::thread::sleep(Duration::from_millis(50));
        let proxy = (self.running.cpu_of_threads()? - proxy).as_secs_f64();
        let all = proxy + (process::own_cpu()? - own).as_secs_f64();
        Ok(Cost { count, seconds, proxy, all })
    }
}

fn figure(what: &str, value: f64, unit: &'static str) -> Figure {
    Figure { what: what.to_owned(), value, unit }
}
