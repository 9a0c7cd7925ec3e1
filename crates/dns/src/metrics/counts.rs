//! What is counted for each question. Threads count apart, so that none waits for another; sums are made when somebody asks.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairlead_zone::message::Rcode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::Labels;
use crate::ask::Transport;
use crate::words;

/// Types that are counted by their name; others together.
const TYPES: [u16; 20] = [1, 28, 15, 6, 5, 12, 16, 2, 33, 43, 48, 46, 47, 50, 65, 251, 252, 255, 35, 64];
/// Parts that are counted apart.
const SHARDS: usize = 8;
/// Bounds of durations, in nanoseconds: 0.25 ms, and each twice the one before.
const DURATIONS: usize = 16;
/// Bounds of sizes.
const SIZES: [u32; 14] = [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000];

/// Counts of all servers and zones.
#[derive(Debug, Default)]
pub(crate) struct All {
    known: Mutex<Labels>,
}

impl All {
    pub(super) fn of(&self, server: &str, zone: &str) -> Arc<Counts> {
        self.known().entry((server.to_owned(), zone.to_owned())).or_default().clone()
    }

    fn known(&self) -> MutexGuard<'_, Labels> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of a server and zone.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    shards: [Mutex<Shard>; SHARDS],
}

/// A question that was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) transport: Transport,
    pub(crate) ipv6: bool,
    pub(crate) rtype: u16,
    pub(crate) dnssec_ok: bool,
    pub(crate) rcode: Rcode,
    pub(crate) plugin: &'static str,
    pub(crate) request: usize,
    pub(crate) response: usize,
    pub(crate) took: Duration,
}

