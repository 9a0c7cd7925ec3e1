//! After 101 or CONNECT: bytes both ways, until both sides have ended or nothing moves any more.

use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::buffer::{Buffers, Inlet};
use super::dial::Backend;
use super::head::Framing;
use super::pump::{Broken, Pump};
use super::watch::Watch;

/// One way through a tunnel.
struct Way {
    pump: Pump,
    ended: bool,
}

impl Way {
    fn new() -> Way {
        Way { pump: Pump::new(Vec::new(), Framing::End, false), ended: false }
    }

    /// Ready when it has ended and the other side was told.
    fn poll<R, W>(
        &mut self,
        task: &mut Task<'_>,
        inlet: &mut Inlet,
        from: &mut R,
        to: &mut W,
        buffers: &Buffers,
    ) -> Poll<Result<(), Broken>>
    where
        R: AsyncRead + Unpin + 'static,
        W: AsyncWrite + Unpin + 'static,
    {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        ready!(self.pump.poll(task, (inlet, from, to), buffers))?;
        ready!(Pin::new(to).poll_shutdown(task)).map_err(|_| Broken::To)?;
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}

/// Carries bytes; how many from the client and to it.
pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    (client, inlet): (&mut S, &mut Inlet),
    backend: &mut Backend,
    watch: &mut Watch,
    idle: Duration,
    buffers: &Buffers,
) -> (u64, u64) {
    let (mut up, mut down) = (Way::new(), Way::new());
    let carried = watch.limit(idle, |task, watch| {
        let before = (up.pump.moved, down.pump.moved);
        let sent = up.poll(task, inlet, client, &mut backend.stream, buffers)?;
        let received = down.poll(task, &mut backend.inlet, &mut backend.stream, client, buffers)?;
        if before != (up.pump.moved, down.pump.moved) {
            watch.moved(idle);
        }
        // A tunnel has no least rate, but its memory can be needed by others.
        watch.held.set(inlet.capacity() + backend.inlet.capacity());
        watch.held.waits_for_client(down.pump.waits_for_room());
        if sent.is_ready() && received.is_ready() { Poll::Ready(Ok::<(), Broken>(())) } else { Poll::Pending }
    });
    // However it ended, it has.
    let _ = carried.await;
    inlet.release(buffers);
    backend.inlet.release(buffers);
    (up.pump.moved, down.pump.moved)
}
