//! How does one version of a text differ from the one before? As pieces of the old text and bytes that are new: made without reading
//! either as JSON, since every change of every object pays for it.
//!
//! | each piece | |
//! |---|---|
//! | `u32`, `u32` | where in the old text it begins, and how many bytes of it are taken |
//! | `u32`, bytes | how many new bytes follow, and these; numbers are little endian |

use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// Old text is found again in blocks of this size. Where less than two of them changed, nobody looks.
const BLOCK: usize = 16;
/// No version is longer; what would become so is not ours.
const MAX_TEXT: usize = 4 << 20;

/// What makes `after` of `before`.
pub fn between(before: &[u8], after: &[u8]) -> Vec<u8> {
    let same = alike(before, after);
    let (old, new) = (&before[same..], &after[same..]);
    let tail = alike_at_end(old, new);
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut pieces = Pieces { out: Vec::with_capacity(24 + new.len()), from: 0, taken: same };
    let mut unmatched = 0;
    if old.len() >= BLOCK && new.len() >= 2 * BLOCK {
        unmatched = moved(old, new, same, &mut pieces);
    }
    pieces.add(&new[unmatched..], before.len() - tail, tail);
    pieces.add(&[], 0, 0);
    pieces.out
}

/// Makes the next version. `None` if the difference is not one to this text.
pub fn apply(before: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    let mut after = Vec::with_capacity(before.len() + delta.len());
    while !delta.is_empty() {
        let (from, taken, new) = (number(&mut delta)?, number(&mut delta)?, number(&mut delta)?);
        after.extend_from_slice(before.get(from..from.checked_add(taken)?)?);
        let (bytes, rest) = delta.split_at_checked(new)?;
        after.extend_from_slice(bytes);
        delta = rest;
        if after.len() > MAX_TEXT {
            return None;
        }
    }
    Some(after)
}

/// Pieces as they are found: the newest taken piece waits for the new bytes behind it.
struct Pieces {
    out: Vec<u8>,
    from: usize,
    taken: usize,
}

impl Pieces {
    /// New bytes, and then a piece of the old text.
    fn add(&mut self, new: &[u8], from: usize, taken: usize) {
        if self.taken > 0 || !new.is_empty() {
            for number in [self.from, self.taken, new.len()] {
                self.out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
            }
            self.out.extend_from_slice(new);
        }
        (self.from, self.taken) = (from, taken);
    }
}

/// Finds old blocks in new text, wherever they are now; `at` is where the old begins. Gives up to where the new text is accounted for.
fn moved(old: &[u8], new: &[u8], at: usize, pieces: &mut Pieces) -> usize {
    let mut blocks: HashMap<&[u8], usize, foldhash::fast::FixedState> = HashMap::default();
    for (number, block) in old.chunks_exact(BLOCK).enumerate() {
        blocks.entry(block).or_insert(number * BLOCK);
    }
    let (mut done, mut look) = (0, 0);
    while let Some(block) = new.get(look..look + BLOCK) {
        let Some(&found) = blocks.get(block) else {
            look += 1;
            continue;
        };
        let back = alike_at_end(&old[..found], &new[done..look]);
        let length = back + alike(&old[found..], &new[look..]);
        let begin = look - back;
        pieces.add(&new[done..begin], at + found - back, length);
        done = begin + length;
        look = done;
    }
    done
}

/// How many bytes two texts begin with alike.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let chunks = one.chunks_exact(32).zip(other.chunks_exact(32)).take_while(|(one, other)| one == other).count() * 32;
    chunks + one[chunks..].iter().zip(&other[chunks..]).take_while(|(one, other)| one == other).count()
}

fn alike_at_end(one: &[u8], other: &[u8]) -> usize {
    let chunks =
        one.rchunks_exact(32).zip(other.rchunks_exact(32)).take_while(|(one, other)| one == other).count() * 32;
    let (one, other) = (&one[..one.len() - chunks], &other[..other.len() - chunks]);
    chunks + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*number)).ok()
}
