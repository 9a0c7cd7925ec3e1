//! In which order do backends take turns, if each is to have as many as its weight says and no one several in a row without
//! need? Pure.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most turns of a round. Weights that would need more are rounded, but nobody's to nothing.
const MOST: usize = 8192;

/// Whose turn it is, by index, through one round.
pub(super) fn turns(weights: &[u32]) -> Vec<u16> {
    let shares = shares(weights);
    let total: u64 = shares.iter().sum();
    // Each of a member's turns is due in the middle of its part of the round; who is due first comes first. Times are
    // multiplied so that they stay whole numbers.
    let due = |share: u64, turn: u64| (2 * turn + 1) * (1 << 32) / (2 * share);
    let mut next: BinaryHeap<Reverse<(u64, usize, u64)>> = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0)
        .map(|(index, share)| Reverse((due(*share, 0), index, 0)))
        .collect();
    let mut turns = Vec::with_capacity(usize::try_from(total).unwrap_or_default());
    while let Some(Reverse((_, index, turn))) = next.pop() {
        turns.extend(u16::try_from(index).ok());
        let share = shares[index];
        if turn + 1 < share {
            next.push(Reverse((due(share, turn + 1), index, turn + 1)));
        }
    }
    turns
}

/// The turns of each in a round: weights without what all have in common, and rounded if they are too many.
fn shares(weights: &[u32]) -> Vec<u64> {
    let common = weights.iter().fold(0, |common, weight| greatest_common(common, *weight)).max(1);
    let shares: Vec<u64> = weights.iter().map(|weight| u64::from(weight / common)).collect();
    let total: u64 = shares.iter().sum();
    let most = MOST.max(weights.len()) as u64;
    if total <= most {
        return shares;
    }
    shares.iter().map(|share| if *share == 0 { 0 } else { (share * most / total).max(1) }).collect()
}

fn greatest_common(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}
