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
    /// A field by which a front names its client or the original request, such as `X-Real-IP`: kept
    /// from trusted fronts, dropped from all other clients.
    Vouched,
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
        match found {
            Name::Other if vouches(name) => Name::Vouched,
            Name::Other if disguised(name) => Name::Dropped,
            found => found,
        }
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

/// Prefix of a family of fields by which fronts describe the original request: `X-Forwarded-Host`,
/// `-Server`, `-Prefix`, `-Ssl` and others.
const X_FORWARDED: &[u8] = b"x-forwarded";

/// Other fields by which fronts tell the address of a client, and by which servers, frameworks and
/// their access rules believe them.
const VOUCHED: [&str; 10] = [
    "x-real-ip",
    "client-ip",
    "x-client-ip",
    "forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-envoy-external-address",
];

/// True if a field names the client of a front. Few fields begin with these letters, so most cost
/// the comparison of one byte.
fn vouches(name: &[u8]) -> bool {
    match name.first() {
        Some(b'x' | b'X' | b'c' | b'C' | b't' | b'T' | b'f' | b'F') => {}
        _ => return false,
    }
    name.get(..X_FORWARDED.len()).is_some_and(|start| start.eq_ignore_ascii_case(X_FORWARDED))
        || VOUCHED.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

const TEN: [(&str, Name); 3] =
    [("connection", Name::Connection), ("user-agent", Name::UserAgent), ("keep-alive", Name::Dropped)];

/// The longest name that is compared with others as it reads without underscores.
const LONGEST_DISGUISE: usize = 32;

/// True if a name is one that frames a message or says who sent it, but for underscores: servers
/// that make variables of fields, as CGI does, take `_` and `-` for one.
fn disguised(name: &[u8]) -> bool {
    let mut plain = [0; LONGEST_DISGUISE];
    let Some(plain) = plain.get_mut(..name.len()).filter(|_| name.contains(&b'_')) else { return false };
    plain.copy_from_slice(name);
    plain.iter_mut().filter(|byte| **byte == b'_').for_each(|byte| *byte = b'-');
    matches!(
        Name::of(plain),
        Name::XForwardedFor
            | Name::XForwardedPort
            | Name::XForwardedProto
            | Name::ContentLength
            | Name::TransferEncoding
            | Name::Vouched
    )
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
