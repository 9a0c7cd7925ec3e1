//! Connections to backends that wait for their next request: one pool a thread, bounded in number and in time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use foldhash::fast::RandomState;
use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::dial::Backend;
use super::stream::Stream;
use crate::engine::backend_permits::BackendPermit;
use crate::tls::ClientTls;

/// How many connections wait for one backend.
const MOST: usize = 256;
/// How long they wait: less than most servers do.
const LONGEST: Duration = Duration::from_secs(15);
/// How often those are closed that have waited enough.
const SWEEP: Duration = Duration::from_secs(5);

/// The connections that wait.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<SocketAddr, Vec<Idle>, RandomState>>,
    swept: Cell<bool>,
}

#[derive(Debug)]
struct Idle {
    stream: Stream,
    permit: BackendPermit,
    /// What it was encrypted under: another certificate or authority needs another connection.
    tls: Option<Arc<ClientTls>>,
    since: Instant,
}

impl Pool {
    /// The connection used last of those that are still alive. `surely`: ask the kernel, for requests that cannot be sent twice.
    pub(crate) fn take(&self, to: SocketAddr, tls: Option<&Arc<ClientTls>>, surely: bool) -> Option<Backend> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(&to)?;
        loop {
            let last = waiting.iter().rposition(|one| same(one.tls.as_ref(), tls))?;
            let Idle { mut stream, permit, .. } = waiting.swap_remove(last);
            if is_silent(&mut stream) && !(surely && is_gone(&stream)) {
                return Some(Backend::reused(stream, permit));
            }
        }
    }

    /// Keeps a connection on which nothing is under way. `awaited`: closes it, because others wait
    /// for a permit.
    pub(crate) fn put(self: &Rc<Pool>, to: SocketAddr, tls: Option<Arc<ClientTls>>, backend: Backend, awaited: bool) {
        if awaited {
            return;
        }
        let Backend { stream, permit, .. } = backend;
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.entry(to).or_default();
        if waiting.len() < MOST {
            waiting.push(Idle { stream, permit, tls, since: Instant::now() });
        }
        if !self.swept.replace(true) {
            tokio::task::spawn_local(sweep(Rc::downgrade(self)));
        }
    }

    /// Closes a connection that waits, so that there can be one to another backend.
    pub(crate) fn close_one(&self) {
        let mut idle = self.idle.borrow_mut();
        let Some(to) = idle.iter().find(|(_, waiting)| !waiting.is_empty()).map(|(to, _)| *to) else { return };
        if let Some(waiting) = idle.get_mut(&to) {
            waiting.pop();
            if waiting.is_empty() {
                idle.remove(&to);
            }
        }
    }

    /// Closes what has waited enough; whether anything is left.
    fn expire(&self, now: Instant) -> bool {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|_, waiting| {
            waiting.retain_mut(|one| now - one.since < LONGEST && is_silent(&mut one.stream));
            !waiting.is_empty()
        });
        !idle.is_empty()
    }
}

async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.expire(Instant::now()) {
            pool.swept.set(false);
            return;
        }
    }
}

fn same(one: Option<&Arc<ClientTls>>, other: Option<&Arc<ClientTls>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// Whether the backend has neither ended the connection nor said anything nobody asked for, as far as we were told.
fn is_silent(stream: &mut Stream) -> bool {
    let mut byte = [0];
    let read = Pin::new(stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut ReadBuf::new(&mut byte));
    read.is_pending()
}

/// Whether the kernel knows of something that we were not told yet.
fn is_gone(stream: &Stream) -> bool {
    let peeked = SockRef::from(stream.socket()).peek(&mut [MaybeUninit::uninit()]);
    !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
