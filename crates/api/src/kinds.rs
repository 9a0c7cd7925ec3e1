//! The table of kinds: what is served where, and which rules hold for it. Adding a kind is one entry here plus its
//! rules in a file of its own under `kinds/`.

use crate::value::Value;

use crate::Settings;
use crate::field::FieldErrors;
use crate::meta::Checks;
use crate::names::Reasons;
use crate::schema::{self, Struct};
use crate::status::Failure;

pub(crate) mod columns;
pub mod config_map;
pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
pub mod ip_address;
pub mod lease;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod pod_template;
pub mod replica_set;
pub mod replication_controller;
pub mod role;
pub mod scale;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod service_cidr;
pub mod stateful_set;
mod workload;

/// A kind of object.
#[derive(Debug)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The kind, as in manifests.
    pub kind: &'static str,
    /// The resource, as in URLs.
    pub resource: &'static str,
    /// What kubectl also calls it.
    pub short_names: &'static [&'static str],
    /// `kubectl get all` and the like.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: &'static [Verb],
    /// Parts of the object with a URL of their own.
    pub subresources: &'static [Subresource],
    /// Its fields.
    pub schema: &'static Struct,
    /// Its rules.
    pub rules: &'static Rules,
    /// How it is stored and deleted.
    pub traits: Traits,
    /// The key prefix in the store, laid out as kube-apiserver does it: `services/specs`. Empty: never stored.
    pub store_prefix: &'static str,
    /// Set when objects are stored as another kind. The kind's rules then read the stored form, and its mistakes are told
    /// of the stored kind; only its schema and what is sent over the wire are its own.
    pub conversion: Option<Conversion>,
}

/// How a kind is read from and written to the stored form of another (`events.k8s.io` Event as the core Event).
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// The stored kind.
    pub stored: &'static Kind,
    /// From this kind to the stored one.
    pub store: fn(&Value) -> Value,
    /// Back.
    pub load: fn(&Value) -> Value,
}

/// There is one entry a kind, so two are the same if they are at the same place.
impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Kind {
    /// `v1`, `discovery.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
    /// `service`: the resource in the singular.
    pub fn singular(&self) -> String {
        self.kind.to_lowercase()
    }
    /// Whether the verb is offered.
    pub fn offers(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }
}

/// The kind served at a URL.
pub fn find(group: &str, version: &str, resource: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|k| k.resource == resource && k.group == group && k.version == version)
}

/// Everything that can be done with an ordinary kind.
const ALL: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
/// Kinds that are only asked, never kept.
const ASK: &[Verb] = &[Verb::Create];
/// Namespaces cannot be deleted all at once.
const ALL_BUT_COLLECTION: &[Verb] =
    &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];

/// Every kind we serve, in the order of discovery.
pub static KINDS: &[&Kind] = &[
    &CONFIG_MAP,
    &ENDPOINTS,
    &EVENT,
    &NAMESPACE,
    &NODE,
    &POD,
    &POD_TEMPLATE,
    &REPLICATION_CONTROLLER,
    &SECRET,
    &SERVICE_ACCOUNT,
    &SERVICE,
    &CONTROLLER_REVISION,
    &DAEMON_SET,
    &DEPLOYMENT,
    &REPLICA_SET,
    &STATEFUL_SET,
    &TOKEN_REVIEW,
    &SELF_SUBJECT_REVIEW,
    &LOCAL_SUBJECT_ACCESS_REVIEW,
    &SELF_SUBJECT_ACCESS_REVIEW,
    &SELF_SUBJECT_RULES_REVIEW,
    &SUBJECT_ACCESS_REVIEW,
    &LEASE,
    &ENDPOINT_SLICE,
    &EVENTS_EVENT,
    &IP_ADDRESS,
    &SERVICE_CIDR,
    &CLUSTER_ROLE_BINDING,
    &CLUSTER_ROLE,
    &ROLE_BINDING,
    &ROLE,
];

/// Older versions of kinds, served only when the administrator asks for them.
pub static OPTIONAL: &[&Kind] = &[&ENDPOINT_SLICE_V1BETA1];

