//! A connection that is kept: one request after another on it, and answers that never end, such as watches.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::Client;

type Stream = BufReader<StreamOwned<ClientConnection, TcpStream>>;

/// An open connection. After a mistake it is of no further use: open another.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    fixed_head: String,
}

/// What came back, byte for byte.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The status code.
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Raw {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header's value, looked for without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

impl Client {
    /// Opens a connection. Nothing is waited for longer than `patience`.
    pub fn connect(&self, patience: Duration) -> io::Result<Connection> {
        let socket = TcpStream::connect_timeout(&self.address, patience)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        socket.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        let tls = ClientConnection::new(self.tls.clone(), name).map_err(io::Error::other)?;
        let mut fixed_head = format!("Host: {}\r\n", self.address);
        if !self.token.is_empty() {
            fixed_head += &format!("Authorization: Bearer {}\r\n", self.token);
        }
        Ok(Connection { stream: BufReader::new(StreamOwned::new(tls, socket)), fixed_head })
    }
}

impl Connection {
    /// Sends a request with a body of some media type and waits for the whole answer.
    pub fn send(&mut self, method: &str, path: &str, media: &str, body: &[u8]) -> io::Result<Raw> {
        let headers = format!("Content-Type: {media}\r\nContent-Length: {}\r\n", body.len());
        self.exchange(method, path, &headers, body)
    }

    /// As [`Connection::send`], with headers of your own making, each ended by a line break.
    pub fn exchange(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> io::Result<Raw> {
        let head = format!("{method} {path} HTTP/1.1\r\n{}{headers}\r\n", self.fixed_head);
        self.write(&[head.as_bytes(), body].concat())?;
        self.answer()
    }

    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        // A server may refuse before it has read everything: what it says is then still to be had.
        match stream.write_all(bytes).and_then(|()| stream.flush()) {
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Ok(()),
            result => result,
        }
    }

    /// Reads one answer to its end.
    pub fn answer(&mut self) -> io::Result<Raw> {
        let head = read_head(&mut self.stream)?;
        let status = status(&head)?;
        let mut body = Vec::new();
        if let Some(length) = header(&head, "content-length").and_then(|text| text.parse().ok()) {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        } else if is_chunked(&head) {
            while let Some(chunk) = read_chunk(&mut self.stream)? {
                body.extend_from_slice(&chunk);
            }
        } else if status != 204 && status != 304 {
            self.stream.read_to_end(&mut body)?;
        }
        Ok(Raw { status, head, body })
    }

    /// Begins to follow `path`. An answer other than 200 is given back whole.
    pub fn follow(mut self, path: &str) -> io::Result<Result<Lines, Raw>> {
        self.write(format!("GET {path} HTTP/1.1\r\n{}\r\n", self.fixed_head).as_bytes())?;
        let head = read_head(&mut self.stream)?;
        let status = status(&head)?;
        if status == 200 && is_chunked(&head) {
            return Ok(Ok(Lines { stream: self.stream, rest: Vec::new() }));
        }
        let length = header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Err(Raw { status, head, body }))
    }
}

/// The lines of an answer without end, as they come. Ends with the answer, or with the mistake that broke it.
#[derive(Debug)]
pub struct Lines {
    stream: Stream,
    rest: Vec<u8>,
}

impl Iterator for Lines {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(Ok(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            match read_chunk(&mut self.stream) {
                Ok(Some(chunk)) => self.rest.extend_from_slice(&chunk),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn read_head(stream: &mut Stream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_until(b'\n', &mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).trim_end().to_owned())
}

fn status(head: &str) -> io::Result<u16> {
    let number = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
}

/// `None` after the last one.
fn read_chunk(stream: &mut Stream) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk)?;
    chunk.truncate(size);
    Ok((size > 0).then_some(chunk))
}
