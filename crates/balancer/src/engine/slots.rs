//! A list whose entries keep their index until they are removed, so that an entry removes itself in
//! constant time.

use std::rc::Rc;

/// Entries at indices that are used again.
#[derive(Debug)]
pub(super) struct Slots<T> {
    all: Vec<Option<Rc<T>>>,
    free: Vec<usize>,
    used: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { all: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<T> Slots<T> {
    /// Adds an entry and returns its index.
    pub(super) fn put(&mut self, one: Rc<T>) -> usize {
        self.used += 1;
        match self.free.pop() {
            Some(slot) => {
                self.all[slot] = Some(one);
                slot
            }
            None => {
                self.all.push(Some(one));
                self.all.len() - 1
            }
        }
    }

    /// Removes the entry at an index, if there is one.
    pub(super) fn take(&mut self, slot: usize) {
        if self.all.get_mut(slot).and_then(Option::take).is_some() {
            self.used -= 1;
            self.free.push(slot);
        }
        // After a flood the list shrinks again once it is empty.
        if self.used == 0 && self.all.len() > 1024 {
            *self = Slots::default();
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Returns all entries.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.all.iter().flatten()
    }

    /// Returns up to `most` entries from a random index on.
    pub(super) fn sample(&self, most: usize) -> impl Iterator<Item = &Rc<T>> {
        let from = fastrand::usize(..self.all.len().max(1));
        self.all.iter().cycle().skip(from).take(self.all.len()).flatten().take(most)
    }
}
