//! What the server says about itself: which groups, versions and resources there are, in the legacy form (one document
//! a version) and the aggregated one (all at once), and `/version`. Keys stand in the reference server's order.

use crate::value::{Map, Value, json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::Kind;
use crate::kinds::{Subresource, Verb};

#[cfg(test)]
mod tests;

/// The version of Kubernetes whose API we serve.
pub const KUBERNETES: &str = "v1.36.4";

/// `/api`: the versions of the core group, and where to find the server.
pub fn core_versions(kinds: &[&'static Kind], server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": versions(kinds, ""),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    })
}

/// `/apis`: all groups but the core one.
pub fn groups(kinds: &[&'static Kind]) -> Value {
    let groups: Vec<Value> = group_names(kinds).into_iter().map(|name| Value::Object(summary(kinds, name))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`, if there is such a group.
pub fn group(kinds: &[&'static Kind], name: &str) -> Option<Value> {
    let name = group_names(kinds).into_iter().find(|known| *known == name)?;
    let mut out = json!({"kind": "APIGroup", "apiVersion": "v1"});
    out.as_object_mut()?.extend(summary(kinds, name));
    Some(out)
}

/// `/api/v1` and `/apis/GROUP/VERSION`, if there is such a version.
pub fn resources(kinds: &[&'static Kind], group: &str, version: &str) -> Option<Value> {
    let resources = of_version(kinds, group, version);
    if resources.is_empty() {
        return None;
    }
    let mut out = json!({"kind": "APIResourceList"});
    // The core group's document has never said its own apiVersion.
    if !group.is_empty() {
        out["apiVersion"] = "v1".into();
    }
    out["groupVersion"] = group_version(group, version).into();
    out["resources"] = resources.iter().map(Resource::legacy).collect();
    Some(out)
}

/// `/api` in the aggregated form.
pub fn aggregated_core(kinds: &[&'static Kind]) -> Value {
    aggregated(vec![aggregated_group(kinds, "")])
}

/// `/apis` in the aggregated form.
pub fn aggregated_groups(kinds: &[&'static Kind]) -> Value {
    aggregated(group_names(kinds).into_iter().map(|name| aggregated_group(kinds, name)).collect())
}

/// What was built, for `/version`.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// Our own version, such as `0.1.0`.
    pub version: &'a str,
    /// The commit.
    pub commit: &'a str,
    /// RFC 3339.
    pub date: &'a str,
    /// `linux/amd64`.
    pub platform: &'a str,
}

/// `/version`. Clients compare `gitVersion` with their own, so it is that of the API; ours stands behind the plus.
pub fn version(build: &Build<'_>) -> Value {
    let mut numbers = KUBERNETES.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next(),
        "minor": numbers.next(),
        "gitVersion": format!("{KUBERNETES}+fairlead-{}", build.version),
        "gitCommit": build.commit,
        "gitTreeState": "clean",
        "buildDate": build.date,
        "goVersion": "",
        "compiler": "rustc",
        "platform": build.platform,
    })
}

/// `v1`, `discovery.k8s.io/v1`.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The groups with a name, in the order of the table.
pub(crate) fn group_names(kinds: &[&'static Kind]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for kind in kinds {
        if !kind.group.is_empty() && !names.contains(&kind.group) {
            names.push(kind.group);
        }
    }
    names
}

/// The versions of a group, the preferred one first.
pub(crate) fn versions(kinds: &[&'static Kind], group: &str) -> Vec<&'static str> {
    let mut versions: Vec<&'static str> = kinds.iter().filter(|k| k.group == group).map(|k| k.version).collect();
    versions.sort_by_key(|version| std::cmp::Reverse(maturity(version)));
    versions.dedup();
    versions
}

/// Stable before beta before alpha, then the higher number: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`.
fn maturity(version: &str) -> (u8, u32, u32) {
    let text = version.trim_start_matches('v');
    let split = |word: &str| text.split_once(word).map(|(a, b)| (a.parse().unwrap_or(0), b.parse().unwrap_or(0)));
    if let Some((major, minor)) = split("beta") {
        return (1, major, minor);
    }
    if let Some((major, minor)) = split("alpha") {
        return (0, major, minor);
    }
    (2, text.parse().unwrap_or(0), 0)
}

fn summary(kinds: &[&'static Kind], group: &'static str) -> Map {
    let versions: Vec<Value> = versions(kinds, group)
        .into_iter()
        .map(|version| json!({"groupVersion": group_version(group, version), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    Map::from_iter([
        ("name".to_owned(), group.into()),
        ("versions".to_owned(), versions.into()),
        ("preferredVersion".to_owned(), preferred),
    ])
}

fn aggregated(items: Vec<Value>) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_group(kinds: &[&'static Kind], group: &str) -> Value {
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    let versions: Vec<Value> = versions(kinds, group)
        .into_iter()
        .map(|version| {
            let resources = of_version(kinds, group, version);
            let tops = resources.iter().filter(|r| r.subresource.is_none());
            let tops: Vec<Value> = tops.map(|top| top.aggregated(&resources)).collect();
            json!({"version": version, "resources": tops, "freshness": "Current"})
        })
        .collect();
    json!({"metadata": metadata, "versions": versions})
}

/// One line of discovery: a resource or a subresource.
struct Resource {
    resource: &'static str,
    subresource: Option<&'static str>,
    singular: String,
    namespaced: bool,
    /// Of what is sent and answered; set only where it differs from where the resource stands.
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: Vec<&'static str>,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    hash: Option<String>,
}

/// Everything at a group and version, sorted by name.
fn of_version(kinds: &[&'static Kind], group: &str, version: &str) -> Vec<Resource> {
    let here = kinds.iter().filter(|kind| kind.group == group && kind.version == version);
    let mut resources = Vec::new();
    for kind in here {
        resources.push(Resource::main(kind));
        for subresource in kind.subresources {
            resources.push(Resource::sub(kind, *subresource));
            if *subresource == Subresource::Binding {
                resources.push(Resource::bindings());
            }
        }
    }
    resources.sort_by_key(|r| (r.resource, r.subresource));
    resources
}

impl Resource {
    fn main(kind: &'static Kind) -> Resource {
        Resource {
            resource: kind.resource,
            subresource: None,
            singular: kind.singular(),
            namespaced: kind.namespaced,
            group: "",
            version: "",
            kind: kind.kind,
            verbs: kind.verbs.iter().copied().map(verb).collect(),
            short_names: kind.short_names,
            categories: kind.categories,
            hash: (!kind.store_prefix.is_empty()).then(|| storage_version_hash(kind)),
        }
    }

    /// `POST …/bindings`, the older way to write `pods/NAME/binding`.
    fn bindings() -> Resource {
        Resource {
            resource: "bindings",
            subresource: None,
            singular: "binding".to_owned(),
            namespaced: true,
            group: "",
            version: "",
            kind: "Binding",
            verbs: vec!["create"],
            short_names: &[],
            categories: &[],
            hash: None,
        }
    }

    fn sub(of: &'static Kind, subresource: Subresource) -> Resource {
        let (name, kind, verbs): (_, _, &[&str]) = match subresource {
            Subresource::Status => ("status", of.kind, &["get", "patch", "update"]),
            Subresource::Finalize => ("finalize", of.kind, &["update"]),
            Subresource::Binding => ("binding", "Binding", &["create"]),
            Subresource::Eviction => ("eviction", "Eviction", &["create"]),
            Subresource::Proxy => ("proxy", proxy_options(of), &["create", "delete", "get", "patch", "update"]),
            Subresource::Token => ("token", "TokenRequest", &["create"]),
            Subresource::Log => ("log", of.kind, &["get"]),
            Subresource::Exec => ("exec", "PodExecOptions", &["create", "get"]),
            Subresource::Attach => ("attach", "PodAttachOptions", &["create", "get"]),
            Subresource::PortForward => ("portforward", "PodPortForwardOptions", &["create", "get"]),
            Subresource::Scale => ("scale", "Scale", &["get", "patch", "update"]),
        };
        let (group, version) = match subresource {
            Subresource::Token => ("authentication.k8s.io", "v1"),
            Subresource::Scale => ("autoscaling", "v1"),
            Subresource::Eviction => ("policy", "v1"),
            _ => ("", ""),
        };
        Resource {
            subresource: Some(name),
            singular: String::new(),
            group,
            version,
            kind,
            verbs: verbs.to_vec(),
            short_names: &[],
            categories: &[],
            hash: None,
            ..Resource::main(of)
        }
    }

    fn legacy(&self) -> Value {
        let name = match self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource),
            None => self.resource.to_owned(),
        };
        let mut out = json!({"name": name, "singularName": self.singular, "namespaced": self.namespaced});
        if !self.group.is_empty() {
            out["group"] = self.group.into();
            out["version"] = self.version.into();
        }
        out["kind"] = self.kind.into();
        self.verbs_and_names(&mut out);
        if let Some(hash) = &self.hash {
            out["storageVersionHash"] = hash.as_str().into();
        }
        out
    }

    fn aggregated(&self, all: &[Resource]) -> Value {
        let mut out = json!({
            "resource": self.resource,
            "responseKind": self.response_kind(),
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": self.singular,
        });
        self.verbs_and_names(&mut out);
        let subresources: Vec<Value> = all
            .iter()
            .filter(|r| r.resource == self.resource)
            .filter_map(|r| Some((r.subresource?, r)))
            .map(|(name, r)| json!({"subresource": name, "responseKind": r.response_kind(), "verbs": r.verbs}))
            .collect();
        if !subresources.is_empty() {
            out["subresources"] = subresources.into();
        }
        out
    }

    fn verbs_and_names(&self, out: &mut Value) {
        out["verbs"] = self.verbs.clone().into();
        if !self.short_names.is_empty() {
            out["shortNames"] = self.short_names.into();
        }
        if !self.categories.is_empty() {
            out["categories"] = self.categories.into();
        }
    }

    fn response_kind(&self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }
}

/// The kind of the options of a request that is passed on.
pub(crate) fn proxy_options(of: &Kind) -> &'static str {
    match of.resource {
        "nodes" => "NodeProxyOptions",
        "pods" => "PodProxyOptions",
        _ => "ServiceProxyOptions",
    }
}

/// The verb's name in the API.
pub(crate) fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "create",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Patch => "patch",
        Verb::Update => "update",
        Verb::Watch => "watch",
    }
}

/// Changes when objects are stored as another kind or version; opaque to clients.
fn storage_version_hash(kind: &Kind) -> String {
    let stored = kind.conversion.map_or(kind, |conversion| conversion.stored);
    let name = format!("{}/{}/{}", stored.group, stored.version, stored.kind);
    STANDARD.encode(fingerprint(name.as_bytes()).to_be_bytes())
}

/// FNV-1a: the same on every machine and in every build, and never asked to resist anyone.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
