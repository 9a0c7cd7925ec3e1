//! A connection of bytes: a backend is found, told of the client if it asks for that, and both are joined.
//!
//! ```text
//! client --> dial (choose, connect, next one if that fails) --> PROXY header --> carry both ways --> a line in the access log
//! ```
//! Without TLS on either side bytes need not come into this process: see `splice`. With it they are copied: see `copy`.

mod copy;
pub mod dial;
mod splice;
pub(crate) mod stranger;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::engine::backend_permits::{BackendPermit, SourcePlace};
use crate::engine::context::{Context, Phase};
use crate::engine::deadline::Deadline;
use crate::engine::memory::MemoryHold;
use crate::engine::secure::TlsFacts;
use crate::log::Entry;
use crate::proxy_header;
use crate::serving::{Ends, Serving};
use dial::Dialled;

/// Serves a client's connection that is as it came.
pub(crate) async fn serve(mut client: TcpStream, ends: Ends, serving: Arc<Serving>, context: Context) {
    let mut trip = Trip::begin(ends, &serving, &context, None);
    let Some(mut backend) = trip.dial().await else { return reset(&client) };
    let mut both = splice::Both::new(&mut client, &mut backend);
    let how = trip.carry(|cx, moved| both.poll(cx, moved, context.thread())).await;
    both.finish(context.thread());
    trip.end(&how);
    if matches!(how, How::Broken | How::Over) {
        reset(&client);
        reset(&backend);
    }
}

/// Serves a client's connection whose bytes must come into this process: TLS was taken off, or is to be put on towards the
/// backend, or its first bytes are looked at.
pub(crate) async fn serve_secured<S>(
    mut client: S,
    ends: Ends,
    tls: Option<TlsFacts>,
    serving: Arc<Serving>,
    context: Context,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let reencrypt = serving.reencrypt.clone();
    let mut trip = Trip::begin(ends, &serving, &context, tls);
    let Some(backend) = trip.dial().await else { return };
    let thread = context.thread();
    let how = match reencrypt {
        None => {
            let mut backend = backend;
            let mut both = copy::Both::new(&mut client, &mut backend);
            trip.carry(|cx, moved| both.poll(cx, moved, thread)).await
        }
        Some(tls) => match trip.secure(&tls, backend).await {
            Ok(mut backend) => {
                let mut both = copy::Both::new(&mut client, &mut backend);
                trip.carry(|cx, moved| both.poll(cx, moved, thread)).await
            }
            Err(how) => how,
        },
    };
    trip.end(&how);
}

/// The other side is to see that it broke.
fn reset(stream: &TcpStream) {
    // If it fails the connection ends in the ordinary way.
    let _ = stream.set_zero_linger();
}

/// How a connection ended.
#[derive(Debug)]
enum How {
    /// Both sides had said all.
    Done,
    /// One broke off.
    Broken,
    /// Nothing moved for too long.
    Idle,
    /// Its backend or listener was gone, and its time over.
    Over,
    /// What it began with is not carried; who refused it has counted it.
    Refused,
}

/// How many bytes moved: from the client, to the client.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// Bytes that were read and wait to be written.
    pub(crate) waiting: usize,
    /// True if bytes wait for the client to take them.
    pub(crate) waits_for_client: bool,
}

/// One connection on its way, with what is to be told of it.
struct Trip<'a> {
    ends: Ends,
    serving: &'a Arc<Serving>,
    context: &'a Context,
    tls: Option<TlsFacts>,
    deadline: Deadline,
    begun: Instant,
    backend: Option<SocketAddr>,
    /// Counts the connection to the backend, and the client among those that have one.
    permits: Option<(SourcePlace, BackendPermit)>,
    moved: Moved,
    /// When the first byte went each way.
    first: [Option<Instant>; 2],
}

