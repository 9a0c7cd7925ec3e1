//! Acting as somebody else: the `Impersonate-*` headers, each of which the sender needs the verb `impersonate` for.

use std::collections::BTreeMap;

use fairlead_api::{Failure, names};
use http::HeaderMap;

use super::rbac::{Attributes, Decision, Target, forbidden};
use super::{ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, UNAUTHENTICATED, User, service_account};

const GROUP: &str = "authentication.k8s.io";
const EXTRA: &str = "impersonate-extra-";

/// One thing the sender wants to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    User(String),
    ServiceAccount { namespace: String, name: String },
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

/// Whom the sender wants to act as; `None` when it is themselves. `authorize` is asked for each header.
pub fn impersonate(
    headers: &HeaderMap,
    sender: &User,
    authorize: impl Fn(&User, &Attributes<'_>) -> Decision,
) -> Result<Option<User>, Failure> {
    let wishes = wishes(headers);
    check_size(&wishes)?;
    let Some(first) = wishes.first() else { return Ok(None) };
    if !matches!(first, Wish::User(_) | Wish::ServiceAccount { .. }) {
        let list: Vec<String> = wishes.iter().map(Wish::reference).collect();
        return Err(Failure::bad_request(format!("requested [{}] without impersonating a user", list.join(" "))));
    }
    for wish in &wishes {
        let attributes = Attributes { verb: "impersonate", target: wish.target() };
        if let Decision::Deny { reason } = authorize(sender, &attributes) {
            return Err(forbidden(sender, &attributes, &reason));
        }
    }
    Ok(Some(become_user(wishes)))
}

impl Wish {
    fn target(&self) -> Target<'_> {
        let (group, resource, subresource, namespace, name) = match self {
            Wish::User(name) => ("", "users", "", "", name),
            Wish::ServiceAccount { namespace, name } => ("", "serviceaccounts", "", namespace.as_str(), name),
            Wish::Group(name) => ("", "groups", "", "", name),
            Wish::Extra { key, value } => (GROUP, "userextras", key.as_str(), "", value),
            Wish::Uid(uid) => (GROUP, "uids", "", "", uid),
        };
        Target::Resource { group, resource, subresource, namespace, name }
    }

    /// The wish as messages print it: kind, namespace, name, uid, apiVersion, resourceVersion, fieldPath.
    fn reference(&self) -> String {
        let (kind, namespace, name, version, path) = match self {
            Wish::User(name) => ("User", "", name.as_str(), "", ""),
            Wish::ServiceAccount { namespace, name } => ("ServiceAccount", namespace.as_str(), name.as_str(), "", ""),
            Wish::Group(name) => ("Group", "", name.as_str(), "", ""),
            Wish::Extra { key, value } => ("UserExtra", "", value.as_str(), "authentication.k8s.io/v1", key.as_str()),
            Wish::Uid(uid) => ("UID", "", uid.as_str(), "authentication.k8s.io/v1", ""),
        };
        format!("{{{kind} {namespace} {name}  {version}  {path}}}")
    }
}

/// Maximum number of identities that a request may ask for. Each is looked up in all roles.
const MAX_WISHES: usize = 256;
/// Maximum length in bytes of one of them.
const MAX_LENGTH: usize = 1 << 10;

fn check_size(wishes: &[Wish]) -> Result<(), Failure> {
    if wishes.len() > MAX_WISHES {
        let given = wishes.len();
        return Err(Failure::bad_request(format!("{given} Impersonate-* headers, at most {MAX_WISHES} are read")));
    }
    let long = |wish: &Wish| match wish {
        Wish::User(text) | Wish::Group(text) | Wish::Uid(text) => text.len() > MAX_LENGTH,
        Wish::ServiceAccount { namespace, name } => namespace.len().max(name.len()) > MAX_LENGTH,
        Wish::Extra { key, value } => key.len().max(value.len()) > MAX_LENGTH,
    };
    match wishes.iter().any(long) {
        true => Err(Failure::bad_request(format!("an Impersonate-* header has more than {MAX_LENGTH} bytes"))),
        false => Ok(()),
    }
}

/// What the headers ask for, the user first.
fn wishes(headers: &HeaderMap) -> Vec<Wish> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut wishes = Vec::new();
    if let Some(name) = headers.get("impersonate-user").map(text).filter(|name| !name.is_empty()) {
        wishes.push(match account(&name) {
            Some((namespace, name)) => Wish::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() },
            None => Wish::User(name),
        });
    }
    wishes.extend(headers.get_all("impersonate-group").iter().map(|group| Wish::Group(text(group))));
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            wishes.push(Wish::Extra { key: unescape(key), value: text(value) });
        }
    }
    wishes.extend(headers.get("impersonate-uid").map(text).filter(|uid| !uid.is_empty()).map(Wish::Uid));
    wishes
}

fn become_user(wishes: Vec<Wish>) -> User {
    let mut user = User::default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let groups_named = wishes.iter().any(|wish| matches!(wish, Wish::Group(_)));
    for wish in wishes {
        match wish {
            Wish::User(name) => user.name = name,
            Wish::ServiceAccount { namespace, name } => {
                user.name = service_account::user_name(&namespace, &name);
                if !groups_named {
                    user.groups = service_account::groups(&namespace);
                }
            }
            Wish::Group(name) => user.groups.push(name),
            Wish::Extra { key, value } => extra.entry(key).or_default().push(value),
            Wish::Uid(uid) => user.uid = uid,
        }
    }
    user.extra = extra;
    let has = |group: &str| user.groups.iter().any(|g| g == group);
    let missing = match user.name.as_str() {
        ANONYMOUS => (!has(UNAUTHENTICATED)).then_some(UNAUTHENTICATED),
        _ => (!has(AUTHENTICATED) && !has(UNAUTHENTICATED)).then_some(AUTHENTICATED),
    };
    user.groups.extend(missing.map(str::to_owned));
    user
}

/// Namespace and name out of the user name of a ServiceAccount.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let good = names::label(namespace).is_empty() && names::subdomain(name).is_empty();
    good.then_some((namespace, name))
}

/// Decodes `%2f` and the like; a key that is not well encoded stays as it is.
fn unescape(key: &str) -> String {
    let bytes = key.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at] != b'%' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let Some(byte) = key.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
            return key.to_owned();
        };
        out.push(byte);
        at += 3;
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}
