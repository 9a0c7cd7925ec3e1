//! The backend: as little work as can be, so that the load balancer is what is measured.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use crate::kinds::{ANSWERS, ECHO, SOURCE};

/// The size of large bodies.
pub(crate) const LARGE: usize = 1 << 20;
/// What is asked for to get one.
pub(crate) const LARGE_PATH: &str = "/large";
/// The size of small ones.
const SMALL: usize = 128;

/// Answers for ever.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        spawn_local(listen(ECHO, async |stream| echo(stream).await));
        spawn_local(listen(SOURCE, async |stream| send(stream).await));
        listen(ANSWERS, async |stream| answer(stream).await).await
    })?;
    Ok(())
}

async fn listen(port: u16, serve: impl AsyncFn(TcpStream) -> io::Result<()> + Copy + 'static) -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that goes away is none of our business.
        spawn_local(async move { drop(serve(stream).await) });
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 4096];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count]).await?,
        }
    }
}

async fn send(mut stream: TcpStream) -> io::Result<()> {
    let bytes = vec![7; 256 * 1024];
    loop {
        stream.write_all(&bytes).await?;
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let (small, large) = (reply(SMALL), reply(LARGE));
    let (mut buffer, mut filled) = (vec![0; 16 * 1024], 0);
    loop {
        let count = stream.read(&mut buffer[filled..]).await?;
        if count == 0 {
            return Ok(());
        }
        filled += count;
        while let Some(end) = end_of_head(&buffer[..filled]) {
            let head = &buffer[..end];
            let large_wanted = head.starts_with(format!("GET {LARGE_PATH} ").as_bytes());
            let close = has_close(head);
            stream.write_all(if large_wanted { &large } else { &small }).await?;
            if close {
                return stream.shutdown().await;
            }
            buffer.copy_within(end..filled, 0);
            filled -= end;
        }
    }
}

/// Where the head of a message ends.
pub(crate) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn has_close(head: &[u8]) -> bool {
    let close = b"connection: close";
    head.split(|byte| *byte == b'\n')
        .any(|line| line.get(..close.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(close)))
}

fn reply(size: usize) -> Vec<u8> {
    let mut reply =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n").into_bytes();
    reply.resize(reply.len() + size, b'x');
    reply
}