/// An ordinary namespaced kind; entries below change what differs.
const fn kind(kind: &'static str, resource: &'static str, schema: &'static Struct) -> Kind {
    Kind {
        group: "",
        version: "v1",
        kind,
        resource,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: ALL,
        subresources: &[],
        schema,
        rules: &Rules::PLAIN,
        traits: Traits::PLAIN,
        store_prefix: resource,
        conversion: None,
    }
}

/// ConfigMap.
pub static CONFIG_MAP: Kind = Kind {
    rules: &config_map::RULES,
    short_names: &["cm"],
    ..kind("ConfigMap", "configmaps", &schema::core::CONFIG_MAP)
};

/// Endpoints.
pub static ENDPOINTS: Kind = Kind {
    rules: &endpoints::RULES,
    short_names: &["ep"],
    store_prefix: "services/endpoints",
    traits: Traits {
        create_on_update: true,
        deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..Traits::PLAIN
    },
    ..kind("Endpoints", "endpoints", &schema::core::ENDPOINTS)
};

/// Event.
pub static EVENT: Kind = Kind {
    rules: &event::RULES,
    short_names: &["ev"],
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    ..kind("Event", "events", &schema::core::EVENT)
};

/// Namespace.
pub static NAMESPACE: Kind = Kind {
    rules: &namespace::RULES,
    short_names: &["ns"],
    namespaced: false,
    verbs: ALL_BUT_COLLECTION,
    subresources: &[Subresource::Finalize, Subresource::Status],
    traits: Traits { delete_returns_object: true, ..Traits::PLAIN },
    ..kind("Namespace", "namespaces", &schema::core::NAMESPACE)
};

/// Node.
pub static NODE: Kind = Kind {
    rules: &node::RULES,
    short_names: &["no"],
    namespaced: false,
    subresources: &[Subresource::Proxy, Subresource::Status],
    store_prefix: "minions",
    ..kind("Node", "nodes", &schema::node::NODE)
};

/// Pod.
pub static POD: Kind = Kind {
    rules: &pod::RULES,
    short_names: &["po"],
    categories: &["all"],
    subresources: &[
        Subresource::Attach,
        Subresource::Binding,
        Subresource::Eviction,
        Subresource::Exec,
        Subresource::Log,
        Subresource::PortForward,
        Subresource::Proxy,
        Subresource::Status,
    ],
    traits: Traits { delete_returns_object: true, ..Traits::PLAIN },
    ..kind("Pod", "pods", &schema::pod::POD)
};

/// PodTemplate.
pub static POD_TEMPLATE: Kind = Kind {
    rules: &pod_template::RULES,
    traits: Traits { delete_returns_object: true, ..Traits::PLAIN },
    ..kind("PodTemplate", "podtemplates", &schema::pod::POD_TEMPLATE)
};

/// ReplicationController.
pub static REPLICATION_CONTROLLER: Kind = Kind {
    rules: &replication_controller::RULES,
    short_names: &["rc"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    store_prefix: "controllers",
    ..kind("ReplicationController", "replicationcontrollers", &schema::core::REPLICATION_CONTROLLER)
};

/// Secret.
pub static SECRET: Kind = Kind { rules: &secret::RULES, ..kind("Secret", "secrets", &schema::core::SECRET) };

/// ServiceAccount.
pub static SERVICE_ACCOUNT: Kind = Kind {
    rules: &service_account::RULES,
    short_names: &["sa"],
    subresources: &[Subresource::Token],
    traits: Traits { delete_returns_object: true, ..Traits::PLAIN },
    ..kind("ServiceAccount", "serviceaccounts", &schema::core::SERVICE_ACCOUNT)
};

/// Service.
pub static SERVICE: Kind = Kind {
    rules: &service::RULES,
    short_names: &["svc"],
    categories: &["all"],
    subresources: &[Subresource::Proxy, Subresource::Status],
    store_prefix: "services/specs",
    traits: Traits { create_on_update: true, delete_returns_object: true, ..Traits::PLAIN },
    ..kind("Service", "services", &schema::core::SERVICE)
};

/// TokenReview.
pub static TOKEN_REVIEW: Kind = Kind {
    group: "authentication.k8s.io",
    namespaced: false,
    verbs: ASK,
    store_prefix: "",
    ..kind("TokenReview", "tokenreviews", &schema::authentication::TOKEN_REVIEW)
};

/// SelfSubjectReview.
pub static SELF_SUBJECT_REVIEW: Kind = Kind {
    group: "authentication.k8s.io",
    namespaced: false,
    verbs: ASK,
    store_prefix: "",
    ..kind("SelfSubjectReview", "selfsubjectreviews", &schema::authentication::SELF_SUBJECT_REVIEW)
};

/// LocalSubjectAccessReview.
pub static LOCAL_SUBJECT_ACCESS_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    verbs: ASK,
    store_prefix: "",
    ..kind("LocalSubjectAccessReview", "localsubjectaccessreviews", &schema::authorization::LOCAL_SUBJECT_ACCESS_REVIEW)
};

