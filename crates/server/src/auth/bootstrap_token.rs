//! Tokens by which machines join, as Kubernetes has them: `abcdef.0123456789abcdef`, kept in a Secret of `kube-system`. Whoever
//! has one is in a group that may ask for the certificate of a Node, and nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::value::{Value, json};
use fairlead_api::{Look, kinds};
use jiff::Timestamp;

use super::{Objects, Rejection, User};

#[cfg(test)]
mod tests;

/// The group of machines that want to join.
pub const GROUP: &str = "system:bootstrappers";
/// The type of the Secrets.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Where the Secrets are.
pub const NAMESPACE: &str = "kube-system";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// The two halves of a token, if it has the form of one.
pub fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let fine = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (fine(id, ID_LENGTH) && fine(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// A token nobody can guess.
pub fn generate() -> Result<String, ring::error::Unspecified> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = [0u8; ID_LENGTH + SECRET_LENGTH];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)?;
    let text: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    Ok(format!("{}.{}", &text[..ID_LENGTH], &text[ID_LENGTH..]))
}

/// The name of the Secret of a token.
pub fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// The Secret of a token, for whoever is to make it.
pub fn secret(id: &str, secret: &str) -> Value {
    let encoded = |text: &str| STANDARD.encode(text);
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(id), "namespace": NAMESPACE},
        "type": SECRET_TYPE,
        "data": {
            "token-id": encoded(id),
            "token-secret": encoded(secret),
            "usage-bootstrap-authentication": encoded("true"),
            "description": encoded("lets machines join this cluster"),
        },
    })
}

/// Whose token it is. `None`: it has not the form of one.
pub(super) async fn identify(token: &str, objects: &dyn Objects, now: Timestamp) -> Option<Result<User, Rejection>> {
    let (id, given) = parse(token)?;
    let found = objects.find(&kinds::SECRET, NAMESPACE, &secret_name(id)).await;
    Some(match found {
        Ok(Some(found)) => known(&found, id, given, now).ok_or(Rejection::Unknown),
        Ok(None) => Err(Rejection::Unknown),
        Err(failure) => Err(Rejection::Store(failure.message)),
    })
}

fn known(object: &Value, id: &str, given: &str, now: Timestamp) -> Option<User> {
    let data = object.at("data");
    let field = |name: &str| {
        let bytes = STANDARD.decode(data.text(name)).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    };
    let right = object.text("type") == SECRET_TYPE
        && object.at("metadata").text("deletionTimestamp").is_empty()
        && field("token-id") == id
        && same(&field("token-secret"), given)
        && field("usage-bootstrap-authentication") == "true";
    let expiration = field("expiration");
    // What cannot be read does not hold for ever.
    let over = !expiration.is_empty() && expiration.parse::<Timestamp>().map_or(true, |end| end <= now);
    if !right || over {
        return None;
    }
    let further = field("auth-extra-groups");
    let further = further.split(',').filter(|group| group.starts_with("system:bootstrappers:")).map(str::to_owned);
    let groups = [GROUP.to_owned()].into_iter().chain(further).collect();
    Some(User { name: format!("system:bootstrap:{id}"), groups, ..User::default() })
}

/// Compares digests: how long that takes says nothing about the secret.
fn same(one: &str, other: &str) -> bool {
    let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest(one).as_ref() == digest(other).as_ref()
}
