//! HTTP/2: one connection with several requests at a time.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::try_join_all;
use h2::client::{self, SendRequest};
use http::Request;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_local};
use tokio_rustls::client::TlsStream;

use super::Notes;

/// A connection.
pub(super) struct Multiplexed {
    sender: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// Requests at a time.
const STREAMS: usize = 10;

impl Multiplexed {
    pub(super) async fn new(stream: TlsStream<TcpStream>) -> io::Result<Multiplexed> {
        let (sender, connection) = client::handshake(stream).await.map_err(io::Error::other)?;
        let driver = spawn_local(async move { drop(connection.await) });
        Ok(Multiplexed { sender, driver })
    }

    /// Asks until the time is over.
    pub(super) async fn work(&self, notes: &Notes) -> io::Result<()> {
        let one = || async {
            while notes.goes_on() {
                self.ask(notes).await.map_err(io::Error::other)?;
            }
            Ok::<_, io::Error>(())
        };
        try_join_all((0..STREAMS).map(|_| one())).await.map(drop)
    }

    async fn ask(&self, notes: &Notes) -> Result<(), h2::Error> {
        let since = Instant::now();
        let mut sender = self.sender.clone().ready().await?;
        let request = Request::get("https://bench.example/").body(()).expect("a request");
        let (answer, _) = sender.send_request(request, true)?;
        let mut body = answer.await?.into_body();
        while let Some(part) = body.data().await {
            body.flow_control().release_capacity(part?.len())?;
        }
        notes.done(since);
        Ok(())
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
