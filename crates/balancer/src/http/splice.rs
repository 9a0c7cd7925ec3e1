//! Long bodies between two plain sockets: through a pipe in the kernel, without being copied into this process.

use std::any::Any;
use std::io;
use std::task::{Context, Poll, ready};

use fairlead_kernel::relay::Pipe;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::buffer::Buffers;
use super::pump::Broken;
use super::stream::Stream;
use crate::engine::context::CountedPipe;

/// The pipe of a body, as long as it has one.
#[derive(Debug, Default)]
pub(crate) struct Splice(Option<CountedPipe>);

/// From here on a pipe pays for itself.
const LONG: u64 = 64 << 10;
/// How much is asked for at once.
const MOST: u64 = 1 << 20;
/// How often something is moved before others have their turn.
const ROUNDS: usize = 16;

impl Splice {
    /// Whether there are bytes in it.
    pub(crate) fn holds(&self) -> bool {
        self.0.as_ref().is_some_and(|pipe| pipe.held() > 0)
    }

    /// Moves what is left of a body; `None`: this is nothing for a pipe.
    pub(crate) fn poll<R: 'static, W: 'static>(
        &mut self,
        context: &mut Context<'_>,
        ends: (&mut R, &mut W),
        (left, moved): (&mut u64, &mut u64),
        buffers: &Buffers,
    ) -> Option<Poll<Result<(), Broken>>> {
        let (from, to) = (plain(ends.0)?, plain(ends.1)?);
        if self.0.is_none() {
            if *left < LONG {
                return None;
            }
            self.0 = Some(buffers.pipe()?);
        }
        let pipe = self.0.as_mut()?;
        for _ in 0..ROUNDS {
            match step(context, pipe, (from, to), left, moved) {
                Poll::Ready(Ok(())) if *left > 0 => {}
                polled => {
                    if *left == 0 && pipe.held() == 0 {
                        self.0.take().into_iter().for_each(|pipe| buffers.give_pipe(pipe));
                    }
                    return Some(polled);
                }
            }
        }
        context.waker().wake_by_ref();
        Some(Poll::Pending)
    }
}

/// Empties the pipe and fills it again.
fn step(
    context: &mut Context<'_>,
    pipe: &mut Pipe,
    (from, to): (&TcpStream, &TcpStream),
    left: &mut u64,
    moved: &mut u64,
) -> Poll<Result<(), Broken>> {
    if pipe.held() == 0 {
        loop {
            ready!(from.poll_read_ready(context)).map_err(|_| Broken::From)?;
            let most = usize::try_from(MOST.min(*left)).unwrap_or(usize::MAX);
            match from.try_io(Interest::READABLE, || pipe.fill(from, most)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return Poll::Ready(Err(Broken::From)),
                Ok(count) => {
                    *left -= count as u64;
                    break;
                }
            }
        }
    }
    while pipe.held() > 0 {
        ready!(to.poll_write_ready(context)).map_err(|_| Broken::To)?;
        match to.try_io(Interest::WRITABLE, || pipe.drain(to)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return Poll::Ready(Err(Broken::To)),
            Ok(count) => *moved += count as u64,
        }
    }
    Poll::Ready(Ok(()))
}

/// The socket, if there is nothing around it.
fn plain<T: 'static>(stream: &T) -> Option<&TcpStream> {
    let stream: &dyn Any = stream;
    match stream.downcast_ref() {
        Some(Stream::Plain(socket)) => Some(socket),
        Some(Stream::Tls(_)) => None,
        None => stream.downcast_ref(),
    }
}
