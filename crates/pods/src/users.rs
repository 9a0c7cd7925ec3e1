//! The users that Pods run as: one for each Pod of a Node, from a range that no account of the host
//! has.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use fairlead_api::kinds::pod::privileges;

#[cfg(test)]
mod tests;

/// The smallest number that no account has: 65534 is `nobody`, 65535 means "no user" to programs
/// with 16 bits.
const FIRST: u32 = 65_536;
/// The greatest number of a user. The one after it means "no change" to `chown`.
const LAST: u32 = u32::MAX - 1;

/// Numbers of users and groups that a Node gives to its Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    first: u32,
    last: u32,
}

impl UserRange {
    /// A range of users that are no accounts, or the reason why it cannot be used.
    pub fn new(users: RangeInclusive<u32>) -> Result<UserRange, String> {
        let (first, last) = users.into_inner();
        if first < FIRST || last > LAST || first > last {
            return Err(format!("want FIRST-LAST with {FIRST} <= FIRST <= LAST <= {LAST}"));
        }
        Ok(UserRange { first, last })
    }

    /// Returns true if a user or group is in the range.
    pub(crate) fn contains(&self, id: i64) -> bool {
        (i64::from(self.first)..=i64::from(self.last)).contains(&id)
    }
}

impl Default for UserRange {
    fn default() -> UserRange {
        let (first, last) = privileges::POD_USERS.into_inner();
        UserRange { first: u32::try_from(first).unwrap_or(FIRST), last: u32::try_from(last).unwrap_or(LAST) }
    }
}

impl FromStr for UserRange {
    type Err = String;

    /// Parses `1900000000-1900065535`.
    fn from_str(text: &str) -> Result<UserRange, String> {
        let numbers = text.split_once('-').and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
        // 0 is no user of a Pod: the reason names what is wanted.
        UserRange::new(numbers.unwrap_or(0..=0))
    }
}

/// Users that Pods have.
#[derive(Debug, Default)]
pub(crate) struct UserPool {
    used: BTreeSet<u32>,
}

impl UserPool {
    /// Records the user of a Pod that an earlier runner started.
    pub(crate) fn keep(&mut self, user: u32) {
        self.used.insert(user);
    }

    /// Returns a user for a Pod: the one its uid leads to, or the next that no other Pod has.
    /// `None`: all are in use.
    pub(crate) fn take(&mut self, range: UserRange, uid: &str) -> Option<u32> {
        let count = u64::from(range.last - range.first) + 1;
        // FNV-1a, as for names of links: spread over the range, so that a number is not used again
        // soon.
        let hash = uid
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let candidates = (0..count).map(|step| (hash % count + step) % count);
        let user = candidates
            .filter_map(|offset| range.first.checked_add(u32::try_from(offset).ok()?))
            .find(|user| !self.used.contains(user))?;
        self.used.insert(user);
        Some(user)
    }

    /// Gives back the user of a Pod that has gone.
    pub(crate) fn release(&mut self, user: u32) {
        self.used.remove(&user);
    }
}
