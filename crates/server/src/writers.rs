//! Who made a revision? Remembered for the newest ones, for those who follow changes beside the server: objects do not say
//! who deleted them, and their field managers only who set a field first.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Server;

/// How many revisions are remembered: who asks does so within milliseconds.
const SLOTS: usize = 4096;

tokio::task_local! {
    /// Who sends the request that this task answers.
    static WHO: Arc<str>;
}

/// Does the work of somebody's request.
pub(crate) async fn on_behalf_of<T>(who: String, work: impl Future<Output = T>) -> T {
    WHO.scope(who.into(), work).await
}

/// Who made the newest revisions. A revision has one place, which a later one takes.
#[derive(Debug)]
pub(crate) struct Writers {
    slots: Mutex<Box<[Note]>>,
}

#[derive(Debug, Clone, Default)]
struct Note {
    revision: u64,
    who: Option<Arc<str>>,
}

impl Default for Writers {
    fn default() -> Writers {
        Writers { slots: Mutex::new(vec![Note::default(); SLOTS].into()) }
    }
}

impl Writers {
    /// Remembers that the sender of the request at hand made a revision. Without a request it is the server itself, of which nothing
    /// needs to be said.
    pub(crate) fn made(&self, revision: u64) {
        let _ = WHO.try_with(|who| self.note(revision, who.clone()));
    }

    fn note(&self, revision: u64, who: Arc<str>) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots[place(revision)] = Note { revision, who: Some(who) };
    }

    fn find(&self, revision: u64) -> Option<Arc<str>> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let note = &slots[place(revision)];
        note.who.clone().filter(|_| note.revision == revision)
    }
}

fn place(revision: u64) -> usize {
    usize::try_from(revision % SLOTS as u64).expect("less than the number of places")
}

impl Server {
    /// Who made a revision through this server: the program, and the user in brackets. Only the newest are remembered.
    pub fn writer(&self, revision: u64) -> Option<String> {
        self.inner.writers.find(revision).map(|who| who.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, Writers};

    #[test]
    fn the_newest_writers_are_remembered_and_never_mistaken() {
        let writers = Writers::default();
        writers.note(7, "kubectl (alice)".into());
        assert_eq!(writers.find(7).as_deref(), Some("kubectl (alice)"));
        assert_eq!(writers.find(7 + SLOTS as u64), None);
        writers.note(7 + SLOTS as u64, "curl (bob)".into());
        assert_eq!(writers.find(7), None);
        assert_eq!(writers.find(0), None);
    }
}
