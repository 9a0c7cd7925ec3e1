//! Servers that do what the first byte of a connection says.
//!
//! ```text
//! r  answers every 64 bytes with as many, until the end
//! d  sends as many bytes as the next eight say
//! u  takes bytes until the end, then answers one
//! ```

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use fairlead_kernel::relay;

use crate::subject::PORTS;
use crate::world::{SERVERS, World};

/// Each serves as many at a time as there are clients.
const THREADS: usize = 10;
/// The size of a small message.
pub(crate) const SMALL: usize = 64;
/// How much is written or read at once.
pub(crate) const LARGE: usize = 256 << 10;

/// Connections that are held until they are dropped.
pub(crate) type Held = Arc<Mutex<Vec<TcpStream>>>;

/// Starts them; they run until the program ends.
pub(crate) fn start(world: &World) -> anyhow::Result<Held> {
    let held = Held::default();
    for server in SERVERS {
        let listen = |port: u16| world.servers.run(move || listen(SocketAddr::new(server.parse()?, 8000 + port)));
        let listener = Arc::new(listen(PORTS[0])??);
        for _ in 0..THREADS {
            let listener = listener.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    serve(stream);
                }
            });
        }
        let (listener, held) = (listen(PORTS[1])??, held.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                held.lock().expect("nobody panics with it").push(stream);
            }
        });
    }
    Ok(held)
}

/// With room for many that wait, unlike std's.
fn listen(at: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = relay::listen(at)?;
    listener.set_nonblocking(false)?;
    Ok(listener)
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let mut kind = [0];
    stream.set_nodelay(true).ok()?;
    let mut message = [0; SMALL];
    stream.read_exact(&mut message).ok()?;
    kind.copy_from_slice(&message[..1]);
    match kind {
        [b'r'] => loop {
            stream.write_all(&message).ok()?;
            stream.read_exact(&mut message).ok()?;
        },
        [b'd'] => {
            let mut left = u64::from_ne_bytes(message[1..9].try_into().ok()?);
            let piece = vec![0; LARGE];
            while left > 0 {
                let now = left.min(LARGE as u64);
                stream.write_all(&piece[..usize::try_from(now).ok()?]).ok()?;
                left -= now;
            }
        }
        _ => {
            let mut piece = vec![0; LARGE];
            while stream.read(&mut piece).ok()? > 0 {}
            stream.write_all(&[0]).ok()?;
        }
    }
    Some(())
}
