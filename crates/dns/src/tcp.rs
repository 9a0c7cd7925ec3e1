//! Streams: connections with questions one behind the other, answered as they are ready.
//! Connections, questions, bytes and time are bounded, for each client and in all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_runtime::Slot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::ask::Transport;
use crate::bounds::{self, Bounds};
use crate::listen::Place;
use crate::names::Held;
use crate::router::{Came, Now};

/// Maximum number of questions of one connection that wait for others. A client that sends more is
/// not read until one of them is answered.
const WAITING: usize = 32;
/// Maximum length of a question, as for datagrams. Room is made for the length that the client
/// announces.
const LONGEST_QUESTION: usize = 4096;
/// Length of an answer up to which its bytes are not charged: what waits is bounded by questions
/// and connections.
const SHORT_ANSWER: usize = 2048;
/// Time that a connection may be silent between two questions.
const IDLE: Duration = Duration::from_secs(10);
/// Time that the rest of a question may take.
const REST: Duration = Duration::from_secs(3);
/// Time that the client may take to receive an answer.
const WRITE: Duration = Duration::from_secs(5);
/// Pause when no connection can be accepted, as when all descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until told to stop. When all places are in use, the idlest connection of the
/// client with most of them is closed.
pub(crate) async fn serve(listener: TcpListener, place: Arc<Place>, bounds: Bounds, stop: CancellationToken) {
    loop {
        let (stream, from) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let closed = stop.child_token();
        let evicted = closed.clone();
        // Without a place the connection is closed: the client tries again.
        let Ok(slot) = bounds.connections.admit(from.ip(), move || evicted.cancel()) else { continue };
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().unwrap_or(place.address);
        let (reader, writer) = stream.into_split();
        let connection = Connection {
            writer: Mutex::new(writer),
            from,
            local,
            place: place.clone(),
            bounds: bounds.clone(),
            waiting: Arc::new(Semaphore::new(WAITING)),
            closed,
            slot,
        };
        tokio::spawn(Arc::new(connection).read(reader));
    }
}

/// A connection of a client. Closed when the last question on it is answered, or at once when
/// `closed` is cancelled.
struct Connection {
    writer: Mutex<OwnedWriteHalf>,
    from: SocketAddr,
    local: SocketAddr,
    place: Arc<Place>,
    bounds: Bounds,
    /// Places for questions of this connection that wait for others.
    waiting: Arc<Semaphore>,
    closed: CancellationToken,
    slot: Slot,
}

/// A question as it came.
struct Question {
    bytes: Vec<u8>,
    at: Instant,
}

impl Connection {
    /// Reads questions and answers them, until the client ends or breaks a rule.
    async fn read(self: Arc<Self>, mut reader: OwnedReadHalf) {
        let questions = async {
            while let Some(bytes) = read_question(&mut reader).await {
                self.slot.touch();
                if self.answer(Question { bytes, at: Instant::now() }).await.is_none() {
                    self.closed.cancel();
                    return;
                }
            }
        };
        // After the last question its answers are still written.
        self.closed.run_until_cancelled(questions).await;
    }

    /// Answers a question, now or later. `None`: the connection is of no use any more.
    async fn answer(self: &Arc<Self>, question: Question) -> Option<()> {
        let mut out = Vec::new();
        let router = self.place.router();
        let turn = fastrand::u32(..);
        let now = router.now(&self.came(&question), turn, &mut Held::default(), &mut out);
        match now {
            Now::Answered => return self.write(&out).await,
            // A client that sends what is no question cannot be told so.
            Now::Ignored => return None,
            Now::Later => {}
        }
        // A client that asks faster than others answer waits.
        let waiting = self.waiting.clone().acquire_owned().await.ok()?;
        let evicted = self.closed.child_token();
        let evict = evicted.clone();
        let Ok(slot) = self.bounds.questions.admit(self.from.ip(), move || evict.cancel()) else {
            router.metrics().full();
            router.refuse(&self.came(&question), &mut out);
            return self.write(&out).await;
        };
        let connection = self.clone();
        tokio::spawn(async move {
            router.later(&connection.came(&question), turn, &evicted, &mut out).await;
            if connection.write(&out).await.is_none() {
                connection.closed.cancel();
            }
            drop((slot, waiting));
        });
        Some(())
    }

    fn came<'a>(&self, question: &'a Question) -> Came<'a> {
        Came { bytes: &question.bytes, from: self.from, local: self.local, transport: Transport::Tcp, at: question.at }
    }

    /// Writes an answer with its length before it (RFC 1035, 4.2.2). `None`: the client did not
    /// take it in time, or makes us keep too much.
    async fn write(&self, answer: &[u8]) -> Option<()> {
        let length = u16::try_from(answer.len()).ok()?;
        let bytes = match length {
            0 => return Some(()),
            _ => [&length.to_be_bytes(), answer].concat(),
        };
        let charged = match bytes.len() {
            0..=SHORT_ANSWER => None,
            long => Some(self.bounds.answers.acquire(&bounds::client(self.from.ip()), long as u64).ok()?),
        };
        let written = async {
            let mut writer = self.writer.lock().await;
            // The client of a cut answer could take the next one for its rest.
            if self.closed.is_cancelled() {
                return None;
            }
            let written = tokio::time::timeout(WRITE, writer.write_all(&bytes)).await;
            if !matches!(written, Ok(Ok(()))) {
                self.closed.cancel();
                return None;
            }
            Some(())
        };
        let written = self.closed.run_until_cancelled(written).await.flatten();
        drop(charged);
        written
    }
}

/// Reads the next question; `None`: there is no more.
async fn read_question(reader: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = usize::from(tokio::time::timeout(IDLE, reader.read_u16()).await.ok()?.ok()?);
    if length > LONGEST_QUESTION {
        return None;
    }
    let mut bytes = vec![0; length];
    tokio::time::timeout(REST, reader.read_exact(&mut bytes)).await.ok()?.ok()?;
    Some(bytes)
}
