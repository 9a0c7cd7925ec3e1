//! What a URL asks for: an object, a list, a part of an object, a document. Pure: method and path in, [`Route`] out.

use fairlead_api::{Failure, Kind};
use http::Uri;

/// What a path names.
#[derive(Debug, PartialEq)]
pub(crate) enum Route {
    /// Objects of a kind.
    Resource(Target),
    /// `/api`, `/apis` and below: what is served.
    Discovery(Discovery),
    /// A resource of a group and version we serve, but not one we know.
    UnknownResource,
    /// Everything else: `/healthz`, `/version`, `/openapi/v3`.
    Path(String),
}

/// The discovery documents.
#[derive(Debug, PartialEq)]
pub(crate) enum Discovery {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Version(String, String),
}

/// Objects of a kind, or one of them, or a part of one.
#[derive(Debug, PartialEq, Clone)]
pub(crate) struct Target {
    /// The kind.
    pub(crate) kind: &'static Kind,
    /// Empty: all namespaces, or a kind without them.
    pub(crate) namespace: String,
    /// Empty: all objects.
    pub(crate) name: String,
    /// Empty: the object itself.
    pub(crate) subresource: String,
    /// What follows the subresource (`proxy/PATH`), with its leading slash.
    pub(crate) rest: String,
    /// The old `/watch/` form of the path.
    pub(crate) watch: bool,
}

/// Maximum length in bytes of a path with its query. kube-apiserver takes 1 MiB of header; no
/// client of ours needs 8 KiB.
const MAX_URL: usize = 32 << 10;

/// 414 for a URL that is too long.
pub(crate) fn check_length(uri: &Uri) -> Result<(), Failure> {
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if length <= MAX_URL {
        return Ok(());
    }
    let message = format!("the URL has {length} bytes, at most {MAX_URL} are read");
    Err(Failure::new(414, "RequestURITooLong", message))
}

/// Finds what a (percent-decoded) path names among these kinds.
pub(crate) fn route(path: &str, kinds: &[&'static Kind]) -> Route {
    let trimmed = path.trim_end_matches('/');
    let parts: Vec<&str> = trimmed.split('/').skip(1).collect();
    match parts[..] {
        ["api"] => Route::Discovery(Discovery::Core),
        ["apis"] => Route::Discovery(Discovery::Groups),
        ["apis", group] if kinds.iter().any(|k| k.group == group) => {
            Route::Discovery(Discovery::Group(group.to_owned()))
        }
        ["api", version, ref rest @ ..] => versioned("", version, rest, path, kinds),
        ["apis", group, version, ref rest @ ..] if kinds.iter().any(|k| k.group == group) => {
            versioned(group, version, rest, path, kinds)
        }
        _ => Route::Path(path.to_owned()),
    }
}

fn versioned(group: &str, version: &str, rest: &[&str], path: &str, kinds: &[&'static Kind]) -> Route {
    if !kinds.iter().any(|k| k.group == group && k.version == version) {
        return Route::UnknownResource;
    }
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let find = |resource: &str| {
        kinds.iter().copied().find(|k| k.group == group && k.version == version && k.resource == resource)
    };
    let (namespace, resource, rest) = match *rest {
        [] => return Route::Discovery(Discovery::Version(group.to_owned(), version.to_owned())),
        // `namespaces/NAME/status` is the namespace's own; every other third part is a resource in it.
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            return target(find("namespaces"), "", &[name, sub], path, watch);
        }
        ["namespaces", namespace, resource, ref rest @ ..] => (namespace, resource, rest),
        [resource, ref rest @ ..] => ("", resource, rest),
    };
    // `bindings` is another name for the binding of a Pod, which the body names.
    if let (true, "bindings", false, []) = (group.is_empty(), resource, namespace.is_empty(), rest) {
        return target(find("pods"), namespace, &["", "binding"], path, watch);
    }
    match find(resource) {
        Some(kind) if kind.namespaced || namespace.is_empty() => target(Some(kind), namespace, rest, path, watch),
        _ => Route::UnknownResource,
    }
}

fn target(kind: Option<&'static Kind>, namespace: &str, rest: &[&str], path: &str, watch: bool) -> Route {
    let Some(kind) = kind else { return Route::UnknownResource };
    // A single object of a namespaced kind is only found through its namespace.
    if kind.namespaced && namespace.is_empty() && !rest.is_empty() {
        return Route::UnknownResource;
    }
    let name = rest.first().copied().unwrap_or_default();
    let subresource = rest.get(1).copied().unwrap_or_default();
    if rest.len() > 2 && subresource != "proxy" {
        return Route::UnknownResource;
    }
    let parts = if kind.namespaced { PROXY_PARTS } else { NODE_PROXY_PARTS };
    let rest = if subresource == "proxy" { after(path, parts).to_owned() } else { String::new() };
    Route::Resource(Target {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        rest,
        watch,
    })
}

/// What follows the first `count` parts of a path, as it was written: a trailing slash counts there.
pub(crate) fn after(path: &str, count: usize) -> &str {
    match path.match_indices('/').nth(count) {
        Some((at, _)) => &path[at..],
        None => "",
    }
}

/// How many parts `/api/v1/namespaces/NS/services/NAME/proxy` has.
pub(crate) const PROXY_PARTS: usize = 7;
/// How many parts `/api/v1/nodes/NAME/proxy` has.
pub(crate) const NODE_PROXY_PARTS: usize = 5;

/// Turns `%41` into `A`. What is not valid stays as it is.
pub(crate) fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
