//! A client of HTTP/2.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use tokio::net::TcpStream;

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub(crate) async fn connect(to: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(to).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    send
}

pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

pub(crate) async fn ask(
    send: &SendRequest<Bytes>,
    request: Request<()>,
    body: Option<Vec<u8>>,
) -> Result<Heard, h2::Error> {
    let mut send = send.clone().ready().await?;
    let (response, mut stream) = send.send_request(request, body.is_none())?;
    if let Some(body) = body {
        stream.send_data(Bytes::from(body), true)?;
    }
    let (parts, mut from) = response.await?.into_parts();
    let mut heard = Vec::new();
    while let Some(data) = from.data().await {
        let data = data?;
        from.flow_control().release_capacity(data.len())?;
        heard.extend_from_slice(&data);
    }
    let trailers = from.trailers().await?;
    Ok(Heard { status: parts.status.as_u16(), headers: parts.headers, body: heard, trailers })
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("http://web.example{path}")).body(()).unwrap()
}

pub(crate) fn post(path: &str) -> Request<()> {
    Request::post(format!("http://web.example{path}")).header("te", "trailers").body(()).unwrap()
}
