//! What is the signature of a request to an object store? AWS Signature Version 4. Pure: the time is passed in.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ring::{digest, hmac};

#[cfg(test)]
mod tests;

/// Who signs, and for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signer<'a> {
    pub access_key: &'a str,
    pub secret_key: &'a str,
    pub region: &'a str,
    pub service: &'a str,
}

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub method: &'a str,
    /// Encoded, as it is sent.
    pub path: &'a str,
    /// Encoded and sorted; may be empty.
    pub query: &'a str,
    /// Names in lower case and sorted; values without blanks around them.
    pub headers: &'a [(&'a str, &'a str)],
    /// SHA-256 of the body, in hexadecimal.
    pub body: &'a str,
}

/// A time as headers have it: `20130524T000000Z`.
pub(super) fn date(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// SHA-256 in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// A path as signatures want it: every byte but letters, digits and `-._~/` as `%XX`.
pub(super) fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

impl Signer<'_> {
    /// The value of the header `Authorization`.
    pub(super) fn authorization(&self, request: &Request<'_>, date: &str) -> String {
        let Signer { access_key, region, service, .. } = self;
        let day = date.get(..8).unwrap_or_default();
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let canonical = request.canonical(&names);
        let signed = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hash(canonical.as_bytes()));
        let signature = hex(mac(&self.key(day), signed.as_bytes()).as_ref());
        format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}")
    }

    fn key(&self, day: &str) -> Vec<u8> {
        let first = format!("AWS4{}", self.secret_key).into_bytes();
        [day, self.region, self.service, "aws4_request"]
            .iter()
            .fold(first, |key, part| mac(&key, part.as_bytes()).as_ref().to_vec())
    }
}

impl Request<'_> {
    fn canonical(&self, names: &str) -> String {
        let Request { method, path, query, headers, body } = self;
        let mut text = format!("{method}\n{path}\n{query}\n");
        for (name, value) in *headers {
            let _ = writeln!(text, "{name}:{value}");
        }
        let _ = write!(text, "\n{names}\n{body}");
        text
    }
}

fn mac(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
