//! What does a request ask for, and of whom? The four forms of a target, and which hosts there may be.

use super::refusal::Refusal;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A path with its query, or `*`.
    Path(&'a str),
    /// A whole URI: the host in it counts, and the path may be empty or begin with the query.
    Absolute { host: &'a str, path: &'a str },
    /// `host:port` of a tunnel.
    Tunnel(&'a str),
}

/// The longest target; longer ones are answered 414.
pub(crate) const LONGEST: usize = 16 << 10;

impl<'a> Target<'a> {
    /// What the target of a request line is.
    pub(crate) fn read(method: &str, text: &'a str) -> Result<Target<'a>, Refusal> {
        if text.len() > LONGEST {
            return Err(Refusal::LONG_TARGET);
        }
        if text.bytes().any(|byte| byte == b'#' || byte <= b' ' || byte == 0x7f) {
            return Err(Refusal::TARGET);
        }
        if method == "CONNECT" {
            return if tunnel(text) { Ok(Target::Tunnel(text)) } else { Err(Refusal::TARGET) };
        }
        if text.starts_with('/') || (text == "*" && method == "OPTIONS") {
            return Ok(Target::Path(text));
        }
        absolute(text).ok_or(Refusal::TARGET)
    }
}

fn absolute(text: &str) -> Option<Target<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    (!host.is_empty() && is_host(host.as_bytes())).then_some(Target::Absolute { host, path })
}

fn tunnel(text: &str) -> bool {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some() && !text.starts_with(':') && is_host(text.as_bytes())
}

/// Whether this may stand in `Host`: a name, an address or one in brackets, and a port. Empty is allowed, as RFC 9110 has it.
pub(crate) fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.strip_prefix(b"[") {
        Some(rest) => match rest.iter().position(|byte| *byte == b']') {
            Some(end) if end > 0 => {
                let inside = rest[..end].iter().all(|byte| byte.is_ascii_hexdigit() || b":.%".contains(byte));
                if !inside {
                    return false;
                }
                (&b""[..], &rest[end + 1..])
            }
            _ => return false,
        },
        None => host.split_at(host.iter().position(|byte| *byte == b':').unwrap_or(host.len())),
    };
    let named = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=".contains(byte);
    let numbered = port.is_empty() || (port[0] == b':' && port.len() <= 6 && port[1..].iter().all(u8::is_ascii_digit));
    name.iter().all(named) && numbered
}

#[cfg(test)]
mod tests;
