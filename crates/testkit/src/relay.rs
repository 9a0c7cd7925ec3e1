//! A TCP relay that can fall silent: a peer behind a network that drops packets.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Passes connections on to another address. Gone with the value that stands for it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    /// Nothing is sent back to clients any more.
    muted: AtomicBool,
    closed: AtomicBool,
    accepted: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Listens at a free port of loopback.
    pub fn start(target: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared {
            target,
            muted: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            streams: Mutex::default(),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                accepting.pass_on(client);
            }
        });
        Relay { address, shared }
    }

    /// Address of the relay's listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of connections so far.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Drops all answers from now on. What clients send still arrives, and connections stay open.
    pub fn mute(&self) {
        self.shared.muted.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn pass_on(self: &Arc<Shared>, client: TcpStream) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
        let Ok(server) = TcpStream::connect(self.target) else { return };
        let again = |stream: &TcpStream| stream.try_clone().expect("a socket can be had twice");
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.extend([again(&client), again(&server)]);
        for (mut from, mut to, answers) in [(again(&client), again(&server), false), (server, client, true)] {
            let shared = self.clone();
            thread::spawn(move || {
                let mut bytes = [0; 16 << 10];
                while let Ok(length @ 1..) = from.read(&mut bytes) {
                    let dropped = answers && shared.muted.load(Ordering::SeqCst);
                    if !dropped && to.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        for stream in self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts, so that it sees the end.
        let _ = TcpStream::connect(self.address);
    }
}