impl<'a> Trip<'a> {
    fn begin(ends: Ends, serving: &'a Arc<Serving>, context: &'a Context, tls: Option<TlsFacts>) -> Trip<'a> {
        let deadline = Deadline::after(context.thread().options().connect);
        let begun = Instant::now();
        let moved = Moved::default();
        Trip { ends, serving, context, tls, deadline, begun, backend: None, permits: None, moved, first: [None; 2] }
    }

    /// A backend that has been told who the client is.
    async fn dial(&mut self) -> Option<TcpStream> {
        let (mut tried, client) = (Vec::new(), self.ends.client);
        let source = self.context.source();
        let limit = self.context.thread().options().connect;
        let place = match source.try_place() {
            Some(place) => Some(place),
            None => {
                let room = || self.context.thread().memory.end_stalled(Some(&source));
                Box::pin(source.place(limit, room)).await
            }
        };
        let Some(place) = place else {
            self.context.counters().no_backend.add(1);
            self.finish();
            return None;
        };
        self.deadline.put_off(limit);
        loop {
            let dialled = dial::dial(self.serving, client, &mut tried, &mut self.deadline, self.context).await;
            let Some(Dialled { stream, chosen, permit }) = dialled else {
                self.finish();
                return None;
            };
            if self.introduce(&stream).is_err() {
                chosen.failed();
                tried.push(chosen.address());
                continue;
            }
            self.backend = Some(chosen.address());
            self.permits = Some((place, permit));
            self.context.bind(chosen);
            return Some(stream);
        }
    }

    /// Tells a backend who the client is, if it is to be told. A new connection takes that at once.
    fn introduce(&self, stream: &TcpStream) -> io::Result<()> {
        let Some(version) = self.serving.listener.send_proxy else { return Ok(()) };
        let mut header = Vec::with_capacity(128);
        proxy_header::write(version, self.ends.client, self.ends.local, self.tls.as_ref(), &mut header);
        match stream.try_write(&header) {
            Ok(written) if written == header.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => Err(error),
        }
    }

    /// TLS towards the backend.
    async fn secure(
        &mut self,
        tls: &Arc<crate::tls::ClientTls>,
        stream: TcpStream,
    ) -> Result<crate::engine::secure::BackendStream, How> {
        let Some(address) = self.backend else { return Err(How::Broken) };
        let limit = self.context.thread().options().connect;
        match tokio::time::timeout(limit, crate::engine::secure::connect(tls, stream, address)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(_)) | Err(_) => {
                self.context.counters().dial_failures.add(1);
                Err(How::Broken)
            }
        }
    }

    /// Carries bytes until there are no more, or it has to end.
    async fn carry(&mut self, mut poll: impl FnMut(&mut Task<'_>, &mut Moved) -> Poll<io::Result<()>>) -> How {
        let idle = self.serving.spec.idle;
        self.deadline.put_off(idle);
        let held = MemoryHold::new(self.context.thread(), self.context.source(), None);
        poll_fn(|cx| {
            if self.context.poll_phase(Phase::Over, cx).is_ready() {
                return Poll::Ready(How::Over);
            }
            let mut moved = Moved::default();
            let carried = poll(cx, &mut moved);
            if moved.up + moved.down > 0 {
                self.count(moved, idle);
                held.progressed();
            }
            held.set(moved.waiting);
            held.waits_for_client(moved.waits_for_client);
            if held.poll_ended(cx).is_ready() {
                return Poll::Ready(How::Over);
            }
            match carried {
                Poll::Ready(Ok(())) => Poll::Ready(How::Done),
                Poll::Ready(Err(error)) if stranger::is_unwelcome(&error) => Poll::Ready(How::Refused),
                Poll::Ready(Err(_)) => Poll::Ready(How::Broken),
                Poll::Pending => self.deadline.poll(cx).map(|()| How::Idle),
            }
        })
        .await
    }

    fn count(&mut self, moved: Moved, idle: Duration) {
        self.deadline.put_off(idle);
        self.context.counters().carried((moved.up, moved.down));
        // Only the log asks when, and the clock takes its time.
        if self.serving.log.is_some() {
            for (first, moved) in self.first.iter_mut().zip([moved.up, moved.down]) {
                if moved > 0 && first.is_none() {
                    *first = Some(Instant::now());
                }
            }
        }
        self.moved.up += moved.up;
        self.moved.down += moved.down;
    }

    fn end(&self, how: &How) {
        let counters = self.context.counters();
        match how {
            How::Done | How::Refused => {}
            How::Broken => counters.broken.add(1),
            How::Idle => counters.idle.add(1),
            How::Over => counters.ended.add(1),
        }
        self.finish();
    }

    /// Tells the access log.
    fn finish(&self) {
        let Some(log) = &self.serving.log else { return };
        let [up, down] = self.first;
        let answered = down.map(|down| down.duration_since(up.unwrap_or(self.begun)));
        log.write(Entry {
            time: jiff::Timestamp::now() - self.begun.elapsed(),
            client: self.ends.client,
            backend: self.backend,
            times: [up.map(|up| up.duration_since(self.begun)), answered, down.map(|_| Duration::ZERO)],
            status: (0, 0),
            bytes: (self.moved.up, self.moved.down),
            request: None,
            agent: None,
            tls: self.tls.as_ref().map(|tls| (tls.suite.to_owned(), tls.version.to_owned())),
        });
    }
}
