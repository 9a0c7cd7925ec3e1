//! Which header fields does a proxy have to know? Their names, found by length first, and what becomes of each.

/// A field whose name matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Connection,
    ContentLength,
    Expect,
    Forwarded,
    Host,
    Te,
    TransferEncoding,
    Upgrade,
    UserAgent,
    XForwardedFor,
    XForwardedPort,
    XForwardedProto,
    /// For one connection only, or never to be passed on: `Keep-Alive`, `Proxy-Connection`, `HTTP2-Settings`, `Proxy` (which
    /// CGI turns into the variable of a proxy's address).
    Dropped,
    Other,
}

impl Name {
    /// What a field of this name is.
    pub(crate) fn of(name: &[u8]) -> Name {
        let found = match name.len() {
            2 => Name::exact(name, &[("te", Name::Te)]),
            4 => Name::exact(name, &[("host", Name::Host)]),
            5 => Name::exact(name, &[("proxy", Name::Dropped)]),
            6 => Name::exact(name, &[("expect", Name::Expect)]),
            7 => Name::exact(name, &[("upgrade", Name::Upgrade)]),
            9 => Name::exact(name, &[("forwarded", Name::Forwarded)]),
            10 => Name::exact(name, &TEN),
            14 => Name::exact(name, &[("content-length", Name::ContentLength), ("http2-settings", Name::Dropped)]),
            15 => Name::exact(name, &[("x-forwarded-for", Name::XForwardedFor)]),
            16 => Name::exact(name, &[("x-forwarded-port", Name::XForwardedPort), ("proxy-connection", Name::Dropped)]),
            17 => Name::exact(
                name,
                &[("transfer-encoding", Name::TransferEncoding), ("x-forwarded-proto", Name::XForwardedProto)],
            ),
            _ => Name::Other,
        };
        if found == Name::Other && disguised(name) { Name::Dropped } else { found }
    }

    fn exact(name: &[u8], among: &[(&str, Name)]) -> Name {
        let same = |(text, _): &&(&str, Name)| name.eq_ignore_ascii_case(text.as_bytes());
        among.iter().find(same).map_or(Name::Other, |(_, found)| *found)
    }

    /// Whether it may be taken away because a `Connection` field names it. What frames a message, or says who sent it, may not.
    pub(crate) fn may_be_named(self) -> bool {
        matches!(self, Name::Other | Name::UserAgent)
    }
}

const TEN: [(&str, Name); 3] =
    [("connection", Name::Connection), ("user-agent", Name::UserAgent), ("keep-alive", Name::Dropped)];

/// Names that servers may take for ours because to them `_` and `-` are one.
const IMITATED: [&str; 5] =
    ["x-forwarded-for", "x-forwarded-port", "x-forwarded-proto", "content-length", "transfer-encoding"];

/// Whether a name is one of ours but for underscores.
fn disguised(name: &[u8]) -> bool {
    if name.len() < 14 || name.len() > 17 || !name.contains(&b'_') {
        return false;
    }
    let plain = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    IMITATED.iter().any(|one| one.len() == name.len() && one.bytes().eq(name.iter().map(plain)))
}

/// The words of a list such as `Connection` has.
pub(crate) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// The length that a `Content-Length` says: digits and nothing else.
pub(crate) fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
