//! Clients: short connections, small requests on long ones, and much at a time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::server::{LARGE, SMALL};
use crate::subject::PORTS;
use crate::world::{VIP, World};

/// How many there are at a time.
const CLIENTS: u64 = 8;
/// How many send much.
const BULK: u64 = 4;

/// Connections of one request each; how many there were.
pub(crate) fn connections(world: &World, time: Duration) -> anyhow::Result<u64> {
    let end = Instant::now() + time;
    together(world, CLIENTS, || {
        let mut count = 0;
        while Instant::now() < end {
            let mut stream = TcpStream::connect((VIP, PORTS[0]))?;
            request(&mut stream)?;
            count += 1;
        }
        Ok(count)
    })
}

/// Requests on connections that stay; how many there were.
pub(crate) fn requests(world: &World, time: Duration) -> anyhow::Result<u64> {
    let end = Instant::now() + time;
    together(world, CLIENTS, || {
        let mut stream = TcpStream::connect((VIP, PORTS[0]))?;
        stream.set_nodelay(true)?;
        let mut count = 0;
        while Instant::now() < end {
            request(&mut stream)?;
            count += 1;
        }
        Ok(count)
    })
}

fn request(stream: &mut TcpStream) -> io::Result<()> {
    let mut message = [0; SMALL];
    message[0] = b'r';
    stream.write_all(&message)?;
    stream.read_exact(&mut message)
}

/// Takes so many bytes.
pub(crate) fn download(world: &World, bytes: u64) -> anyhow::Result<u64> {
    together(world, BULK, || {
        let mut stream = TcpStream::connect((VIP, PORTS[0]))?;
        let mut message = [0; SMALL];
        message[0] = b'd';
        message[1..9].copy_from_slice(&(bytes / BULK).to_ne_bytes());
        stream.write_all(&message)?;
        let (mut piece, mut got) = (vec![0; LARGE], 0);
        loop {
            match stream.read(&mut piece)? {
                0 => return Ok(got),
                read => got += read as u64,
            }
        }
    })
}

/// Sends so many bytes.
pub(crate) fn upload(world: &World, bytes: u64) -> anyhow::Result<u64> {
    together(world, BULK, || {
        let mut stream = TcpStream::connect((VIP, PORTS[0]))?;
        stream.write_all(&[b'u'; SMALL])?;
        let (piece, mut sent) = (vec![0; LARGE], 0);
        while sent < bytes / BULK {
            stream.write_all(&piece)?;
            sent += LARGE as u64;
        }
        stream.shutdown(Shutdown::Write)?;
        stream.read_exact(&mut [0])?;
        Ok(sent)
    })
}

/// Connections without a byte.
pub(crate) fn hold(world: &World, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let open = || (0..count).map(|_| TcpStream::connect((VIP, PORTS[1]))).collect::<io::Result<Vec<_>>>();
    Ok(world.client.run(open)??)
}

fn together(world: &World, clients: u64, work: impl Fn() -> io::Result<u64> + Sync) -> anyhow::Result<u64> {
    let all = world.client.run(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..clients).map(|_| scope.spawn(&work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a client panicked")).sum::<io::Result<u64>>()
        })
    })?;
    Ok(all?)
}
