//! Tokens of WebSockets: browsers cannot send an Authorization header with one, so the token comes among the protocols.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{HeaderMap, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

use super::Rejection;

/// A protocol that begins so is a token.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// The token of a WebSocket that brings one.
pub(super) fn token(headers: &HeaderMap) -> Result<Option<String>, Rejection> {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !upgrade.eq_ignore_ascii_case("websocket") {
        return Ok(None);
    }
    let mut tokens = offered(headers).filter_map(|protocol| protocol.strip_prefix(PREFIX));
    let Some(token) = tokens.next() else { return Ok(None) };
    // One other protocol must be there, for the answer to name.
    if tokens.next().is_some() || protocols(headers).is_empty() {
        return Err(Rejection::Unknown);
    }
    let decoded = URL_SAFE_NO_PAD.decode(token).map_err(|_| Rejection::Unknown)?;
    let token = String::from_utf8(decoded).map_err(|_| Rejection::Unknown)?;
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// The protocols a client offers, without its token, which is for nobody else.
pub(crate) fn protocols(headers: &HeaderMap) -> Vec<&str> {
    offered(headers).filter(|protocol| !protocol.starts_with(PREFIX)).collect()
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(protocols_sent: &str, want: Result<Option<&str>, ()>, others: &[&str]) {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, "websocket".parse().unwrap());
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocols_sent.parse().unwrap());
        assert_eq!(token(&headers).map_err(drop), want.map(|token| token.map(str::to_owned)), "{protocols_sent}");
        assert_eq!(protocols(&headers), others);
        headers.remove(UPGRADE);
        assert_eq!(token(&headers).map_err(drop), Ok(None), "only WebSockets bring tokens so");
    }

    #[test]
    fn a_token_is_found_among_the_protocols_and_goes_no_further() {
        let sent = format!("{PREFIX}c2VjcmV0");
        check("v5.channel.k8s.io, v4.channel.k8s.io", Ok(None), &["v5.channel.k8s.io", "v4.channel.k8s.io"]);
        check(&format!("{sent}, v4.channel.k8s.io"), Ok(Some("secret")), &["v4.channel.k8s.io"]);
        check(&sent, Err(()), &[]);
        check(&format!("{sent}, a, {sent}"), Err(()), &["a"]);
        check(&format!("{PREFIX}%%, a"), Err(()), &["a"]);
    }
}
