//! Connections that leave nothing behind, and what is said when there are none.

use std::io;
use std::net::IpAddr;

use tokio::net::TcpStream;

/// A TCP connection that is reset when dropped: a look a second at a hundred ports must not leave thousands of connections in
/// TIME_WAIT, and their entries in the connection tracking table.
pub(crate) async fn tcp(host: String, port: u16) -> io::Result<TcpStream> {
    let stream = match host.parse::<IpAddr>() {
        Ok(ip) => TcpStream::connect((ip, port)).await?,
        Err(_) => TcpStream::connect((host.as_str(), port)).await?,
    };
    stream.set_zero_linger()?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// `10.0.0.1:80`, `[fd00::1]:80`.
pub(crate) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Why there is no connection: `dial tcp 10.0.0.1:80: connect: connection refused`.
pub(crate) fn told(host: &str, port: u16, error: &io::Error) -> String {
    let call = if error.raw_os_error().is_some() { "connect: " } else { "" };
    format!("dial tcp {}: {call}{}", joined(host, port), plain(error))
}

/// An error without its number and in lower case.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
