//! Streams: connections with questions one behind the other, answered as they are ready. Connections, questions and time are
//! bounded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::ask::Transport;
use crate::listen::Place;
use crate::names::Held;
use crate::router::{Came, Now};

/// Connections of one address at a time.
const CONNECTIONS: usize = 1024;
/// Questions of one connection that wait for others.
const WAITING: usize = 64;
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(10);
/// How long the rest of a question may take to come.
const REST: Duration = Duration::from_secs(3);
/// How long an answer may take to be taken.
const TAKE: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be taken, as when all file descriptors are in use.
const BREATH: Duration = Duration::from_millis(100);

/// Takes connections until told to stop.
pub(crate) async fn serve(listener: TcpListener, place: Arc<Place>, room: Arc<Semaphore>, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let (stream, from) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be taken");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
        };
        // A connection too many is closed: the client tries again.
        let Ok(held) = connections.clone().try_acquire_owned() else { continue };
        let (place, room, stop) = (place.clone(), room.clone(), stop.clone());
        tokio::spawn(async move {
            stop.run_until_cancelled(connection(stream, from, place, room)).await;
            drop(held);
        });
    }
}

async fn connection(stream: TcpStream, from: SocketAddr, place: Arc<Place>, room: Arc<Semaphore>) {
    let _ = stream.set_nodelay(true);
    let local = stream.local_addr().unwrap_or(place.address);
    let (mut reader, mut writer) = stream.into_split();
    let (answers, mut written) = mpsc::channel::<Vec<u8>>(WAITING);
    let read = async move {
        let own = Arc::new(Semaphore::new(WAITING));
        while let Some(bytes) = question(&mut reader).await {
            let asked = Asked { bytes, from, local, at: Instant::now() };
            if answer(asked, &place, &answers, &own, &room).await.is_none() {
                return;
            }
        }
    };
    let write = async move {
        while let Some(answer) = written.recv().await {
            let taken = tokio::time::timeout(TAKE, writer.write_all(&answer)).await;
            if !matches!(taken, Ok(Ok(()))) {
                return;
            }
        }
    };
    // The reader ends first, and its answers are still written; a writer that ends first ends it all.
    let mut write = std::pin::pin!(write);
    tokio::select! {
        () = &mut write => {}
        () = read => write.await,
    }
}

/// The next question; `None`: there is no more.
async fn question(reader: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = tokio::time::timeout(IDLE, reader.read_u16()).await.ok()?.ok()?;
    let mut bytes = vec![0; usize::from(length)];
    tokio::time::timeout(REST, reader.read_exact(&mut bytes)).await.ok()?.ok()?;
    Some(bytes)
}

struct Asked {
    bytes: Vec<u8>,
    from: SocketAddr,
    local: SocketAddr,
    at: Instant,
}

impl Asked {
    fn came(&self) -> Came<'_> {
        let Asked { bytes, from, local, at } = self;
        Came { bytes, from: *from, local: *local, transport: Transport::Tcp, at: *at }
    }
}

/// Answers a question, now or later. `None`: nobody takes answers any more.
async fn answer(
    asked: Asked,
    place: &Arc<Place>,
    answers: &mpsc::Sender<Vec<u8>>,
    own: &Arc<Semaphore>,
    room: &Arc<Semaphore>,
) -> Option<()> {
    let (router, mut out, turn) = (place.router(), Vec::new(), fastrand::u32(..));
    let now = router.now(&asked.came(), turn, &mut Held::default(), &mut out);
    match now {
        Now::Answered => return answers.send(framed(&out)).await.ok(),
        // Who sends what is no question has nothing to say.
        Now::Ignored => return None,
        Now::Later => {}
    }
    let Ok(held) = room.clone().try_acquire_owned() else {
        router.metrics().full();
        router.refuse(&asked.came(), &mut out);
        return answers.send(framed(&out)).await.ok();
    };
    // A client that asks faster than others answer waits.
    let turn_taken = own.clone().acquire_owned().await.ok()?;
    let answers = answers.clone();
    tokio::spawn(async move {
        router.later(&asked.came(), turn, &mut out).await;
        let _ = answers.send(framed(&out)).await;
        drop((held, turn_taken));
    });
    Some(())
}

/// With its length before it.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), bytes].concat()
}
