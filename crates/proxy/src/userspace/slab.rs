//! Things by number, where a number that is used again is another one.

/// A place for things that come and go. The number of a thing fits into 61 bits, and is never again that of another one,
/// as long as a place is not used 2^29 times.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    count: usize,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// How many bits a generation has.
const GENERATION: u32 = (1 << 29) - 1;

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new(), count: 0 }
    }
}

impl<T> Slab<T> {
    /// Takes a thing in.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        self.count += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, value: None });
            u32::try_from(self.entries.len() - 1).expect("descriptors are far fewer")
        });
        let entry = &mut self.entries[index as usize];
        entry.value = Some(value);
        u64::from(entry.generation) << 32 | u64::from(index)
    }

    /// The thing with a number, if it is still there.
    pub(crate) fn get(&mut self, key: u64) -> Option<&mut T> {
        self.entry(key)?.value.as_mut()
    }

    /// Takes it out.
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let entry = self.entry(key)?;
        let value = entry.value.take()?;
        entry.generation = (entry.generation + 1) & GENERATION;
        self.free.push(key as u32);
        self.count -= 1;
        Some(value)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().zip(0u64..).filter_map(|(entry, index)| {
            let key = u64::from(entry.generation) << 32 | index;
            entry.value.as_ref().map(|value| (key, value))
        })
    }

    fn entry(&mut self, key: u64) -> Option<&mut Entry<T>> {
        let entry = self.entries.get_mut(key as u32 as usize)?;
        (u64::from(entry.generation) == key >> 32).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_that_of_another_thing() {
        let mut slab = Slab::default();
        let (one, two) = (slab.insert("one"), slab.insert("two"));
        assert_eq!(slab.remove(one), Some("one"));
        let three = slab.insert("three");
        assert_eq!(slab.get(one), None);
        assert_eq!(slab.remove(one), None);
        assert_eq!((slab.get(two).copied(), slab.get(three).copied()), (Some("two"), Some("three")));
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.iter().map(|(key, _)| key).collect::<Vec<_>>(), [three, two]);
    }
}
