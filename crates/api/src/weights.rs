//! Which share of a Service's connections an endpoint gets: the annotations of Pods, Services and EndpointSlices that say so,
//! read and written. Who has none counts as 1; 0 means no new connections.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use thiserror::Error;

use crate::ip;
use crate::selector::LabelSelector;

/// On a Pod: its weight. On an EndpointSlice: a weight for all its endpoints, `address=weight` for one, several with commas.
pub const WEIGHT: &str = "fairlead.dev/weight";
/// On a Service: how many of a hundred connections the Pods with some labels get together: `track=canary:5`.
pub const WEIGHTS: &str = "fairlead.dev/weights";
/// The weight of an endpoint nothing is said of.
pub const DEFAULT: u8 = 1;
/// The highest weight. What renders a choice may need so many entries for one endpoint.
pub const MAX: u8 = 100;

/// The most selectors a Service may give shares to.
const MAX_SHARES: usize = 16;
/// What all shares of a Service are parts of.
const WHOLE: u8 = 100;

/// Reads one weight.
pub fn weight(text: &str) -> Option<u8> {
    // The standard library would take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|weight| digits && *weight <= MAX)
}

/// The weights of the endpoints of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceWeights {
    all: u8,
    by_address: Vec<(IpAddr, u8)>,
}

impl Default for SliceWeights {
    fn default() -> SliceWeights {
        SliceWeights { all: DEFAULT, by_address: Vec::new() }
    }
}

impl SliceWeights {
    /// Reads the annotation of a slice. Parts that cannot be read are handed to `bad` and count as absent.
    pub fn read(text: &str, mut bad: impl FnMut(&str)) -> SliceWeights {
        let mut weights = SliceWeights::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if weights.take(part).is_none() {
                bad(part);
            }
        }
        weights.by_address.sort_unstable();
        weights
    }

    fn take(&mut self, part: &str) -> Option<()> {
        match part.split_once('=') {
            Some((address, number)) => self.by_address.push((ip::parse(address.trim())?, weight(number.trim())?)),
            None => self.all = weight(part)?,
        }
        Some(())
    }

    /// The weight of an endpoint.
    pub fn of(&self, ip: IpAddr) -> u8 {
        let place = self.by_address.binary_search_by_key(&ip, |(address, _)| *address);
        place.map_or(self.all, |place| self.by_address[place].1)
    }
}

/// Writes the annotation of a slice: the most frequent weight, and the addresses with others. `None`: it needs none.
pub fn write<'a>(endpoints: impl Iterator<Item = (&'a str, u8)> + Clone) -> Option<String> {
    let mut counts = BTreeMap::<u8, usize>::new();
    endpoints.clone().for_each(|(_, weight)| *counts.entry(weight).or_default() += 1);
    // Of those that are equally frequent the default, or else the lowest.
    let (all, _) = counts.into_iter().rev().max_by_key(|(weight, count)| (*count, *weight == DEFAULT))?;
    let mut text = if all == DEFAULT { String::new() } else { all.to_string() };
    for (address, weight) in endpoints.filter(|(_, weight)| *weight != all) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{address}={weight}");
    }
    (!text.is_empty()).then_some(text)
}

/// What a Service says of the shares of its Pods.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    shares: Vec<(LabelSelector, u8)>,
}

/// Why shares cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidShares {
    /// A selector without a share.
    #[error("{text:?} is to end with a colon and a number from 0 to 100, as in track=canary:5")]
    NoShare {
        /// What stands there.
        text: String,
    },
    /// A selector that is none.
    #[error("{text:?} is not a label selector: {why}")]
    Selector {
        /// What stands there.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// More than there is to give.
    #[error("the shares are {sum} together, and there are 100")]
    TooMuch {
        /// What was given.
        sum: u32,
    },
    /// More than is looked at.
    #[error("only {MAX_SHARES} selectors may have a share")]
    TooMany,
}

impl Shares {
    /// Parses `track=canary:5`, `track=canary,arch in (arm64, riscv64):5,track=beta:10`: label selectors, each with its share
    /// of a hundred.
    pub fn parse(text: &str) -> Result<Shares, InvalidShares> {
        let mut shares = Vec::new();
        let mut pending = String::new();
        for part in parts(text) {
            let comma = if pending.is_empty() { "" } else { "," };
            let Some((end, share)) = part.rsplit_once(':') else {
                let _ = write!(pending, "{comma}{part}");
                continue;
            };
            let share = weight(share.trim()).ok_or_else(|| InvalidShares::NoShare { text: part.to_owned() })?;
            let _ = write!(pending, "{comma}{end}");
            shares.push((selector(&pending)?, share));
            pending.clear();
            if shares.len() > MAX_SHARES {
                return Err(InvalidShares::TooMany);
            }
        }
        if !pending.is_empty() || shares.is_empty() {
            return Err(InvalidShares::NoShare { text: pending });
        }
        let sum = shares.iter().map(|(_, share)| u32::from(*share)).sum();
        if sum > u32::from(WHOLE) { Err(InvalidShares::TooMuch { sum }) } else { Ok(Shares { shares }) }
    }

    /// Which share Pods with such labels are part of: that of the first selector that fits, or the last one, the rest.
    pub fn group(&self, labels: &BTreeMap<String, String>) -> usize {
        let fits = |(selector, _): &(LabelSelector, u8)| selector.matches(|key| labels.get(key).map(String::as_str));
        self.shares.iter().position(fits).unwrap_or(self.shares.len())
    }

    /// The share of each group; the last one is the rest.
    pub fn of_groups(&self) -> Vec<u8> {
        let given = self.shares.iter().map(|(_, share)| *share);
        let rest = WHOLE.saturating_sub(given.clone().sum());
        given.chain([rest]).collect()
    }
}

/// Parts between commas that are not inside parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let parts = text.split(move |char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn selector(text: &str) -> Result<LabelSelector, InvalidShares> {
    let invalid = |why: String| InvalidShares::Selector { text: text.to_owned(), why };
    let selector = LabelSelector::parse(text).map_err(|failure| invalid(failure.message))?;
    if selector.is_everything() { Err(invalid("it is empty".to_owned())) } else { Ok(selector) }
}

#[cfg(test)]
mod tests;