/// SelfSubjectAccessReview.
pub static SELF_SUBJECT_ACCESS_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    namespaced: false,
    verbs: ASK,
    store_prefix: "",
    ..kind("SelfSubjectAccessReview", "selfsubjectaccessreviews", &schema::authorization::SELF_SUBJECT_ACCESS_REVIEW)
};

/// SelfSubjectRulesReview.
pub static SELF_SUBJECT_RULES_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    namespaced: false,
    verbs: ASK,
    store_prefix: "",
    ..kind("SelfSubjectRulesReview", "selfsubjectrulesreviews", &schema::authorization::SELF_SUBJECT_RULES_REVIEW)
};

/// SubjectAccessReview.
pub static SUBJECT_ACCESS_REVIEW: Kind = Kind {
    group: "authorization.k8s.io",
    namespaced: false,
    verbs: ASK,
    store_prefix: "",
    ..kind("SubjectAccessReview", "subjectaccessreviews", &schema::authorization::SUBJECT_ACCESS_REVIEW)
};

/// ControllerRevision.
pub static CONTROLLER_REVISION: Kind = Kind {
    rules: &controller_revision::RULES,
    group: "apps",
    ..kind("ControllerRevision", "controllerrevisions", &schema::apps::CONTROLLER_REVISION)
};

/// DaemonSet.
pub static DAEMON_SET: Kind = Kind {
    rules: &daemon_set::RULES,
    group: "apps",
    short_names: &["ds"],
    categories: &["all"],
    subresources: &[Subresource::Status],
    ..kind("DaemonSet", "daemonsets", &schema::apps::DAEMON_SET)
};

