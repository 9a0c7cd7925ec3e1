//! Takes connections from one socket.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use fairlead_kernel::relay;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::listener::Local;
use super::opening;

/// How long nothing is accepted after the kernel could not give a connection, for want of memory or descriptors, or when
/// there are as many as there may be.
const PAUSE: Duration = Duration::from_millis(10);

/// Accepts at an address until it is told to stop, and then what waits in the socket.
pub(super) async fn accept(local: Rc<Local>, at: SocketAddr, socket: std::net::TcpListener, stop: Rc<Notify>) {
    let listener = match TcpListener::from_std(socket) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%at, %error, "a listener cannot be waited for"),
    };
    let mut stopped = pin!(stop.notified());
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = next(&local, &listener) => accepted,
            () = &mut stopped => break,
        };
        match accepted {
            Ok((stream, peer)) => opening::begin(&local, stream, peer, at),
            Err(error) => pause(at, &error).await,
        }
    }
    if let Err(error) = accept_rest(&local, at, listener) {
        tracing::debug!(%at, %error, "the last connections of a listener");
    }
}

async fn next(local: &Local, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    while !local.has_room() {
        if local.make_room() {
            // The connection that was closed ends when its task runs.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
    listener.accept().await
}

async fn pause(at: SocketAddr, error: &io::Error) {
    // A client that left again before it was accepted is no reason to wait.
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) {
        return;
    }
    tracing::warn!(%at, %error, "accepting a connection");
    tokio::time::sleep(PAUSE).await;
}

/// What waits in a socket would be reset with its end.
fn accept_rest(local: &Rc<Local>, at: SocketAddr, listener: TcpListener) -> io::Result<()> {
    let socket = listener.into_std()?;
    while let Some((stream, peer)) = relay::accept(&socket)? {
        opening::begin(local, TcpStream::from_std(stream)?, peer, at);
    }
    Ok(())
}
