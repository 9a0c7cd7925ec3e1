//! Questions that are under way to upstreams. A client whose question is under way already waits
//! for the same answer: with many equal questions at a time, a forger would need to guess one of
//! many numbers only (the birthday attack of CVE-2020-25686).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairlead_zone::Name;
use fairlead_zone::message::Rcode;
use foldhash::quality::RandomState;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::ask::{Ask, Reply, Transport};

#[cfg(test)]
mod tests;

/// The answer of upstreams, or the code and cause of its failure.
pub(crate) type Answer = Result<Arc<Reply>, (Rcode, Arc<str>)>;

/// Questions under way, by what upstreams see of them.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    exchanges: Mutex<HashMap<Key, Exchange, RandomState>>,
}

#[derive(Debug)]
struct Exchange {
    number: u64,
    answer: WeakShared<BoxFuture<'static, Answer>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: Name,
    rtype: u16,
    class: u16,
    edns: bool,
    dnssec_ok: bool,
    unchecked: bool,
    recursion: bool,
    /// True if the client asked by TCP, because upstreams may be asked in the same way.
    tcp: bool,
}

/// Removes an exchange when it ends, or when no client waits for it any more.
struct Removal {
    outstanding: Arc<Outstanding>,
    key: Key,
    number: u64,
}

impl Outstanding {
    /// Joins the exchange that is under way for an equal question, or begins one.
    pub(crate) fn join(
        self: &Arc<Self>,
        ask: &Ask,
        exchange: impl FnOnce() -> BoxFuture<'static, Answer>,
    ) -> Shared<BoxFuture<'static, Answer>> {
        let key = Key::of(ask);
        let mut exchanges = self.exchanges();
        let known = exchanges.get(&key);
        let number = known.map_or(0, |known| known.number.wrapping_add(1));
        if let Some(answer) = known.and_then(|known| known.answer.upgrade()) {
            return answer;
        }
        let removal = Removal { outstanding: self.clone(), key: key.clone(), number };
        let exchange = exchange();
        let answer = async move {
            let _removal = removal;
            exchange.await
        };
        let answer = answer.boxed().shared();
        if let Some(weak) = answer.downgrade() {
            exchanges.insert(key, Exchange { number, answer: weak });
        }
        answer
    }

    fn exchanges(&self) -> MutexGuard<'_, HashMap<Key, Exchange, RandomState>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(ask: &Ask) -> Key {
        Key {
            name: ask.name.to_lower(),
            rtype: ask.rtype,
            class: ask.class,
            edns: ask.edns.is_some(),
            dnssec_ok: ask.edns.is_some_and(|edns| edns.dnssec_ok),
            unchecked: ask.unchecked,
            recursion: ask.recursion,
            tcp: ask.transport == Transport::Tcp,
        }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let mut exchanges = self.outstanding.exchanges();
        // A later exchange of the same question may have begun after the last client left this one.
        if exchanges.get(&self.key).is_some_and(|exchange| exchange.number == self.number) {
            exchanges.remove(&self.key);
        }
    }
}
