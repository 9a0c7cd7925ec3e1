//! What a listener did, counted by each thread for itself so that threads never wait for one another's counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread changes and all may read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// So many more. Only the thread it belongs to may call this.
    pub fn add(&self, more: u64) {
        // No other thread writes: a load and a store cost less than one atomic step.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// So many fewer. Only the thread it belongs to may call this.
    pub fn sub(&self, fewer: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(fewer), Ordering::Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one listener on one thread.
        #[derive(Debug, Default)]
        #[repr(align(128))] // Two threads' counters are never in one line of the cache.
        pub struct Counters { $($(#[$doc])* pub $name: Counter,)* }

        /// What the counters of all threads say together.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct Totals { $($(#[$doc])* pub $name: u64,)* }

        impl Totals {
            /// Takes one thread's counters in.
            pub fn add(&mut self, counters: &Counters) {
                $(self.$name = self.$name.wrapping_add(counters.$name.get());)*
            }
        }
    };
}

counters! {
    /// Connections accepted so far.
    accepted,
    /// Connections open now.
    active,
    /// Bytes from clients.
    received,
    /// Bytes to clients.
    sent,
    /// Connections of clients that are in no range allowed, or that came before there was a certificate to show.
    refused,
    /// Connections that began with no PROXY header, or a bad one, though one had to come; or with one that nobody may send.
    bad_proxy_headers,
    /// TLS handshakes that failed.
    bad_handshakes,
    /// Connections that did not say in time what they had to say first.
    slow,
    /// Connections or requests for which there was no backend.
    no_backend,
    /// Backends that could not be reached.
    dial_failures,
    /// Connections closed because nothing moved.
    idle,
    /// Connections that broke off.
    broken,
    /// Connections ended because their backend or listener was gone and its time over.
    ended,
    /// Requests sent once more, to another backend or on another connection.
    retries,
    /// Answers 1xx.
    answers_1xx,
    /// Answers 2xx.
    answers_2xx,
    /// Answers 3xx.
    answers_3xx,
    /// Answers 4xx.
    answers_4xx,
    /// Answers 5xx.
    answers_5xx,
}

impl Counters {
    /// A request was answered.
    pub fn answered(&self, status: u16) {
        let counter = match status {
            100..=199 => &self.answers_1xx,
            200..=299 => &self.answers_2xx,
            300..=399 => &self.answers_3xx,
            400..=499 => &self.answers_4xx,
            _ => &self.answers_5xx,
        };
        counter.add(1);
    }

    /// So many bytes were carried from a client and to it.
    pub fn carried(&self, (received, sent): (u64, u64)) {
        self.received.add(received);
        self.sent.add(sent);
    }
}
