//! The kinds of traffic, and the ports they take.

use clap::ValueEnum;

/// A kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// 64 bytes and 64 back, on 64 connections that stay.
    TcpKeep,
    /// The same with a connection for each.
    TcpConnect,
    /// As much as goes through one connection.
    TcpStream,
    /// Small requests on 64 connections that stay.
    HttpKeep,
    /// Small requests on one connection.
    HttpOne,
    /// A connection for each request.
    HttpClose,
    /// Answers of 1 MiB on 4 connections.
    HttpLarge,
    /// Small requests on 64 connections with TLS that stay.
    TlsKeep,
    /// A connection with a full handshake for each request; the key is P-256.
    TlsClose,
    /// Full handshakes and nothing else; the key is P-256.
    Handshake,
    /// Full handshakes and nothing else; the key is RSA-2048.
    HandshakeRsa,
    /// Answers of 1 MiB on 4 connections with TLS.
    TlsLarge,
    /// HTTP/2 with TLS: 16 connections, 10 requests at a time on each.
    H2,
}

/// Where the backend gives back what it gets.
pub(crate) const ECHO: u16 = 7001;
/// Where it sends without end.
pub(crate) const SOURCE: u16 = 7002;
/// Where it answers requests.
pub(crate) const ANSWERS: u16 = 7003;

/// The ports a load balancer listens at, from the first one on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports(pub(crate) u16);

impl Ports {
    /// To the echo.
    pub(crate) fn echo(self) -> u16 {
        self.0
    }
    /// To the source.
    pub(crate) fn source(self) -> u16 {
        self.0 + 1
    }
    /// HTTP.
    pub(crate) fn http(self) -> u16 {
        self.0 + 2
    }
    /// HTTP in TLS with a P-256 key.
    pub(crate) fn https(self) -> u16 {
        self.0 + 3
    }
    /// HTTP in TLS with an RSA key.
    pub(crate) fn rsa(self) -> u16 {
        self.0 + 4
    }
}

impl Kind {
    /// All of them.
    pub(crate) fn all() -> Vec<Kind> {
        Kind::value_variants().to_vec()
    }

    /// What the table calls it, and what one of it is.
    pub(crate) fn title(self) -> (&'static str, &'static str) {
        match self {
            Kind::TcpKeep => ("TCP, 64 connections that stay", "request"),
            Kind::TcpConnect => ("TCP, a connection a request", "request"),
            Kind::TcpStream => ("TCP, one stream", "MiB"),
            Kind::HttpKeep => ("HTTP, 64 connections that stay", "request"),
            Kind::HttpOne => ("HTTP, one connection", "request"),
            Kind::HttpClose => ("HTTP, a connection a request", "request"),
            Kind::HttpLarge => ("HTTP, bodies of 1 MiB", "request"),
            Kind::TlsKeep => ("TLS, 64 connections that stay", "request"),
            Kind::TlsClose => ("TLS, a handshake a request, P-256", "request"),
            Kind::Handshake => ("TLS, handshakes alone, P-256", "handshake"),
            Kind::HandshakeRsa => ("TLS, handshakes alone, RSA-2048", "handshake"),
            Kind::TlsLarge => ("TLS, bodies of 1 MiB", "request"),
            Kind::H2 => ("HTTP/2 in TLS, 16 x 10 requests", "request"),
        }
    }

    /// The port of a load balancer that it takes.
    pub(crate) fn port(self, ports: Ports) -> u16 {
        match self {
            Kind::TcpKeep | Kind::TcpConnect => ports.echo(),
            Kind::TcpStream => ports.source(),
            Kind::HttpKeep | Kind::HttpOne | Kind::HttpClose | Kind::HttpLarge => ports.http(),
            Kind::TlsKeep | Kind::TlsClose | Kind::Handshake | Kind::TlsLarge | Kind::H2 => ports.https(),
            Kind::HandshakeRsa => ports.rsa(),
        }
    }

    /// How many clients there are.
    pub(crate) fn clients(self) -> usize {
        match self {
            Kind::TcpStream | Kind::HttpOne => 1,
            Kind::HttpLarge | Kind::TlsLarge => 4,
            Kind::TlsClose | Kind::Handshake | Kind::HandshakeRsa | Kind::H2 => 16,
            Kind::TcpKeep | Kind::TcpConnect | Kind::HttpKeep | Kind::HttpClose | Kind::TlsKeep => 64,
        }
    }
}
