//! Which numbers of a range are free? Kept as the gaps between those taken, so that finding, taking and giving back cost the
//! logarithm of the number of gaps, however large the range is.

use std::collections::BTreeMap;

/// Free numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gaps {
    /// First and last of each; none touches another.
    free: BTreeMap<u128, u128>,
}

impl Gaps {
    /// All from a first to a last.
    pub(super) fn new(first: u128, last: u128) -> Gaps {
        Gaps { free: BTreeMap::from([(first, last)]) }
    }

    /// The lowest.
    pub(super) fn lowest(&self) -> Option<u128> {
        self.free.first_key_value().map(|(first, _)| *first)
    }

    /// Takes one. Whether it was free.
    pub(super) fn take(&mut self, number: u128) -> bool {
        let Some((&first, &last)) = self.free.range(..=number).next_back().filter(|(_, last)| **last >= number) else {
            return false;
        };
        self.free.remove(&first);
        if first < number {
            self.free.insert(first, number - 1);
        }
        if number < last {
            self.free.insert(number + 1, last);
        }
        true
    }

    /// Gives one back that was taken.
    pub(super) fn give(&mut self, number: u128) {
        let (mut first, mut last) = (number, number);
        if let Some((&before, &end)) = self.free.range(..=number).next_back() {
            if end >= number {
                return;
            }
            if end + 1 == number {
                first = before;
            }
        }
        if let Some(&end) = number.checked_add(1).and_then(|next| self.free.get(&next)) {
            self.free.remove(&(number + 1));
            last = end;
        }
        self.free.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::Gaps;

    proptest! {
        #[test]
        fn gaps_are_what_a_set_of_free_numbers_is(steps in prop::collection::vec((any::<bool>(), 0u128..20), 0..60)) {
            let (mut gaps, mut set) = (Gaps::new(3, 15), (3..=15).collect::<BTreeSet<u128>>());
            for (take, number) in steps {
                if take {
                    prop_assert_eq!(gaps.take(number), set.remove(&number));
                } else if (3..=15).contains(&number) {
                    gaps.give(number);
                    set.insert(number);
                }
                prop_assert_eq!(gaps.lowest(), set.first().copied());
                let free: Vec<u128> = gaps.free.iter().flat_map(|(first, last)| *first..=*last).collect();
                prop_assert_eq!(free, set.iter().copied().collect::<Vec<_>>());
                let touching = gaps.free.iter().zip(gaps.free.iter().skip(1)).any(|(one, next)| one.1 + 1 >= *next.0);
                prop_assert!(!touching);
            }
        }
    }
}
