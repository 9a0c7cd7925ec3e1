//! HTTP/1.1 over TLS on one connection, as little of it as the load needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// Where a server is, and who asks.
#[derive(Debug, Clone)]
pub struct Target {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// The bearer token.
    pub token: String,
}

/// A connection.
pub struct Client {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: String,
}

/// An answer.
pub struct Answer {
    /// The HTTP code.
    pub code: u16,
    /// What came with it.
    pub body: Vec<u8>,
}

/// No answer of a sound server takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// Connects.
    pub fn connect(target: &Target) -> anyhow::Result<Client> {
        let socket = TcpStream::connect(("127.0.0.1", target.port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from("127.0.0.1").context("an address is a server name")?;
        let connection = ClientConnection::new(Arc::new(tls()?), name)?;
        let stream = BufReader::with_capacity(64 * 1024, StreamOwned::new(connection, socket));
        Ok(Client { stream, token: target.token.clone() })
    }

    /// Sends a request and reads the whole answer.
    pub fn request(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        let head = self.send(method, path, body)?;
        let mut body = Vec::new();
        match head.length {
            Length::Known(bytes) => {
                body.resize(bytes, 0);
                self.stream.read_exact(&mut body)?;
            }
            Length::Chunked => while self.chunk(&mut body)? {},
        }
        Ok(Answer { code: head.code, body })
    }

    /// The same, for a request that must succeed.
    pub fn expect(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        let answer = self.request(method, path, body)?;
        ensure!(answer.code < 300, "{method} {path}: {} {}", answer.code, String::from_utf8_lossy(&answer.body));
        Ok(answer)
    }

    /// Sends a watch and turns the connection into its lines.
    pub fn watch(mut self, path: &str) -> anyhow::Result<Lines> {
        let head = self.send("GET", path, b"")?;
        ensure!(head.code == 200, "watch {path}: {}", head.code);
        ensure!(matches!(head.length, Length::Chunked), "a watch is sent in chunks");
        Ok(Lines { client: self, buffer: Vec::new() })
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Head> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nUser-Agent: bench/1.0\r\n\
             Accept: application/json\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        self.stream.get_mut().flush()?;
        self.head()
    }

    fn head(&mut self) -> anyhow::Result<Head> {
        let status = self.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok()).context("an HTTP status line")?;
        let mut length = Length::Known(0);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                return Ok(Head { code, length });
            }
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = Length::Known(bytes.trim().parse()?);
            } else if line.starts_with("transfer-encoding:") && line.contains("chunked") {
                length = Length::Chunked;
            }
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the server closed the connection");
        }
        Ok(line.trim_end().to_owned())
    }

    /// Appends the next chunk; false after the last.
    fn chunk(&mut self, body: &mut Vec<u8>) -> anyhow::Result<bool> {
        let size = usize::from_str_radix(self.line()?.split(';').next().unwrap_or_default(), 16)?;
        let start = body.len();
        body.resize(start + size, 0);
        self.stream.read_exact(&mut body[start..])?;
        self.line()?;
        Ok(size > 0)
    }
}

/// The lines of a watch.
pub struct Lines {
    client: Client,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next line; an error when the watch ends.
    pub fn line(&mut self) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                return Ok(std::mem::replace(&mut self.buffer, rest));
            }
            ensure!(self.client.chunk(&mut self.buffer)?, "the watch ended");
        }
    }
}

struct Head {
    code: u16,
    length: Length,
}

enum Length {
    Known(usize),
    Chunked,
}

fn tls() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let anyone = Arc::new(Anyone(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(anyone)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Takes any certificate: both servers make one for themselves, and what is measured is not who they are.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
