//! Which endpoint a connection tries next, and for how long: one that refuses is not asked again, one that is slow gets more
//! time when all others were tried.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::target::{Choice, Target};

/// How long the first endpoint that does not answer is waited for, and the next ones.
pub(crate) const PATIENCE: [Duration; 4] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// A connection that looks for an endpoint.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) target: Arc<Target>,
    pub(crate) client: IpAddr,
    /// Endpoints that did not answer in time, and behind them those that refused.
    tried: Vec<SocketAddr>,
    /// How many of them did not answer.
    slow: usize,
    /// How often somebody did not.
    pub(crate) waits: usize,
    pub(crate) endpoint: SocketAddr,
}

impl Dial {
    /// Begins.
    pub(crate) fn new(target: Arc<Target>, client: IpAddr) -> Option<(Dial, Choice)> {
        let choice = target.pick(client, &[])?;
        let endpoint = choice.endpoint;
        Some((Dial { target, client, tried: Vec::new(), slow: 0, waits: 0, endpoint }, choice))
    }

    /// The next one, after the last one refused. `None`: there is nobody left.
    pub(crate) fn refused(&mut self) -> Option<Choice> {
        self.tried.push(self.endpoint);
        self.next()
    }

    /// The next one, after the last one did not answer in time.
    pub(crate) fn timed_out(&mut self) -> Option<Choice> {
        self.tried.insert(self.slow, self.endpoint);
        self.slow += 1;
        self.waits += 1;
        if self.waits >= PATIENCE.len() {
            return None;
        }
        self.next()
    }

    fn next(&mut self) -> Option<Choice> {
        let choice = self.target.pick(self.client, &self.tried).or_else(|| self.again())?;
        self.endpoint = choice.endpoint;
        Some(choice)
    }

    /// Those that were silent get another chance, with more time; the last of them after the others.
    fn again(&mut self) -> Option<Choice> {
        let silent = std::mem::take(&mut self.slow);
        self.tried.drain(..silent);
        if silent == 0 {
            return None;
        }
        self.tried.push(self.endpoint);
        let other = self.target.pick(self.client, &self.tried);
        self.tried.pop();
        other.or_else(|| self.target.pick(self.client, &self.tried))
    }

    /// How many endpoints were tried in vain.
    pub(crate) fn failures(&self) -> usize {
        self.tried.len().max(self.waits)
    }
}

#[cfg(test)]
mod tests;
