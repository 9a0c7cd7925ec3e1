//! `forward`: names that are not ours are asked for elsewhere, where somebody is well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fairlead_runtime::Budget;
use fairlead_zone::Name;
use fairlead_zone::message::{Message, Rcode};

use crate::ask::{Ask, Reply, Transport};
use crate::metrics::Metrics;
use crate::settings::{self, Policy};
use upstream::Upstream;

mod exchange;
mod upstream;

/// Maximum number of questions that try upstreams at a time while all of them fail their checks.
/// The others are answered with SERVFAIL at once.
const TRIALS: usize = 64;
/// How long one question may take in all.
const DEADLINE: Duration = Duration::from_secs(5);

/// A `forward` plugin.
#[derive(Debug)]
pub(crate) struct Forward {
    settings: settings::Forward,
    upstreams: Vec<Arc<Upstream>>,
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Questions that are under way.
    running: AtomicUsize,
    /// Questions that try upstreams although all of them fail their checks.
    trials: AtomicUsize,
    metrics: Metrics,
}

/// What came of asking others.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Somebody answered.
    Reply(Reply),
    /// The next `forward` is to be asked.
    Next(Reply),
    /// Nobody answered, for this reason.
    Failed(Rcode, String),
}

impl Forward {
    /// Asks these upstreams, in this order unless the policy says otherwise.
    pub(crate) fn new(settings: &settings::Forward, to: Vec<SocketAddr>, metrics: Metrics, sockets: Budget) -> Forward {
        let upstream = |address| Arc::new(Upstream::new(address, settings, metrics.clone(), sockets.clone()));
        Forward {
            upstreams: to.into_iter().map(upstream).collect(),
            settings: settings.clone(),
            turn: AtomicUsize::new(fastrand::usize(..)),
            running: AtomicUsize::new(0),
            trials: AtomicUsize::new(0),
            metrics,
        }
    }

    /// Whether it is asked for a name.
    pub(crate) fn covers(&self, name: &Name) -> bool {
        name.is_under(&self.settings.from) && !self.settings.except.iter().any(|zone| name.is_under(zone))
    }

    /// Asks, one after the other, until somebody answers.
    pub(crate) async fn ask(&self, ask: &Ask) -> Asked {
        let _running = Running::new(&self.running);
        let limit = self.settings.max_concurrent;
        if limit > 0 && self.running.load(Ordering::Relaxed) > limit {
            self.metrics.rejected();
            return Asked::Failed(Rcode::REFUSED, format!("concurrent queries exceeded maximum {limit}"));
        }
        match tokio::time::timeout(DEADLINE, self.attempts(ask)).await {
            Ok(asked) => asked,
            Err(_) => Asked::Failed(Rcode::SERV_FAIL, "no upstream answered in time".to_owned()),
        }
    }

    async fn attempts(&self, ask: &Ask) -> Asked {
        let order = self.order();
        let (mut down, mut failovers, mut why) = (0, 0, "no upstream to ask".to_owned());
        let mut trial = None;
        // Each is tried twice at most.
        for (tried, index) in order.iter().cycle().take(2 * order.len()).enumerate() {
            if tried == order.len() {
                down = 0;
            }
            let mut upstream = &self.upstreams[*index];
            if upstream.is_down() {
                down += 1;
                if down < order.len() {
                    continue;
                }
                // Nobody is well: perhaps only the checks are not.
                self.metrics.healthcheck_broken();
                if self.settings.fail_fast {
                    break;
                }
                // Upstreams that are silent would make every question wait. CoreDNS tries each
                // question with a random upstream; here a few do, and the first answer ends the
                // state.
                if trial.is_none() {
                    let running = Running::new(&self.trials);
                    if self.trials.load(Ordering::Relaxed) > TRIALS {
                        why = "all upstreams fail their health checks".to_owned();
                        break;
                    }
                    trial = Some(running);
                }
                upstream = &self.upstreams[fastrand::usize(..self.upstreams.len())];
            }
            match self.exchange(upstream, ask).await {
                Err(error) => {
                    why = format!("{}: {error}", upstream.address);
                    upstream.clone().check();
                }
                Ok(message) => {
                    upstream.answered();
                    let rcode = u8::try_from(message.rcode.0).unwrap_or(u8::MAX);
                    let reply = Reply::of(message, "forward");
                    if self.settings.next.contains(&rcode) {
                        return Asked::Next(reply);
                    }
                    failovers += 1;
                    if self.settings.failover.contains(&rcode) && failovers < self.upstreams.len() {
                        continue;
                    }
                    return Asked::Reply(reply);
                }
            }
        }
        Asked::Failed(Rcode::SERV_FAIL, why)
    }

    async fn exchange(&self, upstream: &Upstream, ask: &Ask) -> std::io::Result<Message> {
        let tcp = match self.settings.transport {
            settings::Transport::ForceTcp => true,
            settings::Transport::PreferUdp => false,
            settings::Transport::Same => ask.transport == Transport::Tcp,
        };
        let began = Instant::now();
        let answered = upstream.ask(ask, tcp).await;
        if let Ok(message) = &answered {
            self.metrics.forwarded(upstream.address, message.rcode, began.elapsed());
        }
        answered
    }

    /// Who is asked first, and who then.
    fn order(&self) -> Vec<usize> {
        let count = self.upstreams.len();
        let mut order: Vec<usize> = (0..count).collect();
        match self.settings.policy {
            _ if count < 2 => {}
            Policy::Sequential => {}
            Policy::Random => fastrand::shuffle(&mut order),
            Policy::RoundRobin => order.rotate_left(self.turn.fetch_add(1, Ordering::Relaxed) % count),
        }
        order
    }
}

/// Counts a question while it is under way.
struct Running<'a>(&'a AtomicUsize);

impl Running<'_> {
    fn new(count: &AtomicUsize) -> Running<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Running(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The servers a file like `/etc/resolv.conf` names.
pub fn nameservers(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and_then(|_| words.next())?;
        let address = address.split('%').next()?.parse().ok()?;
        Some(SocketAddr::new(address, 53))
    };
    text.lines().filter_map(server).collect()
}
