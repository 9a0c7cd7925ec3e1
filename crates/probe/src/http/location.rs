//! Where a request goes, and where a redirect leads from there.

use std::fmt;

use crate::{Http, Scheme, dial};

/// A URL in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) scheme: Scheme,
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// With the query; fit for a request line.
    pub(super) path: String,
}

impl Target {
    pub(super) fn of(request: &Http) -> Target {
        let Http { scheme, host, port, path, .. } = request;
        Target { scheme: *scheme, host: host.clone(), port: *port, path: rooted(path) }
    }

    /// `10.0.0.1:80`.
    pub(super) fn authority(&self) -> String {
        dial::joined(&self.host, self.port)
    }

    /// The URL that a Location means from here. `None`: it is none, or not one for HTTP.
    pub(super) fn follow(&self, location: &str) -> Option<Target> {
        let location = location.split('#').next().unwrap_or_default();
        if let Some((scheme, rest)) = absolute(location) {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                _ => return None,
            };
            return elsewhere(scheme, rest);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return elsewhere(self.scheme, rest);
        }
        let path = match location.chars().next() {
            None => self.path.clone(),
            Some('/') => rooted(location),
            Some('?') => rooted(&format!("{}{location}", without_query(&self.path))),
            Some(_) => beside(without_query(&self.path), location),
        };
        Some(Target { path, ..self.clone() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// The scheme of a whole URL, and what follows it; `None` for a relative one.
pub(super) fn absolute(location: &str) -> Option<(&str, &str)> {
    let letters = |scheme: &str| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    location.split_once("://").filter(|(scheme, _)| letters(scheme))
}

/// `host[:port]/path`.
fn elsewhere(scheme: Scheme, rest: &str) -> Option<Target> {
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority: http::uri::Authority = authority.parse().ok()?;
    let (host, text) = (authority.host(), authority.as_str());
    let behind = &text[text.rfind('@').map_or(0, |at| at + 1) + host.len()..];
    let port = match (behind, scheme) {
        ("" | ":", Scheme::Http) => 80,
        ("" | ":", Scheme::Https) => 443,
        (port, _) => port.strip_prefix(':')?.parse().ok()?,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() {
        return None;
    }
    Some(Target { scheme, host, port, path: rooted(path) })
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// A path relative to another, with `.` and `..` resolved.
fn beside(path: &str, location: &str) -> String {
    let (relative, query) = location.split_at(location.find('?').unwrap_or(location.len()));
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    rooted(&format!("{}{query}", parts.join("/")))
}

/// A path that begins with a slash and has nothing in it that would end a request line.
fn rooted(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let mut out = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        out.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => out.push_str(&format!("%{byte:02X}")),
            0x21..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests;