/// Deployment.
pub static DEPLOYMENT: Kind = Kind {
    rules: &deployment::RULES,
    group: "apps",
    short_names: &["deploy"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    ..kind("Deployment", "deployments", &schema::apps::DEPLOYMENT)
};

/// ReplicaSet.
pub static REPLICA_SET: Kind = Kind {
    rules: &replica_set::RULES,
    group: "apps",
    short_names: &["rs"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    ..kind("ReplicaSet", "replicasets", &schema::apps::REPLICA_SET)
};

/// StatefulSet.
pub static STATEFUL_SET: Kind = Kind {
    rules: &stateful_set::RULES,
    group: "apps",
    short_names: &["sts"],
    categories: &["all"],
    subresources: &[Subresource::Scale, Subresource::Status],
    ..kind("StatefulSet", "statefulsets", &schema::apps::STATEFUL_SET)
};

/// Scale, which is the subresource `scale` of other kinds and no resource of its own: it is not in
/// [`KINDS`].
pub static SCALE: Kind = Kind {
    rules: &scale::RULES,
    group: "autoscaling",
    verbs: &[],
    store_prefix: "",
    ..kind("Scale", "scales", &schema::autoscaling::SCALE)
};

/// Lease.
pub static LEASE: Kind = Kind {
    rules: &lease::RULES,
    group: "coordination.k8s.io",
    traits: Traits { create_on_update: true, conditional_update: true, ..Traits::PLAIN },
    ..kind("Lease", "leases", &schema::coordination::LEASE)
};

/// EndpointSlice.
pub static ENDPOINT_SLICE: Kind = Kind {
    rules: &endpoint_slice::RULES,
    group: "discovery.k8s.io",
    traits: Traits { generation: true, ..Traits::PLAIN },
    ..kind("EndpointSlice", "endpointslices", &schema::discovery::ENDPOINT_SLICE)
};

/// EndpointSlice, as it was before `v1`.
pub static ENDPOINT_SLICE_V1BETA1: Kind = Kind {
    rules: &endpoint_slice::v1beta1::V1BETA1_RULES,
    group: "discovery.k8s.io",
    version: "v1beta1",
    traits: Traits {
        generation: true,
        deprecation: Some(
            "discovery.k8s.io/v1beta1 EndpointSlice is deprecated in v1.21+, unavailable in v1.25+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        ..Traits::PLAIN
    },
    conversion: Some(Conversion {
        stored: &ENDPOINT_SLICE,
        store: endpoint_slice::v1beta1::store,
        load: endpoint_slice::v1beta1::load,
    }),
    ..kind("EndpointSlice", "endpointslices", &schema::discovery::ENDPOINT_SLICE_V1BETA1)
};

/// Event.
pub static EVENTS_EVENT: Kind = Kind {
    rules: &event::EVENTS_RULES,
    group: "events.k8s.io",
    short_names: &["ev"],
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    conversion: Some(Conversion { stored: &EVENT, store: event::store, load: event::load }),
    ..kind("Event", "events", &schema::events::EVENT)
};

/// IPAddress.
pub static IP_ADDRESS: Kind = Kind {
    rules: &ip_address::RULES,
    group: "networking.k8s.io",
    short_names: &["ip"],
    namespaced: false,
    ..kind("IPAddress", "ipaddresses", &schema::networking::IP_ADDRESS)
};

/// ServiceCIDR.
pub static SERVICE_CIDR: Kind = Kind {
    rules: &service_cidr::RULES,
    group: "networking.k8s.io",
    namespaced: false,
    subresources: &[Subresource::Status],
    ..kind("ServiceCIDR", "servicecidrs", &schema::networking::SERVICE_CIDR)
};

/// ClusterRoleBinding.
pub static CLUSTER_ROLE_BINDING: Kind = Kind {
    rules: &role::binding::CLUSTER_BINDING_RULES,
    group: "rbac.authorization.k8s.io",
    namespaced: false,
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    ..kind("ClusterRoleBinding", "clusterrolebindings", &schema::rbac::CLUSTER_ROLE_BINDING)
};

/// ClusterRole.
pub static CLUSTER_ROLE: Kind = Kind {
    rules: &role::CLUSTER_RULES,
    group: "rbac.authorization.k8s.io",
    namespaced: false,
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    ..kind("ClusterRole", "clusterroles", &schema::rbac::CLUSTER_ROLE)
};

/// RoleBinding.
pub static ROLE_BINDING: Kind = Kind {
    rules: &role::binding::BINDING_RULES,
    group: "rbac.authorization.k8s.io",
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    ..kind("RoleBinding", "rolebindings", &schema::rbac::ROLE_BINDING)
};

/// Role.
pub static ROLE: Kind = Kind {
    rules: &role::RULES,
    group: "rbac.authorization.k8s.io",
    traits: Traits { create_on_update: true, ..Traits::PLAIN },
    ..kind("Role", "roles", &schema::rbac::ROLE)
};

/// What can be done with a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

/// A part of an object with a URL of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `status`: written by whoever runs the object.
    Status,
    /// `finalize` of a Namespace.
    Finalize,
    /// `binding` of a Pod.
    Binding,
    /// `eviction` of a Pod.
    Eviction,
    /// `proxy` of a Service, a Pod or a Node.
    Proxy,
    /// `token` of a ServiceAccount.
    Token,
    /// `log` of a Pod: what its containers write.
    Log,
    /// `exec` of a Pod: a command beside its containers.
    Exec,
    /// `attach` of a Pod: the streams of a container.
    Attach,
    /// `portforward` of a Pod: connections into it.
    PortForward,
    /// `scale`: how many Pods are asked for.
    Scale,
}

/// How a kind is stored and deleted.
#[derive(Debug, Clone, Copy)]
pub struct Traits {
    /// PUT of an absent object creates it.
    pub create_on_update: bool,
    /// DELETE answers the deleted object, not a Status.
    pub delete_returns_object: bool,
    /// `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// A write without resourceVersion is refused. (Unconditional updates are the rule.)
    pub conditional_update: bool,
    /// Every request carries this warning.
    pub deprecation: Option<&'static str>,
}

impl Traits {
    /// None of these.
    pub const PLAIN: Traits = Traits {
        create_on_update: false,
        delete_returns_object: false,
        generation: false,
        conditional_update: false,
        deprecation: None,
    };
}

/// The rules of a kind. Objects come in canonical form (see [`crate::decode`]); `old` is what is stored.
///
/// For a create the server calls `default`, `admit`, `prepare_create`, `validate`; for an update `default`, `prepare_update`,
/// `validate`, `validate_update`; for a write to `status` the `_status` pair. Metadata is the matter of [`crate::meta`], not
/// of these functions; [`crate::validation`] puts both together.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Reasons against a name; `prefix` means it is a `generateName`.
    pub name: fn(name: &str, prefix: bool) -> Reasons,
    /// Which rules of metadata the kind checks by itself.
    pub metadata: Checks,
    /// Fills what the user left out. Applied to every object that comes in, and to the result of every patch.
    pub default: fn(object: &mut Value, settings: &Settings),
    /// What is filled or refused on create by what Kubernetes calls admission plugins.
    pub admit: fn(object: &mut Value, settings: &Settings) -> Result<(), Failure>,
    /// Drops what a create may not set (such as status) and sets what it always sets.
    pub prepare_create: fn(object: &mut Value, settings: &Settings),
    /// Keeps what an update may not change (such as status), and adapts fields to the change.
    pub prepare_update: fn(object: &mut Value, old: &Value, settings: &Settings),
    /// Keeps everything but status and what may change with it.
    pub prepare_status: fn(object: &mut Value, old: &Value, settings: &Settings),
    /// Mistakes in a whole object. `old` is there on update: some rules do not hold for what was already so.
    pub validate: fn(object: &Value, old: Option<&Value>, settings: &Settings) -> FieldErrors,
    /// Changes that are not allowed.
    pub validate_update: fn(object: &Value, old: &Value, settings: &Settings) -> FieldErrors,
    /// Mistakes in a new status.
    pub validate_status: fn(object: &Value, old: &Value, settings: &Settings) -> FieldErrors,
    /// What is allowed but unwise; sent as `Warning` headers.
    pub warnings: fn(object: &Value, old: Option<&Value>, settings: &Settings) -> Vec<String>,
    /// The value of a field that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [(&'static str, ReadField)],
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// One row of `kubectl get`; `now` is in seconds since 1970, for ages.
    pub row: fn(object: &Value, now: i64) -> Vec<Value>,
}

impl Rules {
    /// A kind without rules of its own: names are subdomains, everything goes.
    pub const PLAIN: Rules = Rules {
        name: crate::meta::subdomain_name,
        metadata: Checks::USUAL,
        default: |_, _| {},
        admit: |_, _| Ok(()),
        prepare_create: |_, _| {},
        prepare_update: |_, _, _| {},
        prepare_status: |_, _, _| {},
        validate: |_, _, _| FieldErrors::new(),
        validate_update: |_, _, _| FieldErrors::new(),
        validate_status: |_, _, _| FieldErrors::new(),
        warnings: |_, _, _| Vec::new(),
        selectable: &[],
        columns: &[
            Column { name: "Name", kind: "string", format: "name", description: "Name of the object.", priority: 0 },
            Column {
                name: "Created At",
                kind: "date",
                format: "",
                description: "When the object was made.",
                priority: 0,
            },
        ],
        row: |object, _| {
            use crate::Look;
            let metadata = object.at("metadata");
            vec![metadata.at("name").clone(), metadata.at("creationTimestamp").clone()]
        },
    };
}

/// Reads a field as a field selector compares it.
pub type ReadField = fn(&Value) -> String;

/// A column of `kubectl get`.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// `string`, `integer`, `date`.
    pub kind: &'static str,
    /// `name` for the first column, else empty.
    pub format: &'static str,
    /// What it shows.
    pub description: &'static str,
    /// 0 is always shown, above that only with `-o wide`.
    pub priority: i32,
}
