//! The node ports in use, as a map of bits, in memory and as kube-apiserver stores it (`RangeAllocation`).

use std::ops::RangeInclusive;

use crate::value::{Value, json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::Look;

/// Which node ports of a range are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePorts {
    range: RangeInclusive<u16>,
    /// Bit `n % 8` of byte `n / 8` stands for the n-th port of the range.
    bits: Vec<u8>,
}

/// Draws before a scan begins: in a band that is nine tenths full they fail once in thirty times.
const DRAWS: u32 = 32;

impl NodePorts {
    /// The key of the map in the store, under the prefix that all keys have.
    pub const KEY: &'static str = "ranges/servicenodeports";

    /// All free.
    pub fn new(range: RangeInclusive<u16>) -> NodePorts {
        let bits = vec![0; range.len().div_ceil(8)];
        NodePorts { range, bits }
    }

    /// Reads a `RangeAllocation`. If it was written for another range, the ports in both stay in use. `None` if the
    /// object is no such map.
    pub fn read(object: &Value, range: RangeInclusive<u16>) -> Option<NodePorts> {
        let (low, high) = object.text("range").split_once('-')?;
        let stored = low.parse().ok()?..=high.parse().ok()?;
        let mut bits = STANDARD.decode(object.text("data")).ok()?;
        // The bytes are those of one large number, the highest first, without zeros in front.
        bits.reverse();
        bits.resize(stored.len().div_ceil(8), 0);
        let stored = NodePorts { range: stored, bits };
        if stored.range == range {
            return Some(stored);
        }
        let mut ports = NodePorts::new(range);
        for port in stored.in_use() {
            ports.take(port);
        }
        Some(ports)
    }

    /// Writes the map into a `RangeAllocation`; other fields of the object stay as they are.
    pub fn write(&self, object: Value) -> Value {
        let mut object = if object.is_object() {
            object
        } else {
            json!({"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}})
        };
        let used = self.bits.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let number: Vec<u8> = self.bits[..used].iter().rev().copied().collect();
        object.set("range", self.range_text());
        object.set("data", STANDARD.encode(number));
        object
    }

    /// `30000-32767`.
    pub fn range_text(&self) -> String {
        format!("{}-{}", self.range.start(), self.range.end())
    }

    /// Whether a port is of the range.
    pub fn holds(&self, port: u16) -> bool {
        self.range.contains(&port)
    }

    /// Whether a port is in use.
    pub fn is_used(&self, port: u16) -> bool {
        self.place(port).is_some_and(|(byte, bit)| self.bits[byte] & bit != 0)
    }

    /// Takes a port; false if it was in use or is not of the range.
    pub fn take(&mut self, port: u16) -> bool {
        match self.place(port) {
            Some((byte, bit)) if self.bits[byte] & bit == 0 => {
                self.bits[byte] |= bit;
                true
            }
            _ => false,
        }
    }

    /// Gives a port back.
    pub fn release(&mut self, port: u16) {
        if let Some((byte, bit)) = self.place(port) {
            self.bits[byte] &= !bit;
        }
    }

    /// The ports in use.
    pub fn in_use(&self) -> impl Iterator<Item = u16> {
        self.range.clone().filter(|port| self.is_used(*port))
    }

    /// Takes a random free port: one above the static band, which is kept for ports that people choose, or else one of
    /// the band. `None` if all are in use.
    pub fn take_any(&mut self, random: &mut dyn FnMut(u64) -> u64) -> Option<u16> {
        let size = self.range.len() as u64;
        let band = band(size);
        let offset = self.free_between(band, size, random).or_else(|| self.free_between(0, band, random))?;
        let port = self.range.start() + u16::try_from(offset).ok()?;
        self.take(port).then_some(port)
    }

    fn free_between(&self, low: u64, high: u64, random: &mut dyn FnMut(u64) -> u64) -> Option<u64> {
        let count = high.checked_sub(low).filter(|count| *count > 0)?;
        let is_free = |offset: &u64| {
            let byte = self.bits[(offset / 8) as usize];
            byte & (1 << (offset % 8)) == 0
        };
        for _ in 0..DRAWS {
            let offset = low + random(count) % count;
            if is_free(&offset) {
                return Some(offset);
            }
        }
        let start = low + random(count) % count;
        (start..high).chain(low..start).find(is_free)
    }

    fn place(&self, port: u16) -> Option<(usize, u8)> {
        let offset = usize::from(port.checked_sub(*self.range.start())?);
        self.holds(port).then(|| (offset / 8, 1 << (offset % 8)))
    }
}

/// The size of the static band of a range of that many ports.
fn band(size: u64) -> u64 {
    if size <= 16 { 0 } else { (size / 32).clamp(16, 128) }
}

#[cfg(test)]
mod tests;
