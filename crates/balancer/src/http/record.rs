//! What the access log says of a request, gathered on its way.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::Connection;
use super::request::Note;
use crate::log::Entry;
use crate::serving::Serving;

/// A line that is being written.
#[derive(Debug)]
pub(crate) struct Record {
    entry: Entry,
    began: Instant,
    /// When it was sent, and when the answer began.
    sent: Option<Instant>,
    answered: Option<Instant>,
}

impl Record {
    /// The line of a request that has just come.
    pub(crate) fn new(connection: &Connection, note: Note) -> Box<Record> {
        let entry = Entry {
            time: jiff::Timestamp::now(),
            client: connection.ends.client,
            backend: None,
            times: [None; 3],
            status: (0, 0),
            bytes: (0, 0),
            request: (!note.line.is_empty()).then_some(note.line),
            agent: note.agent,
            tls: connection.tls.as_ref().map(|tls| (tls.suite.to_owned(), tls.version.to_owned())),
        };
        Box::new(Record { entry, began: Instant::now(), sent: None, answered: None })
    }

    /// It goes to this backend.
    pub(crate) fn backend(&mut self, address: SocketAddr) {
        self.entry.backend = Some(address);
    }

    /// It was sent.
    pub(crate) fn sent(&mut self) {
        self.sent.get_or_insert_with(Instant::now);
    }

    /// Its answer began.
    pub(crate) fn answered(&mut self, status: u16) {
        self.sent();
        self.answered = Some(Instant::now());
        self.entry.status = (status, status);
    }

    /// The answer is sent, after so many bytes from the client and to it.
    pub(crate) fn done(mut self: Box<Self>, bytes: (u64, u64), serving: &Serving) {
        self.entry.bytes = bytes;
        let spans = [Some(self.began), self.sent, self.answered, Some(Instant::now())];
        let span = |index: usize| -> Option<Duration> { Some(spans[index + 1]?.duration_since(spans[index]?)) };
        self.entry.times = [span(0), span(1), span(2)];
        if let Some(log) = &serving.log {
            log.write(self.entry);
        }
    }

    /// We answered it ourselves.
    pub(crate) fn refused(mut self: Box<Self>, status: u16, bytes: u64, serving: &Serving) {
        self.entry.status = (status, self.entry.status.1);
        if self.answered.is_none() {
            self.sent = None;
        }
        self.done((0, bytes), serving);
    }
}
