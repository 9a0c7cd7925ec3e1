//! What is measured, in which order: first on a nearly empty store, then on a full one.

use std::thread;
use std::time::{Duration, Instant};

use fairlead_bench_kit::http::{Client, Target};
use fairlead_bench_kit::load::{self, Done, Limit};
use fairlead_bench_kit::server::Server;
use fairlead_bench_kit::table::Figure;

use crate::latency;

/// How much.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Maximum duration of a phase.
    pub(crate) time: Duration,
    /// Services in the full store.
    pub(crate) services: usize,
    /// Nothing but creates, with so many clients.
    pub(crate) creates: Option<usize>,
}

/// Everything, on a server that has just started.
pub(crate) fn all(server: &Server, plan: &Plan) -> anyhow::Result<Vec<Figure>> {
    let mut bench = Bench { server, plan, figures: Vec::new() };
    bench.note("start to ready", bench.server.started.as_secs_f64() * 1000.0, "ms");
    // Whatever a server does right after its start is over by then.
    thread::sleep(Duration::from_secs(1));
    bench.note_memory("memory, empty")?;
    bench.client()?.expect("POST", "/api/v1/namespaces", NAMESPACE.as_bytes())?;
    if let Some(clients) = plan.creates {
        bench.creates(&format!("creates, {clients} clients"), "c", clients, MOST_ADDRESSES)?;
        return Ok(bench.figures);
    }
    for clients in [1, 16, 64] {
        bench.creates(&format!("creates, {clients} clients"), &format!("c{clients}"), clients, MOST_CREATES)?;
        bench.client()?.expect("DELETE", SERVICES, b"")?;
    }
    let mut filled = 0;
    for services in [FEW.min(plan.services), plan.services] {
        bench.fill(services, filled)?;
        if services > filled {
            bench.lists(&format!("list of {services}"), SERVICES)?;
        }
        filled = services;
    }
    bench.lists("first 500", &format!("{SERVICES}?limit=500"))?;
    for clients in [1, 16] {
        bench.gets(clients)?;
    }
    bench.note_memory("memory, Services")?;
    bench.slices()?;
    bench.note_memory("memory, Services and slices")?;
    for clients in [1, 16] {
        let what = format!("creates when full, {clients} clients");
        bench.creates(&what, &format!("f{clients}"), clients, MOST_CREATES_FULL)?;
    }
    bench.watchers()?;
    Ok(bench.figures)
}

const NAMESPACE: &str = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench"}}"#;
const SERVICES: &str = "/api/v1/namespaces/bench/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";

/// Creates of one phase: the store stays nearly empty, and the range of addresses lasts.
const MOST_CREATES: usize = 5_000;
const MOST_CREATES_FULL: usize = 1_000;

/// Creates that the range of addresses lasts for.
const MOST_ADDRESSES: usize = 60_000;

/// The smaller of the two lists.
const FEW: usize = 1_000;

/// Clients that only fill the store.
const FILLERS: usize = 16;
const WATCHERS: usize = 100;
const WATCHED_WRITES: usize = 300;

struct Bench<'a> {
    server: &'a Server,
    plan: &'a Plan,
    figures: Vec<Figure>,
}

