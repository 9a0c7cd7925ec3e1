//! The requests we serve, as data that both versions of OpenAPI are written from.

use crate::value::Value;

use super::{gvk, list_name, root, type_name};
use crate::Kind;
use crate::kinds::{Subresource, Verb};
use crate::schema::{self, Struct, meta};

/// A URL and what can be done there.
pub(super) struct Path {
    pub(super) url: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

/// A request.
pub(super) struct Operation {
    /// In lower case.
    pub(super) method: &'static str,
    /// What clients look for: `get`, `list`, `post`, `put`, `patch`, `delete`, `deletecollection`, `connect`.
    pub(super) action: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    pub(super) gvk: Value,
    pub(super) parameters: Vec<Parameter>,
    /// The type of the body.
    pub(super) body: Option<String>,
    /// The type of the answer; none for what is passed through.
    pub(super) answer: Option<String>,
    pub(super) codes: &'static [(&'static str, &'static str)],
}

/// A parameter in the URL.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `query` or `path`.
    pub(super) place: &'static str,
    /// `string`, `integer`, `boolean`.
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, description }
}

const fn part(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "path", kind: "string", description }
}

const NAME: Parameter = part("name", "The name of the object.");
const NAMESPACE: Parameter = part("namespace", "The namespace of the object.");
const PRETTY: Parameter = query("pretty", "string", "If true, the answer is indented.");
const DRY_RUN: Parameter = query("dryRun", "string", "With the value All, everything is done but nothing is stored.");
const FIELD_MANAGER: Parameter =
    query("fieldManager", "string", "Who makes the change; recorded as the owner of the fields that are set.");
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "What to do about unknown and repeated fields: Ignore them, Warn about them (the default), or be Strict and refuse.",
);
const FORCE: Parameter = query("force", "boolean", "On apply, take over fields that others own.");
const GRACE: Parameter =
    query("gracePeriodSeconds", "integer", "Seconds to wait before the object goes; 0 is at once.");
const ORPHAN: Parameter = query("orphanDependents", "boolean", "Deprecated: use propagationPolicy.");
const PROPAGATION: Parameter =
    query("propagationPolicy", "string", "What becomes of dependent objects: Orphan, Background or Foreground.");
const CONTINUE: Parameter =
    query("continue", "string", "Where the next page begins, from the answer with the last one.");
const FIELD_SELECTOR: Parameter = query("fieldSelector", "string", "Only objects whose fields match.");
const LABEL_SELECTOR: Parameter = query("labelSelector", "string", "Only objects whose labels match.");
const LIMIT: Parameter = query("limit", "integer", "At most so many objects in one answer.");
const RESOURCE_VERSION: Parameter =
    query("resourceVersion", "string", "How old the answer may be, or where a watch begins.");
const RESOURCE_VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan.");
const SEND_INITIAL_EVENTS: Parameter =
    query("sendInitialEvents", "boolean", "A watch begins with what there is, and a bookmark marks the end of that.");
const TIMEOUT: Parameter = query("timeoutSeconds", "integer", "When the server ends the request.");
const BOOKMARKS: Parameter = query("allowWatchBookmarks", "boolean", "A watch may send events of type BOOKMARK.");
const WATCH: Parameter = query("watch", "boolean", "Send changes as they happen instead of a list.");

const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
const PATCH: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
const DELETE: &[Parameter] = &[DRY_RUN, GRACE, ORPHAN, PROPAGATION];
const LIST: &[Parameter] = &[
    BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
    WATCH,
];
const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
];

const OK: &[(&str, &str)] = &[("200", "OK")];
const CREATED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created"), ("202", "Accepted")];
const STORED: &[(&str, &str)] = &[("200", "OK"), ("201", "Created")];
const DELETED: &[(&str, &str)] = &[("200", "OK"), ("202", "Accepted")];

