//! A thread of the engine: what it is told, and what it does then.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use super::Options;
use super::context::Thread;
use super::listener::{Local, Shared};

/// What a thread is told.
#[derive(Debug)]
pub(super) enum Command {
    /// A listener is new, or changed.
    Serve {
        /// Which one.
        shared: Arc<Shared>,
        /// Sockets to accept from now on.
        opened: Vec<(SocketAddr, TcpListener)>,
        /// Addresses to accept at no more.
        left: Vec<SocketAddr>,
    },
    /// A listener is none any more.
    Stop(Arc<Shared>),
}

/// Starts a thread. It ends when nobody can command it any more.
pub(super) fn start(index: usize, options: Arc<Options>) -> io::Result<(UnboundedSender<Command>, JoinHandle<()>)> {
    // Without a bound: there are as many commands as changes of listeners, and a thread takes them within a turn.
    let (sender, receiver) = unbounded_channel();
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let work = move || {
        let local = LocalSet::new();
        local.block_on(&runtime, obey(Rc::new(Thread::new(index, options)), receiver));
    };
    let thread = std::thread::Builder::new().name(format!("balancer-{index}")).spawn(work)?;
    Ok((sender, thread))
}

async fn obey(thread: Rc<Thread>, mut commands: UnboundedReceiver<Command>) {
    let mut listeners: HashMap<*const Shared, Rc<Local>> = HashMap::new();
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve { shared, opened, left } => {
                let new = || Rc::new(Local::new(thread.clone(), shared.clone()));
                let local = listeners.entry(Arc::as_ptr(&shared)).or_insert_with(new);
                local.follow();
                opened.into_iter().for_each(|(at, socket)| local.begin(at, socket));
                left.iter().for_each(|at| local.close(at));
            }
            Command::Stop(shared) => {
                if let Some(local) = listeners.remove(&Arc::as_ptr(&shared)) {
                    local.stop();
                }
            }
        }
    }
}