impl Bench<'_> {
    fn target(&self) -> &Target {
        &self.server.target
    }

    fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.target())
    }

    fn note(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push(Figure { what: what.into(), value, unit });
    }

    fn note_memory(&mut self, what: &str) -> anyhow::Result<()> {
        let bytes = self.server.resident()?;
        self.note(what, bytes as f64 / f64::from(1 << 20), "MiB");
        Ok(())
    }

    fn creates(&mut self, what: &str, prefix: &str, clients: usize, most: usize) -> anyhow::Result<()> {
        let limit = Limit { time: self.plan.time, count: most };
        let (done, cpu) = self.with_cpu(|bench| {
            load::run(bench.target(), clients, limit, |client, number| {
                let body = service(&format!("{prefix}-{number}"));
                client.expect("POST", SERVICES, body.as_bytes()).map(drop)
            })
        })?;
        self.note(what, done.rate(), "/s");
        self.note(format!("{what}, server CPU"), cpu.as_secs_f64() * 1e6 / done.count.max(1) as f64, "us each");
        Ok(())
    }

    fn with_cpu(&self, run: impl Fn(&Self) -> anyhow::Result<Done>) -> anyhow::Result<(Done, Duration)> {
        let before = self.server.cpu()?;
        let done = run(self)?;
        Ok((done, self.server.cpu()?.saturating_sub(before)))
    }

    /// Services `from` up to `to`, not measured.
    fn fill(&self, to: usize, from: usize) -> anyhow::Result<()> {
        let limit = Limit { time: Duration::MAX, count: to.saturating_sub(from) };
        load::run(self.target(), FILLERS, limit, |client, number| {
            let body = service(&format!("s-{}", from + number));
            client.expect("POST", SERVICES, body.as_bytes()).map(drop)
        })?;
        Ok(())
    }

    /// The median of a few lists on one connection, after one that warms up.
    fn lists(&mut self, what: &str, path: &str) -> anyhow::Result<()> {
        let mut client = self.client()?;
        let mut bytes = client.expect("GET", path, b"")?.body.len();
        let mut times = Vec::new();
        for _ in 0..7 {
            let since = Instant::now();
            bytes = client.expect("GET", path, b"")?.body.len();
            times.push(since.elapsed());
        }
        times.sort_unstable();
        self.note(what, times[times.len() / 2].as_secs_f64() * 1000.0, "ms");
        self.note(format!("{what}, size"), bytes as f64 / 1024.0, "KiB");
        Ok(())
    }

    fn gets(&mut self, clients: usize) -> anyhow::Result<()> {
        let limit = Limit { time: self.plan.time, count: usize::MAX };
        let services = self.plan.services;
        let (done, cpu) = self.with_cpu(|bench| {
            load::run(bench.target(), clients, limit, |client, _| {
                let path = format!("{SERVICES}/s-{}", fastrand::usize(..services));
                client.expect("GET", &path, b"").map(drop)
            })
        })?;
        let what = format!("gets, {clients} clients");
        self.note(&what, done.rate(), "/s");
        self.note(format!("{what}, server CPU"), cpu.as_secs_f64() * 1e6 / done.count.max(1) as f64, "us each");
        Ok(())
    }

    fn watchers(&mut self) -> anyhow::Result<()> {
        let object = format!("{SERVICES}/s-0");
        let latency = latency::measure(self.target(), SERVICES, &object, WATCHERS, WATCHED_WRITES)?;
        self.note(format!("write to last of {WATCHERS} watchers, p50"), latency.p50.as_secs_f64() * 1000.0, "ms");
        self.note(format!("write to last of {WATCHERS} watchers, p99"), latency.p99.as_secs_f64() * 1000.0, "ms");
        Ok(())
    }

    /// A slice for each Service, not measured.
    fn slices(&self) -> anyhow::Result<()> {
        let limit = Limit { time: Duration::MAX, count: self.plan.services };
        load::run(self.target(), FILLERS, limit, |client, number| {
            client.expect("POST", SLICES, slice(number).as_bytes()).map(drop)
        })?;
        Ok(())
    }
}

fn service(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}","labels":{{"app":"{name}"}}}},"spec":{{"selector":{{"app":"{name}"}},"ports":[{{"name":"http","port":80,"targetPort":8080}}]}}}}"#
    )
}

fn slice(number: usize) -> String {
    let ip = format!("10.{}.{}.{}", 1 + number / 62_500 % 200, number / 250 % 250, 1 + number % 250);
    format!(
        r#"{{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{{"name":"s-{number}","labels":{{"kubernetes.io/service-name":"s-{number}"}}}},"addressType":"IPv4","endpoints":[{{"addresses":["{ip}"],"conditions":{{"ready":true}}}}],"ports":[{{"name":"http","port":8080}}]}}"#
    )
}
