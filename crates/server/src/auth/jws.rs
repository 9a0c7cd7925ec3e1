//! Signed tokens (JWS in its compact form): three pieces of base64 with dots between. The keys decide how a token must be
//! signed; a token's header only helps to find the key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairlead_api::Look;
use fairlead_api::value::{Value, json};

use super::keys::{Error, SigningKey, VerifyingKey};

/// A token that says these claims.
pub fn sign(key: &SigningKey, claims: &Value) -> Result<String, Error> {
    let header = json!({"alg": key.public.algorithm.name(), "kid": key.public.id});
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut token = format!("{}.{}", text(&header), text(claims));
    let signed = URL_SAFE_NO_PAD.encode(key.sign(token.as_bytes())?);
    token.push('.');
    token.push_str(&signed);
    Ok(token)
}

/// What a token says, if one of the keys signed it.
pub fn verify(keys: &[VerifyingKey], token: &str) -> Option<Value> {
    let (message, signed) = token.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let header = decode(header)?;
    // Extensions that must be understood: there are none we do.
    if header.get("crit").is_some() {
        return None;
    }
    let signed = URL_SAFE_NO_PAD.decode(signed).ok()?;
    let id = header.text_opt("kid");
    keys.iter()
        .filter(|key| key.algorithm.name() == header.text("alg") && id.is_none_or(|id| id == key.id))
        .find(|key| key.verify(message.as_bytes(), &signed))?;
    decode(claims)
}

fn decode(piece: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(piece).ok()?).ok().filter(Value::is_object)
}