#[derive(Debug, Clone, Default)]
struct Shard {
    /// By transport, family and type.
    requests: [[[u64; TYPES.len() + 1]; 2]; 2],
    dnssec_ok: u64,
    responses: Vec<((Rcode, &'static str), u64)>,
    durations: [Spread<{ DURATIONS + 1 }>; TYPES.len() + 1],
    request_sizes: [Spread<{ SIZES.len() + 1 }>; 2],
    response_sizes: [Spread<{ SIZES.len() + 1 }>; 2],
}

/// How values are spread over buckets.
#[derive(Debug, Clone, Copy)]
struct Spread<const BUCKETS: usize> {
    counts: [u64; BUCKETS],
    sum: u64,
}

impl<const BUCKETS: usize> Default for Spread<BUCKETS> {
    fn default() -> Self {
        Spread { counts: [0; BUCKETS], sum: 0 }
    }
}

impl<const BUCKETS: usize> Spread<BUCKETS> {
    fn add(&mut self, bucket: usize, value: u64) {
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(value);
    }

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// Which part a thread counts in.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    OWN.with(|own| *own)
}

impl Counts {
    /// A question was answered.
    pub(crate) fn seen(&self, seen: &Seen) {
        let mut shard = self.shards[own_shard()].lock().unwrap_or_else(PoisonError::into_inner);
        let transport = usize::from(seen.transport == Transport::Tcp);
        let rtype = TYPES.iter().position(|rtype| *rtype == seen.rtype).unwrap_or(TYPES.len());
        shard.requests[transport][usize::from(seen.ipv6)][rtype] += 1;
        shard.dnssec_ok += u64::from(seen.dnssec_ok);
        let key = (seen.rcode, seen.plugin);
        match shard.responses.iter_mut().find(|(known, _)| *known == key) {
            Some((_, count)) => *count += 1,
            None => shard.responses.push((key, 1)),
        }
        let nanos = u64::try_from(seen.took.as_nanos()).unwrap_or(u64::MAX);
        let steps = nanos.saturating_sub(1) / 250_000;
        let bucket = if steps == 0 { 0 } else { steps.ilog2() as usize + 1 };
        shard.durations[rtype].add(bucket, nanos);
        let sized = |size: usize| SIZES.iter().position(|bound| size <= *bound as usize).unwrap_or(SIZES.len());
        shard.request_sizes[transport].add(sized(seen.request), seen.request as u64);
        shard.response_sizes[transport].add(sized(seen.response), seen.response as u64);
    }

    /// Everything that was counted.
    fn sum(&self) -> Shard {
        let mut sum = Shard::default();
        for shard in &self.shards {
            sum.merge(&shard.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }
}

impl Shard {
    fn merge(&mut self, other: &Shard) {
        let pairs = self.requests.as_flattened_mut().as_flattened_mut().iter_mut();
        pairs.zip(other.requests.as_flattened().as_flattened()).for_each(|(count, more)| *count += more);
        self.dnssec_ok += other.dnssec_ok;
        for (key, more) in &other.responses {
            match self.responses.iter_mut().find(|(known, _)| known == key) {
                Some((_, count)) => *count += more,
                None => self.responses.push((*key, *more)),
            }
        }
        self.durations.iter_mut().zip(&other.durations).for_each(|(spread, more)| spread.merge(more));
        self.request_sizes.iter_mut().zip(&other.request_sizes).for_each(|(spread, more)| spread.merge(more));
        self.response_sizes.iter_mut().zip(&other.response_sizes).for_each(|(spread, more)| spread.merge(more));
    }
}

type Summed = Vec<((String, String), Shard)>;

impl Collector for All {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all: Summed = self.known().iter().map(|(labels, counts)| (labels.clone(), counts.sum())).collect();
        requests(&mut encoder, &all)?;
        responses(&mut encoder, &all)?;
        durations(&mut encoder, &all)?;
        sizes(&mut encoder, &all)
    }
}

const PROTOS: [&str; 2] = ["udp", "tcp"];
const FAMILIES: [&str; 2] = ["1", "2"];

fn type_label(index: usize) -> String {
    TYPES.get(index).map_or_else(|| "other".to_owned(), |rtype| words::type_name(*rtype))
}

fn requests(encoder: &mut DescriptorEncoder<'_>, all: &Summed) -> fmt::Result {
    let help = "Counter of DNS requests made per zone, protocol and family";
    let mut metric = encoder.encode_descriptor("coredns_dns_requests", help, None, MetricType::Counter)?;
    for ((server, zone), shard) in all {
        for (proto, families) in PROTOS.iter().zip(&shard.requests) {
            for (family, types) in FAMILIES.iter().zip(families) {
                for (index, count) in types.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let labels = [
                        ("server", server.as_str()),
                        ("zone", zone),
                        ("view", ""),
                        ("proto", proto),
                        ("family", family),
                        ("type", &type_label(index)),
                    ];
                    ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
    }
    let help = "Counter of DNS requests with DO bit set per zone";
    let mut metric = encoder.encode_descriptor("coredns_dns_do_requests", help, None, MetricType::Counter)?;
    for ((server, zone), shard) in all.iter().filter(|(_, shard)| shard.dnssec_ok > 0) {
        let labels = [("server", server.as_str()), ("zone", zone), ("view", "")];
        ConstCounter::new(shard.dnssec_ok).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn responses(encoder: &mut DescriptorEncoder<'_>, all: &Summed) -> fmt::Result {
    let help = "Counter of response status codes";
    let mut metric = encoder.encode_descriptor("coredns_dns_responses", help, None, MetricType::Counter)?;
    for ((server, zone), shard) in all {
        for ((rcode, plugin), count) in &shard.responses {
            let rcode = words::code_name(rcode.0);
            let labels =
                [("server", server.as_str()), ("zone", zone), ("view", ""), ("rcode", &rcode), ("plugin", plugin)];
            ConstCounter::new(*count).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn durations(encoder: &mut DescriptorEncoder<'_>, all: &Summed) -> fmt::Result {
    let help = "Histogram of the time (in seconds) each request took per zone";
    let name = "coredns_dns_request_duration_seconds";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for ((server, zone), shard) in all {
        for (index, spread) in shard.durations.iter().enumerate() {
            let labels = [("server", server.as_str()), ("zone", zone), ("view", ""), ("type", &type_label(index))];
            let bound = |index: usize| 0.00025 * (1_u64 << index) as f64;
            histogram(metric.encode_family(&labels)?, spread, spread.sum as f64 / 1e9, bound)?;
        }
    }
    Ok(())
}

fn sizes(encoder: &mut DescriptorEncoder<'_>, all: &Summed) -> fmt::Result {
    type Part = fn(&Shard) -> &[Spread<{ SIZES.len() + 1 }>; 2];
    let parts: [(&str, &str, Part); 2] = [
        (
            "coredns_dns_request_size_bytes",
            "Size of the EDNS0 UDP buffer in bytes (64K for TCP) per zone and protocol",
            |shard| &shard.request_sizes,
        ),
        ("coredns_dns_response_size_bytes", "Size of the returned response in bytes", |shard| &shard.response_sizes),
    ];
    for (name, help, part) in parts {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for ((server, zone), shard) in all {
            for (proto, spread) in PROTOS.iter().zip(part(shard)) {
                let labels = [("server", server.as_str()), ("zone", zone), ("view", ""), ("proto", proto)];
                histogram(metric.encode_family(&labels)?, spread, spread.sum as f64, |index| f64::from(SIZES[index]))?;
            }
        }
    }
    Ok(())
}

/// Writes a histogram, unless nothing was counted.
fn histogram<const BUCKETS: usize>(
    mut metric: MetricEncoder<'_>,
    spread: &Spread<BUCKETS>,
    sum: f64,
    bound: impl Fn(usize) -> f64,
) -> fmt::Result {
    let count = spread.counts.iter().sum();
    if count == 0 {
        return Ok(());
    }
    let bound = |index: usize| if index + 1 == BUCKETS { f64::INFINITY } else { bound(index) };
    let buckets: Vec<(f64, u64)> =
        spread.counts.iter().enumerate().map(|(index, count)| (bound(index), *count)).collect();
    metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}
