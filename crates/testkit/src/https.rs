//! A small HTTPS client: one request, one connection, one answer. It trusts one authority and nobody else.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub mod connection;

/// Whom to ask.
#[derive(Debug, Clone)]
pub struct Client {
    address: SocketAddr,
    token: String,
    /// Lines of the head beside the usual ones.
    headers: String,
    tls: Arc<ClientConfig>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Client {
    /// A client of the server at `address`, whose certificate is signed by `authority` (PEM). An empty token sends none.
    pub fn new(address: SocketAddr, authority: &[u8], token: &str) -> Client {
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_slice_iter(authority).collect::<Result<Vec<_>, _>>().expect("PEM");
        roots.add_parsable_certificates(found);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the usual protocols")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Client { address, token: token.to_owned(), headers: String::new(), tls: Arc::new(tls) }
    }

    /// The same client with another token.
    pub fn with_token(&self, token: &str) -> Client {
        Client { token: token.to_owned(), ..self.clone() }
    }

    /// The same client with one more header.
    pub fn with_header(&self, name: &str, value: &str) -> Client {
        Client { headers: format!("{}{name}: {value}\r\n", self.headers), ..self.clone() }
    }

    /// Where the server is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks for `path`.
    pub fn get(&self, path: &str) -> io::Result<Answer> {
        self.request("GET", path, "")
    }

    /// Sends a request with a JSON body, which may be empty.
    pub fn request(&self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        let mut stream = self.send(method, path, body)?;
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            // A server that just closes has still answered.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !bytes.is_empty() => {}
            result => drop(result?),
        }
        parse(&bytes).ok_or_else(|| io::Error::other("the answer is not HTTP"))
    }

    /// Hands each line of an endless answer to `each`, until that says `false` or the server ends the answer.
    pub fn watch(&self, path: &str, mut each: impl FnMut(&str) -> bool) -> io::Result<()> {
        let mut stream = BufReader::new(self.send("GET", path, "")?);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the answer has no end to its head"));
            }
        }
        let mut text = Vec::new();
        loop {
            let chunk = read_chunk(&mut stream)?;
            if chunk.is_empty() {
                return Ok(());
            }
            text.extend(chunk);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                if !each(String::from_utf8_lossy(&line).trim_end()) {
                    return Ok(());
                }
            }
        }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> io::Result<Stream> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        request += &self.headers;
        if !self.token.is_empty() {
            request += &format!("Authorization: Bearer {}\r\n", self.token);
        }
        if !body.is_empty() {
            request += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        let socket = TcpStream::connect_timeout(&self.address, Duration::from_secs(10))?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        let name = ServerName::from(self.address.ip());
        let connection = ClientConnection::new(self.tls.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, socket);
        stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
        Ok(stream)
    }
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// One chunk of an answer; empty at its end.
fn read_chunk(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size)?;
    let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk)?;
    chunk.truncate(size);
    Ok(chunk)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &bytes[end + 4..];
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { join_chunks(body)? } else { body.to_vec() };
    Some(Answer { status, head, body: String::from_utf8_lossy(&body).into_owned() })
}

fn join_chunks(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_and_without_chunks() {
        let plain = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("HTTP");
        assert_eq!((plain.status, plain.body.as_str()), (200, "ok"));
        let chunked = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let chunked = parse(chunked).expect("HTTP");
        assert_eq!((chunked.status, chunked.body.as_str()), (404, "abcde"));
        assert_eq!(parse(b"garbage"), None);
    }
}
