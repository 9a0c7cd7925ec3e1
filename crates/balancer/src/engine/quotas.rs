//! The shares of the process that the load balancer may use, and how they are divided among threads
//! and clients.
//!
//! Threads do not share counters: each may use an equal part of what is counted in connections.
//! Memory is one pool that threads draw from in steps, because a thread with a slow client needs
//! more of it than others.

use fairlead_runtime::budget::{Budget, Limits};

use super::Options;

/// Share of the client descriptors of the process that may be connections of clients, in percent.
/// Connections to backends may be as many, because a connection of bytes needs both. The rest is
/// left for pipes, the API, DNS and Pods.
const CONNECTIONS_PERCENT: u64 = 30;
/// Share of the client descriptors of the process that may be pipes, in percent. A pipe has two
/// descriptors.
const PIPES_PERCENT: u64 = 12;
/// Part of all connections that one client address may have, in percent.
const SOURCE_PERCENT: usize = 50;
/// Part of all connections to backends that may lead to one backend, in percent: more than one
/// client address may have, so that a client cannot use up a backend.
const BACKEND_PERCENT: usize = 75;
/// Maximum number of clients that are in the midst of a PROXY header or a TLS handshake.
const OPENINGS: usize = 1000;
/// Part of those that one client address may have: a quarter.
const OPENINGS_SHARE: usize = 4;

/// Limits of one engine, most of them for each thread.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Connections of clients, for metrics: threads keep to `connections`.
    pub(super) client_budget: Budget,
    /// Connections to backends, for metrics: threads keep to `backends`.
    pub(super) backend_budget: Budget,
    /// Bytes held while clients or backends are slow.
    pub(super) memory: Budget,
    /// Maximum connections of clients on a thread.
    pub(super) connections: usize,
    /// Maximum connections of one client address on a thread.
    pub(super) source_connections: usize,
    /// Maximum connections to backends from a thread.
    pub(super) backends: usize,
    /// Maximum connections to backends from a thread that serve one client address.
    pub(super) source_backends: usize,
    /// Maximum connections from a thread that lead to one backend.
    pub(super) each_backend: usize,
    /// Maximum pipes of a thread.
    pub(super) pipes: usize,
    /// Maximum connections of a thread that have not finished their PROXY header or TLS handshake.
    pub(super) openings: usize,
    /// Maximum of those from one client address.
    pub(super) source_openings: usize,
}

impl Quotas {
    /// Derives the limits of an engine from its options and the limits of the process.
    pub(super) fn new(options: &Options) -> Quotas {
        let descriptors = options.account.machine().client_descriptors();
        let part = |percent: u64| usize::try_from(descriptors * percent / 100).unwrap_or(usize::MAX);
        let clients = options.connections.min(part(CONNECTIONS_PERCENT)).max(1);
        let backends = options.backend_connections.min(part(CONNECTIONS_PERCENT)).max(1);
        let each = |all: usize| (all / options.threads).max(1);
        let share = |all: usize, percent: usize| (all / 100 * percent + all % 100 * percent / 100).max(1);
        let budget = |name, total: u64| options.account.budget(name, Limits::total(total));
        Quotas {
            client_budget: budget("balancer connections", clients as u64),
            backend_budget: budget("balancer backend connections", backends as u64),
            memory: budget("balancer buffers", options.buffers),
            connections: each(clients),
            source_connections: share(each(clients), SOURCE_PERCENT),
            backends: each(backends),
            source_backends: share(each(backends), SOURCE_PERCENT),
            each_backend: share(each(backends), BACKEND_PERCENT),
            pipes: each(part(PIPES_PERCENT) / 2),
            openings: each(OPENINGS),
            source_openings: (each(OPENINGS) / OPENINGS_SHARE).max(1),
        }
    }
}
