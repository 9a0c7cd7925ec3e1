//! What does a component of this machine say of itself? Asks small HTTP servers, and tells them something.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long a page may take, and how long it may be.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: usize = 64 << 20;

/// The page at a path of the server at `address`.
pub(crate) async fn get(address: &str, path: &str) -> anyhow::Result<Bytes> {
    within(address, ask(address, http::Request::get(path).body(Full::default())?)).await
}

/// Sends JSON to a path of the server at `address`.
pub(crate) async fn post(address: &str, path: &str, body: String) -> anyhow::Result<()> {
    let request = http::Request::post(path).header(CONTENT_TYPE, "application/json").body(Full::from(body))?;
    within(address, ask(address, request)).await.map(drop)
}

async fn within<T>(address: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, work).await.with_context(|| format!("{address} does not answer"))?
}

async fn ask(address: &str, mut request: http::Request<Full<Bytes>>) -> anyhow::Result<Bytes> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("nobody is at {address}"))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    request.headers_mut().insert(HOST, address.parse()?);
    let path = request.uri().path().to_owned();
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    ensure!(status.is_success(), "http://{address}{path} answers {status}");
    let body = Limited::new(answer.into_body(), LONGEST).collect().await.map_err(|error| anyhow!(error))?;
    Ok(body.to_bytes())
}
