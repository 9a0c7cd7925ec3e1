//! A check as people write it in a flag or an annotation: `http:/healthz`, `https:8443/`, `tcp`, `grpc:my.Service`, `exec:CMD`.

use std::fmt;
use std::str::FromStr;

use crate::{Check, Http, Scheme};

/// A check of something whose address is known elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// A request.
    Http {
        /// With TLS or without.
        scheme: Scheme,
        /// Another port than the one that is served.
        port: Option<u16>,
        /// The path.
        path: String,
    },
    /// A connection.
    Tcp {
        /// Another port than the one that is served.
        port: Option<u16>,
    },
    /// The gRPC health protocol.
    Grpc {
        /// The service; empty for the server as a whole.
        service: String,
    },
    /// A command, for a shell.
    Exec(String),
}

/// A text that is no check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no check; write http:/PATH, https:/PATH, tcp, grpc, grpc:SERVICE or exec:COMMAND, with another port as http:PORT/PATH or tcp:PORT"
)]
pub struct Unreadable(pub String);

impl FromStr for Wish {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Wish, Unreadable> {
        let wrong = || Unreadable(text.to_owned());
        let port = |port: &str| match port {
            "" => Ok(None),
            port => port.parse().ok().filter(|port| *port > 0).map(Some).ok_or_else(wrong),
        };
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match kind {
            "http" | "https" => {
                let (number, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let scheme = if kind == "https" { Scheme::Https } else { Scheme::Http };
                let path = if path.is_empty() { "/" } else { path };
                Ok(Wish::Http { scheme, port: port(number)?, path: path.to_owned() })
            }
            "tcp" => Ok(Wish::Tcp { port: port(rest)? }),
            "grpc" => Ok(Wish::Grpc { service: rest.to_owned() }),
            "exec" if !rest.trim().is_empty() => Ok(Wish::Exec(rest.to_owned())),
            _ => Err(wrong()),
        }
    }
}

/// As it is written.
impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = |port: &Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
        match self {
            Wish::Http { scheme: Scheme::Http, port: number, path } => write!(f, "http:{}{path}", port(number)),
            Wish::Http { scheme: Scheme::Https, port: number, path } => write!(f, "https:{}{path}", port(number)),
            Wish::Tcp { port: None } => f.write_str("tcp"),
            Wish::Tcp { port: Some(port) } => write!(f, "tcp:{port}"),
            Wish::Grpc { service } if service.is_empty() => f.write_str("grpc"),
            Wish::Grpc { service } => write!(f, "grpc:{service}"),
            Wish::Exec(command) => write!(f, "exec:{command}"),
        }
    }
}

impl Wish {
    /// The check of an address, and of the port that is served there. `None`: it is a command, or there is no port.
    pub fn check(&self, host: &str, served: Option<u16>) -> Option<Check> {
        let host = host.to_owned();
        match self {
            Wish::Http { scheme, port, path } => {
                let (port, path) = (port.or(served)?, path.clone());
                Some(Check::Http(Http { scheme: *scheme, host, port, path, headers: Vec::new() }))
            }
            Wish::Tcp { port } => Some(Check::Tcp { host, port: port.or(served)? }),
            Wish::Grpc { service } => Some(Check::Grpc { host, port: served?, service: service.clone() }),
            Wish::Exec(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
