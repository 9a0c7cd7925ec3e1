//! A network namespace of its own with an engine in it, backends that are threads, and clients.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::spec::Speaks;

#[path = "../lab/listener.rs"]
mod listener;

pub(crate) use listener::{Wish, in_lab, until};

/// What listeners speak, and how long they drain, unless a test says something else.
const SPEAKS: Speaks = Speaks::Bytes;
const DRAIN: Option<Duration> = None;

/// An engine with two threads.
pub(crate) fn engine() -> Engine {
    Engine::start(Options { threads: 2, ..Options::default() }).unwrap()
}

/// A backend that counts connections and does `work` with each.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(at: &str, work: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        // Room for many that wait, however slow this machine is at the moment.
        let listener = fairlead_kernel::relay::listen(at.parse().unwrap()).unwrap();
        listener.set_nonblocking(false).unwrap();
        let (at, work) = (listener.local_addr().unwrap(), Arc::new(work));
        let (connections, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (connections.clone(), stop.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let (stream, work) = (stream.unwrap(), work.clone());
                thread::spawn(move || work(stream));
            }
        });
        Server { at, connections, stop }
    }

    /// Sends back what it gets, and its end when that comes.
    pub(crate) fn echo() -> Server {
        Server::start("127.0.0.1:0", |mut stream| {
            let mut reader = stream.try_clone().unwrap();
            // A client that breaks off is no mistake of the server's.
            let _ = std::io::copy(&mut reader, &mut stream);
            let _ = stream.shutdown(Shutdown::Write);
        })
    }

    /// Says something and hangs up.
    pub(crate) fn says(text: &str) -> Server {
        let text = text.to_owned();
        Server::start("127.0.0.1:0", move |mut stream| drop(stream.write_all(text.as_bytes())))
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // It looks at that when the next connection comes.
        drop(TcpStream::connect(self.at));
    }
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// What comes until the end.
pub(crate) fn hear(mut stream: &TcpStream) -> std::io::Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text).map(|_| text)
}

/// Sends, says that this was all, and hears the answer.
pub(crate) fn ask(to: SocketAddr, text: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    hear(&stream)
}
