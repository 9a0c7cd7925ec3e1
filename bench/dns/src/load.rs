//! Questions from one socket: as many as come due at a rate, or as many as are answered.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fairlead_kernel::datagrams::{self, Inbox, Options, Outbox, Peer};

use crate::records::Question;

/// Questions without an answer yet, when there is no rate: more than any server takes at once, fewer than its socket keeps.
const WINDOW: u64 = 128;
/// What leaves in one call at most.
const BATCH: u64 = 64;
/// Answers that take longer are lost.
const PATIENCE: Duration = Duration::from_millis(500);

/// How fast questions come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// So many a second.
    Fixed(u64),
    /// As fast as answers do.
    FlatOut,
}

/// What became of them.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answered: u64,
    /// Not in time, or never.
    pub(crate) lost: u64,
    /// With another code than is right.
    pub(crate) wrong: u64,
    /// How long answers took, in nanoseconds, in order.
    pub(crate) times: Vec<u32>,
    pub(crate) took: Duration,
}

impl Outcome {
    /// The time a part of all answers was there in, in microseconds.
    pub(crate) fn at(&self, part: f64) -> f64 {
        let last = self.times.len().saturating_sub(1) as f64;
        self.times.get((last * part).round() as usize).map_or(0.0, |time| f64::from(*time) / 1e3)
    }
}

/// A question on its way.
#[derive(Debug, Clone, Copy)]
struct Open {
    since: Instant,
    question: usize,
}

/// Somebody who asks.
pub(crate) struct Asker<'a> {
    socket: UdpSocket,
    server: Peer,
    questions: &'a [Question],
    /// Whether answers are read, or are questions come back.
    reads: bool,
    open: Vec<Option<Open>>,
    inbox: Inbox,
    outbox: Outbox,
    scratch: Vec<u8>,
    next: usize,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(server: SocketAddr, questions: &'a [Question], reads: bool) -> anyhow::Result<Asker<'a>> {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket = datagrams::bind(here, Options { shared: false, wait: PATIENCE })?;
        socket.set_nonblocking(true)?;
        let open = vec![None; usize::from(u16::MAX) + 1];
        let server = Peer { from: server, to: None };
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        Ok(Asker { socket, server, questions, reads, open, inbox, outbox, scratch: Vec::new(), next: 0 })
    }

    /// Asks for so long, and waits for the last answers.
    pub(crate) fn ask(&mut self, pace: Pace, time: Duration) -> anyhow::Result<Outcome> {
        self.forget();
        let mut outcome = Outcome { took: time, ..Outcome::default() };
        let (began, mut heard, mut sent) = (Instant::now(), Instant::now(), 0);
        loop {
            let elapsed = began.elapsed();
            let waiting = |outcome: &Outcome| sent - outcome.answered - outcome.lost;
            let due = match pace {
                _ if elapsed >= time => 0,
                Pace::Fixed(rate) => ((elapsed.as_secs_f64() * rate as f64) as u64).saturating_sub(sent),
                Pace::FlatOut => WINDOW.saturating_sub(waiting(&outcome)),
            };
            let due = due.min(BATCH);
            (0..due).for_each(|_| outcome.lost += u64::from(self.push()));
            sent += due;
            self.outbox.send(&self.socket);
            if self.hear(&mut outcome)? > 0 {
                heard = Instant::now();
            }
            if heard.elapsed() > PATIENCE {
                outcome.lost += self.forget();
                heard = Instant::now();
            }
            if elapsed >= time && sent == outcome.answered + outcome.lost {
                outcome.times.sort_unstable();
                return Ok(outcome);
            }
        }
    }

    /// Adds a question. Whether its number was still that of another, which is lost then.
    fn push(&mut self) -> bool {
        self.next = self.next.wrapping_add(1);
        let (id, question) = ((self.next & 0xffff) as u16, self.next % self.questions.len());
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.questions[question].bytes);
        self.scratch[..2].copy_from_slice(&id.to_be_bytes());
        self.outbox.push(self.server, &self.scratch);
        self.open[usize::from(id)].replace(Open { since: Instant::now(), question }).is_some()
    }

    /// Takes what came; how many.
    fn hear(&mut self, outcome: &mut Outcome) -> anyhow::Result<usize> {
        self.inbox.receive(&self.socket)?;
        let now = Instant::now();
        let mut count = 0;
        for (bytes, _) in self.inbox.iter() {
            let [high, low, _, flags, ..] = bytes else { continue };
            let id = usize::from(u16::from_be_bytes([*high, *low]));
            let Some(open) = self.open[id].take() else { continue };
            let right = !self.reads || flags & 0x0f == self.questions[open.question].rcode;
            outcome.wrong += u64::from(!right);
            outcome.answered += 1;
            count += 1;
            outcome.times.push(u32::try_from((now - open.since).as_nanos()).unwrap_or(u32::MAX));
        }
        Ok(count)
    }

    /// Gives up on all that are open; how many.
    fn forget(&mut self) -> u64 {
        self.open.iter_mut().map(|open| u64::from(open.take().is_some())).sum()
    }
}
