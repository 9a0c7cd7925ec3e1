//! Roles and their bindings.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Struct as Object};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.rbac.v1", fields, atomic: false }
}

/// `AggregationRule`.
pub static AGGREGATION_RULE: Struct =
    message("AggregationRule", &[field(1, "clusterRoleSelectors", List(&Object(&meta::LABEL_SELECTOR)))]);

/// `ClusterRole`.
pub static CLUSTER_ROLE: Struct = message(
    "ClusterRole",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "rules", List(&Object(&POLICY_RULE))).always(),
        field(3, "aggregationRule", Object(&AGGREGATION_RULE)).pointer(),
    ],
);

/// `ClusterRoleBinding`.
pub static CLUSTER_ROLE_BINDING: Struct = message(
    "ClusterRoleBinding",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "subjects", List(&Object(&SUBJECT))),
        field(3, "roleRef", Object(&ROLE_REF)).always().required(),
    ],
);

/// `PolicyRule`.
pub static POLICY_RULE: Struct = message(
    "PolicyRule",
    &[
        field(1, "verbs", List(&TEXT)).always().required(),
        field(2, "apiGroups", List(&TEXT)),
        field(3, "resources", List(&TEXT)),
        field(4, "resourceNames", List(&TEXT)),
        field(5, "nonResourceURLs", List(&TEXT)),
    ],
);

/// `Role`.
pub static ROLE: Struct = message(
    "Role",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "rules", List(&Object(&POLICY_RULE))).always()],
);

/// `RoleBinding`.
pub static ROLE_BINDING: Struct = message(
    "RoleBinding",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "subjects", List(&Object(&SUBJECT))),
        field(3, "roleRef", Object(&ROLE_REF)).always().required(),
    ],
);

/// `RoleRef`.
pub static ROLE_REF: Struct = message(
    "RoleRef",
    &[
        field(1, "apiGroup", TEXT).always(),
        field(2, "kind", TEXT).always().required(),
        field(3, "name", TEXT).always().required(),
    ],
)
.atomic();

/// `Subject`.
pub static SUBJECT: Struct = message(
    "Subject",
    &[
        field(1, "kind", TEXT).always().required(),
        field(2, "apiGroup", TEXT),
        field(3, "name", TEXT).always().required(),
        field(4, "namespace", TEXT),
    ],
)
.atomic();