/// Every URL of these kinds.
pub(super) fn of(kinds: &[&'static Kind]) -> Vec<Path> {
    let mut paths = Vec::new();
    for kind in kinds {
        paths.push(collection(kind));
        if kind.namespaced && kind.offers(Verb::List) {
            paths.push(all_namespaces(kind));
        }
        if kind.offers(Verb::Get) {
            paths.push(object(kind));
        }
        for subresource in kind.subresources {
            paths.push(part_of(kind, *subresource));
            if *subresource == Subresource::Binding {
                paths.push(bindings(kind));
            }
        }
    }
    paths.sort_by(|a, b| a.url.cmp(&b.url));
    paths
}

fn collection(kind: &'static Kind) -> Path {
    let about = About::object(kind);
    let mut operations = Vec::new();
    if kind.offers(Verb::DeleteCollection) {
        operations.push(about.delete_collection());
    }
    if kind.offers(Verb::List) {
        operations.push(about.list(""));
    }
    if kind.offers(Verb::Create) {
        operations.push(about.create());
    }
    path(kind, kind.resource, "", operations)
}

fn all_namespaces(kind: &'static Kind) -> Path {
    Path {
        url: format!("/{}/{}", root(kind.group, kind.version), kind.resource),
        parameters: [LIST, &[PRETTY]].concat(),
        operations: vec![Operation { parameters: Vec::new(), ..About::object(kind).list("ForAllNamespaces") }],
    }
}

fn object(kind: &'static Kind) -> Path {
    let about = About::object(kind);
    path(kind, kind.resource, "/{name}", vec![about.delete(), about.read(), about.patch(), about.replace()])
}

fn part_of(kind: &'static Kind, subresource: Subresource) -> Path {
    let about = About::part(kind, subresource);
    let (name, operations) = match subresource {
        Subresource::Status => ("status", vec![about.read(), about.patch(), about.replace()]),
        Subresource::Scale => ("scale", vec![about.read(), about.patch(), about.replace()]),
        Subresource::Finalize => ("finalize", vec![about.replace()]),
        Subresource::Binding => ("binding", vec![about.create()]),
        Subresource::Eviction => ("eviction", vec![about.create()]),
        Subresource::Token => ("token", vec![about.create()]),
        Subresource::Proxy => ("proxy", about.connect(EVERY_METHOD)),
        Subresource::Log => ("log", vec![Operation { answer: None, ..about.read() }]),
        Subresource::Exec => ("exec", about.connect(GET_AND_POST)),
        Subresource::Attach => ("attach", about.connect(GET_AND_POST)),
        Subresource::PortForward => ("portforward", about.connect(GET_AND_POST)),
    };
    path(kind, kind.resource, &format!("/{{name}}/{name}"), operations)
}

/// `POST …/bindings`, the older way to write `pods/NAME/binding`.
fn bindings(kind: &'static Kind) -> Path {
    let about = About { suffix: "", ..About::part(kind, Subresource::Binding) };
    path(kind, "bindings", "", vec![Operation { id: "createCoreV1NamespacedBinding".to_owned(), ..about.create() }])
}

fn path(kind: &Kind, resource: &str, rest: &str, operations: Vec<Operation>) -> Path {
    let mut parameters = Vec::new();
    if rest.contains("{name}") {
        parameters.push(NAME);
    }
    let namespace = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    if kind.namespaced {
        parameters.push(NAMESPACE);
    }
    parameters.push(PRETTY);
    let url = format!("/{}{namespace}/{resource}{rest}", root(kind.group, kind.version));
    Path { url, parameters, operations }
}

/// The methods of requests that are passed on, and how their operations are called.
const EVERY_METHOD: &[(&str, &str)] =
    &[("delete", "Delete"), ("get", "Get"), ("patch", "Patch"), ("post", "Post"), ("put", "Put")];
const GET_AND_POST: &[(&str, &str)] = &[("get", "Get"), ("post", "Post")];

/// What the operations of a URL are about.
struct About {
    of: &'static Kind,
    /// Of the objects that are sent and answered.
    kind: &'static str,
    group: &'static str,
    schema: Option<&'static Struct>,
    /// At the end of the names of operations.
    suffix: &'static str,
}

impl About {
    fn object(of: &'static Kind) -> About {
        About { of, kind: of.kind, group: of.group, schema: Some(of.schema), suffix: "" }
    }

    fn part(of: &'static Kind, subresource: Subresource) -> About {
        let own = About::object(of);
        match subresource {
            Subresource::Status => About { suffix: "Status", ..own },
            Subresource::Finalize => About { suffix: "Finalize", ..own },
            Subresource::Scale => About {
                kind: "Scale",
                group: "autoscaling",
                schema: Some(&schema::autoscaling::SCALE),
                suffix: "Scale",
                ..own
            },
            Subresource::Binding => {
                About { kind: "Binding", schema: Some(&schema::core::BINDING), suffix: "Binding", ..own }
            }
            Subresource::Eviction => About {
                kind: "Eviction",
                group: "policy",
                schema: Some(&schema::policy::EVICTION),
                suffix: "Eviction",
                ..own
            },
            Subresource::Token => About {
                kind: "TokenRequest",
                group: "authentication.k8s.io",
                schema: Some(&schema::authentication::TOKEN_REQUEST),
                suffix: "Token",
                ..own
            },
            Subresource::Proxy => {
                About { kind: crate::discovery::proxy_options(of), schema: None, suffix: "Proxy", ..own }
            }
            Subresource::Log => About { schema: None, suffix: "Log", ..own },
            Subresource::Exec => About { kind: "PodExecOptions", schema: None, suffix: "Exec", ..own },
            Subresource::Attach => About { kind: "PodAttachOptions", schema: None, suffix: "Attach", ..own },
            Subresource::PortForward => {
                About { kind: "PodPortForwardOptions", schema: None, suffix: "Portforward", ..own }
            }
        }
    }

    fn list(&self, suffix: &str) -> Operation {
        Operation {
            parameters: LIST.to_vec(),
            answer: self.schema.map(list_name),
            description: format!("list or watch objects of kind {}", self.kind),
            id: if suffix.is_empty() { self.id("list", "") } else { self.plain_id("list", suffix) },
            ..self.operation("get", "list")
        }
    }

    fn create(&self) -> Operation {
        Operation {
            parameters: WRITE.to_vec(),
            body: self.schema.map(type_name),
            codes: CREATED,
            description: format!("create {} {}", article(self.kind), self.kind),
            id: self.id("create", ""),
            ..self.operation("post", "post")
        }
    }

    fn read(&self) -> Operation {
        Operation {
            description: format!("read {}", self.what()),
            id: self.id("read", ""),
            ..self.operation("get", "get")
        }
    }

    fn replace(&self) -> Operation {
        Operation {
            parameters: WRITE.to_vec(),
            body: self.schema.map(type_name),
            codes: STORED,
            description: format!("replace {}", self.what()),
            id: self.id("replace", ""),
            ..self.operation("put", "put")
        }
    }

    fn patch(&self) -> Operation {
        Operation {
            parameters: PATCH.to_vec(),
            body: Some(format!("{}.Patch", meta::STATUS.package)),
            codes: STORED,
            description: format!("change {}", self.what()),
            id: self.id("patch", ""),
            ..self.operation("patch", "patch")
        }
    }

    fn delete(&self) -> Operation {
        let status = Some(type_name(&meta::STATUS));
        let answer = if self.of.traits.delete_returns_object { self.schema.map(type_name) } else { status };
        Operation {
            parameters: DELETE.to_vec(),
            body: Some(type_name(&meta::DELETE_OPTIONS)),
            answer,
            codes: DELETED,
            description: format!("delete {} {}", article(self.kind), self.kind),
            id: self.id("delete", ""),
            ..self.operation("delete", "delete")
        }
    }

    fn delete_collection(&self) -> Operation {
        Operation {
            parameters: DELETE_COLLECTION.to_vec(),
            body: Some(type_name(&meta::DELETE_OPTIONS)),
            answer: Some(type_name(&meta::STATUS)),
            description: format!("delete all selected objects of kind {}", self.kind),
            id: self.id("delete", "Collection"),
            ..self.operation("delete", "deletecollection")
        }
    }

    /// Requests that are passed on as they are.
    fn connect(&self, methods: &[(&'static str, &str)]) -> Vec<Operation> {
        let connect = |(method, title): &(&'static str, &str)| Operation {
            description: format!("pass the request on to the {}", self.of.kind),
            id: self.id(&format!("connect{title}"), ""),
            ..self.operation(method, "connect")
        };
        methods.iter().map(connect).collect()
    }

    fn operation(&self, method: &'static str, action: &'static str) -> Operation {
        let version = self.of.version;
        Operation {
            method,
            action,
            id: String::new(),
            tag: format!("{}_{version}", camel(self.of.group)),
            description: String::new(),
            gvk: gvk(self.group, version, self.kind),
            parameters: Vec::new(),
            body: None,
            answer: self.schema.map(type_name),
            codes: OK,
        }
    }

    fn what(&self) -> String {
        let part = if self.suffix.is_empty() { String::new() } else { format!("{} of ", self.suffix.to_lowercase()) };
        format!("{part}the specified {}", self.kind)
    }

    /// `readCoreV1NamespacedServiceStatus`: unique in the document, and known to generators of clients.
    fn id(&self, verb: &str, between: &str) -> String {
        let namespaced = if self.of.namespaced { "Namespaced" } else { "" };
        let (place, kind, suffix) = (self.place(), self.of.kind, self.suffix);
        format!("{verb}{place}{between}{namespaced}{kind}{suffix}")
    }

    fn plain_id(&self, verb: &str, suffix: &str) -> String {
        format!("{verb}{}{}{suffix}", self.place(), self.of.kind)
    }

    fn place(&self) -> String {
        format!("{}{}", capital(&camel(self.of.group)), capital(self.of.version))
    }
}

/// `core`, `discovery`, `rbacAuthorization`.
fn camel(group: &str) -> String {
    let mut words = group.trim_end_matches(".k8s.io").split('.');
    let first = words.next().filter(|word| !word.is_empty()).unwrap_or("core").to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" }
}
