//! A thread that serves portals: waits for all its sockets at once and does what each can do now.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fairlead_kernel::relay::{Events, Poller, Ready, Waker};
use fairlead_plan::PortKey;

use super::budget::Budget;
use super::target::Target;
use super::tcp::Tcp;
use super::token::{self, Subject};
use super::udp::Udp;

/// How many commands may wait for a worker; then the one who gives them waits.
const COMMANDS: usize = 1024;
/// How many connections may wait for a portal that closes.
const BACKLOG: usize = 4096;
/// How many events are looked at in one go.
const EVENTS: usize = 256;

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Serve a portal, which others may serve too.
    Tcp(u64, Arc<TcpListener>, Arc<Target>),
    /// Serve a portal alone.
    Udp(u64, Arc<UdpSocket>, Arc<Target>),
    /// Serve it no longer. Connections stay, sessions end.
    Close(u64),
    /// Sessions of a port with other endpoints than these end.
    Retain(PortKey, Arc<HashSet<SocketAddr>>),
}

/// What workers run with.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) budget: Arc<Budget>,
    pub(crate) udp_timeout: Duration,
    pub(crate) udp_sessions: usize,
}

/// A worker, from outside. Dropping it ends the thread, and every connection it carries.
#[derive(Debug)]
pub(crate) struct Worker {
    commands: Option<SyncSender<Command>>,
    waker: Arc<Waker>,
    load: Arc<Load>,
    thread: Option<JoinHandle<()>>,
}

/// What a worker has to do.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub(crate) connections: AtomicUsize,
    pub(crate) sessions: AtomicUsize,
}

impl Worker {
    /// Starts one, in the network namespace of the caller.
    pub(crate) fn start(name: String, setup: Setup) -> io::Result<Worker> {
        let (sender, receiver) = sync_channel(COMMANDS);
        let (waker, load, poller) = (Arc::new(Waker::new()?), Arc::new(Load::default()), Arc::new(Poller::new()?));
        poller.watch(waker.as_fd(), token::WAKER)?;
        let service = Service {
            commands: receiver,
            waker: waker.clone(),
            load: load.clone(),
            listeners: HashMap::new(),
            tcp: Tcp::new(poller.clone(), setup.budget.clone()),
            udp: Udp::new(poller.clone(), setup.budget, setup.udp_timeout, setup.udp_sessions),
            poller,
        };
        let thread = std::thread::Builder::new().name(name).spawn(move || service.run())?;
        Ok(Worker { commands: Some(sender), waker, load, thread: Some(thread) })
    }

    /// Tells it something. False: it is no more.
    pub(crate) fn tell(&self, command: Command) -> bool {
        let told = self.commands.as_ref().is_some_and(|commands| commands.send(command).is_ok());
        self.waker.wake();
        told
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// What it has to do.
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.commands = None;
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // If it panicked that has been said.
            let _ = thread.join();
        }
    }
}

/// The worker itself.
struct Service {
    commands: Receiver<Command>,
    waker: Arc<Waker>,
    load: Arc<Load>,
    poller: Arc<Poller>,
    listeners: HashMap<u64, (Arc<TcpListener>, Arc<Target>)>,
    tcp: Tcp,
    udp: Udp,
}

impl Service {
    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        let mut unfinished = false;
        loop {
            let now = Instant::now();
            let due = [self.tcp.expire(now), self.udp.expire(now)].into_iter().flatten().min();
            self.load.connections.store(self.tcp.len(), Ordering::Relaxed);
            self.load.sessions.store(self.udp.len(), Ordering::Relaxed);
            let limit = if unfinished { Some(Duration::ZERO) } else { due.map(|due| due.duration_since(now)) };
            if let Err(error) = self.poller.wait(&mut events, limit) {
                tracing::error!(%error, "a worker of the userspace proxy cannot wait, and ends");
                return;
            }
            let now = Instant::now();
            for ready in events.iter() {
                if !self.handle(ready, now) {
                    return;
                }
            }
            unfinished = self.tcp.go_on();
        }
    }

    /// False: it is over.
    fn handle(&mut self, ready: Ready, now: Instant) -> bool {
        match token::read(ready.token) {
            Subject::Waker => return self.obey(now),
            Subject::Connection(key, side) => self.tcp.ready(key, side, ready, now),
            Subject::Session(key) => self.udp.endpoint_answered(key, now),
            Subject::Portal(number) if self.udp.has(number) => self.udp.clients_sent(number, now),
            Subject::Portal(number) => {
                if let Some((listener, target)) = self.listeners.get(&number) {
                    self.tcp.accept(listener, target, now);
                }
            }
        }
        true
    }

    fn obey(&mut self, now: Instant) -> bool {
        self.waker.woken();
        loop {
            let opened = match self.commands.try_recv() {
                Ok(Command::Tcp(number, listener, target)) => self.listen(number, listener, target),
                Ok(Command::Udp(number, socket, target)) => self.udp.open(number, socket, target),
                Ok(Command::Close(number)) => {
                    self.close(number, now);
                    Ok(())
                }
                Ok(Command::Retain(port, serving)) => {
                    self.udp.retain(&port, &serving, Instant::now());
                    Ok(())
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            };
            if let Err(error) = opened {
                tracing::error!(%error, "a port of the userspace proxy cannot be watched");
            }
        }
    }

    fn listen(&mut self, number: u64, listener: Arc<TcpListener>, target: Arc<Target>) -> io::Result<()> {
        self.poller.watch_shared(listener.as_fd(), token::portal(number))?;
        self.listeners.insert(number, (listener, target));
        Ok(())
    }

    fn close(&mut self, number: u64, now: Instant) {
        if self.udp.close(number) {
            return;
        }
        if let Some((listener, target)) = self.listeners.remove(&number) {
            // Those that were led here before the rules went.
            let _ = (0..BACKLOG).all(|_| self.tcp.accept(&listener, &target, now));
            // Other workers may still hold it.
            let _ = self.poller.forget(listener.as_fd());
        }
    }
}
