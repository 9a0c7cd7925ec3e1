//! A thread of the engine: what it is told, and what it does then.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use super::Options;
use super::context::Thread;
use super::listener::{Local, Shared};
use super::orders::{Giver, Taker, orders};
use super::quotas::Quotas;

#[cfg(test)]
mod tests;

/// So many sockets that were opened and given up before the thread came to it are looked at for connections. One is usual.
const GIVEN_UP: usize = 8;

/// A socket, and where it listens.
pub(super) type Socket = (SocketAddr, TcpListener);
/// Tells a thread what to do, by the place in memory that a listener has as long as anything is to be done for it.
pub(super) type Commands = Giver<usize, Command>;

/// What a thread is told of a listener.
#[derive(Debug)]
pub(super) struct Command {
    /// Which one.
    shared: Arc<Shared>,
    /// The thread has not heard of it.
    new: bool,
    /// Addresses to accept at no more.
    left: Vec<SocketAddr>,
    /// Sockets to accept from now on.
    opened: Vec<Socket>,
    /// Sockets that were opened and given up again: connections may wait in them.
    given_up: Vec<Socket>,
    /// It is none any more.
    stop: bool,
}

impl Command {
    /// A listener is new, or changed.
    pub(super) fn serve(shared: Arc<Shared>, new: bool, opened: Vec<Socket>, left: Vec<SocketAddr>) -> Command {
        Command { shared, new, left, opened, given_up: Vec::new(), stop: false }
    }

    /// A listener is none any more.
    pub(super) fn stop(shared: Arc<Shared>) -> Command {
        Command { shared, new: false, left: Vec::new(), opened: Vec::new(), given_up: Vec::new(), stop: true }
    }

    /// Tells a thread, together with what it was told before and has not yet done.
    pub(super) fn give(self, to: &Commands) {
        to.give(Arc::as_ptr(&self.shared) as usize, |waits| match waits {
            Some(waits) => waits.join(self),
            None => Some(self),
        });
    }

    /// Both, this one first; `None`: there is nothing to do.
    fn join(mut self, next: Command) -> Option<Command> {
        if next.stop && self.new {
            return None;
        }
        for at in next.left {
            match self.opened.iter().position(|(opened, _)| *opened == at) {
                Some(place) => self.given_up.push(self.opened.swap_remove(place)),
                None if self.left.contains(&at) => {}
                None => self.left.push(at),
            }
        }
        self.given_up.truncate(GIVEN_UP);
        self.opened.extend(next.opened);
        self.stop |= next.stop;
        Some(self)
    }
}

/// Starts a thread. It ends when nobody can command it any more.
pub(super) fn start(
    index: usize,
    options: Arc<Options>,
    quotas: Arc<Quotas>,
) -> io::Result<(Commands, JoinHandle<()>)> {
    let (giver, taker) = orders();
    // A runtime for tasks that stay on their thread is made there; whether that worked is said once.
    let (say, begun) = sync_channel(1);
    let work = move || match runtime() {
        Ok(runtime) => {
            let _ = say.send(Ok(()));
            runtime.block_on(obey(Rc::new(Thread::new(index, options, quotas)), taker));
        }
        Err(error) => drop(say.send(Err(error))),
    };
    let thread = std::thread::Builder::new().name(format!("balancer-{index}")).spawn(work)?;
    begun.recv().map_err(io::Error::other)??;
    Ok((giver, thread))
}

/// Tasks are its own: with a set of local tasks inside another runtime each wake would pass through both.
fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())
}

async fn obey(thread: Rc<Thread>, commands: Taker<usize, Command>) {
    let mut listeners: HashMap<usize, Rc<Local>> = HashMap::new();
    while let Some(all) = commands.take().await {
        for (place, command) in all {
            let Command { shared, left, opened, given_up, stop, .. } = command;
            let local = listeners.entry(place).or_insert_with(|| Rc::new(Local::new(thread.clone(), shared)));
            local.follow();
            left.iter().for_each(|at| local.close(at));
            opened.into_iter().for_each(|(at, socket)| local.begin(at, socket));
            given_up.into_iter().for_each(|(at, socket)| local.accept_rest(at, socket));
            if stop && let Some(local) = listeners.remove(&place) {
                local.stop();
            }
        }
    }
}
