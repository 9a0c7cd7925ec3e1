//! What every object has, and the objects of the protocol itself (Status, DeleteOptions).

use super::{Field, Shape, Struct, TEXT, field};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.apimachinery.pkg.apis.meta.v1", fields, atomic: false }
}

/// `Condition`.
pub static CONDITION: Struct = message(
    "Condition",
    &[
        field(1, "type", TEXT).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "observedGeneration", Shape::Int64),
        field(4, "lastTransitionTime", Shape::Time).always().required(),
        field(5, "reason", TEXT).always().required(),
        field(6, "message", TEXT).always().required(),
    ],
);

/// `DeleteOptions`.
pub static DELETE_OPTIONS: Struct = message(
    "DeleteOptions",
    &[
        field(1, "gracePeriodSeconds", Shape::Int64).pointer(),
        field(2, "preconditions", Object(&PRECONDITIONS)).pointer(),
        field(3, "orphanDependents", Shape::Bool).pointer(),
        field(4, "propagationPolicy", Text("v1.DeletionPropagation")).pointer(),
        field(5, "dryRun", List(&TEXT)),
        field(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Shape::Bool).pointer(),
    ],
);

/// `FieldSelectorRequirement`.
pub static FIELD_SELECTOR_REQUIREMENT: Struct = message(
    "FieldSelectorRequirement",
    &[
        field(1, "key", TEXT).always().required(),
        field(2, "operator", Text("v1.FieldSelectorOperator")).always().required(),
        field(3, "values", List(&TEXT)),
    ],
);

/// `LabelSelector`.
pub static LABEL_SELECTOR: Struct = message(
    "LabelSelector",
    &[field(1, "matchLabels", Map(&TEXT)), field(2, "matchExpressions", List(&Object(&LABEL_SELECTOR_REQUIREMENT)))],
)
.atomic();

/// `LabelSelectorRequirement`.
pub static LABEL_SELECTOR_REQUIREMENT: Struct = message(
    "LabelSelectorRequirement",
    &[
        field(1, "key", TEXT).always().required(),
        field(2, "operator", Text("v1.LabelSelectorOperator")).always().required(),
        field(3, "values", List(&TEXT)),
    ],
);

/// `ListMeta`.
pub static LIST_META: Struct = message(
    "ListMeta",
    &[
        field(1, "selfLink", TEXT),
        field(2, "resourceVersion", TEXT),
        field(3, "continue", TEXT),
        field(4, "remainingItemCount", Shape::Int64).pointer(),
        field(5, "shardInfo", Object(&SHARD_INFO)).pointer(),
    ],
);

/// `ManagedFieldsEntry`.
pub static MANAGED_FIELDS_ENTRY: Struct = message(
    "ManagedFieldsEntry",
    &[
        field(1, "manager", TEXT),
        field(2, "operation", Text("v1.ManagedFieldsOperationType")),
        field(3, "apiVersion", TEXT),
        field(4, "time", Shape::Time).pointer(),
        field(6, "fieldsType", TEXT),
        field(7, "fieldsV1", Shape::Fields).pointer(),
        field(8, "subresource", TEXT),
    ],
);

/// `ObjectMeta`.
pub static OBJECT_META: Struct = message(
    "ObjectMeta",
    &[
        field(1, "name", TEXT),
        field(2, "generateName", TEXT),
        field(3, "namespace", TEXT),
        field(4, "selfLink", TEXT),
        field(5, "uid", Text("types.UID")),
        field(6, "resourceVersion", TEXT),
        field(7, "generation", Shape::Int64),
        field(8, "creationTimestamp", Shape::Time),
        field(9, "deletionTimestamp", Shape::Time).pointer(),
        field(10, "deletionGracePeriodSeconds", Shape::Int64).pointer(),
        field(11, "labels", Map(&TEXT)),
        field(12, "annotations", Map(&TEXT)),
        field(13, "ownerReferences", List(&Object(&OWNER_REFERENCE))).keys(&["uid"]).merge("uid"),
        field(14, "finalizers", List(&TEXT)).set().merge(""),
        field(17, "managedFields", List(&Object(&MANAGED_FIELDS_ENTRY))),
    ],
);

/// `OwnerReference`.
pub static OWNER_REFERENCE: Struct = message(
    "OwnerReference",
    &[
        field(5, "apiVersion", TEXT).always().required(),
        field(1, "kind", TEXT).always().required(),
        field(3, "name", TEXT).always().required(),
        field(4, "uid", Text("types.UID")).always().required(),
        field(6, "controller", Shape::Bool).pointer(),
        field(7, "blockOwnerDeletion", Shape::Bool).pointer(),
    ],
)
.atomic();

/// `Preconditions`.
pub static PRECONDITIONS: Struct = message(
    "Preconditions",
    &[field(1, "uid", Text("types.UID")).pointer(), field(2, "resourceVersion", TEXT).pointer()],
);

/// `ShardInfo`.
pub static SHARD_INFO: Struct = message("ShardInfo", &[field(1, "selector", TEXT).always().required()]);

/// `Status`.
pub static STATUS: Struct = message(
    "Status",
    &[
        field(1, "metadata", Object(&LIST_META)),
        field(2, "status", TEXT),
        field(3, "message", TEXT),
        field(4, "reason", Text("v1.StatusReason")),
        field(5, "details", Object(&STATUS_DETAILS)).pointer(),
        field(6, "code", Shape::Int32),
    ],
);

/// `StatusCause`.
pub static STATUS_CAUSE: Struct = message(
    "StatusCause",
    &[field(1, "reason", Text("v1.CauseType")), field(2, "message", TEXT), field(3, "field", TEXT)],
);

/// `StatusDetails`.
pub static STATUS_DETAILS: Struct = message(
    "StatusDetails",
    &[
        field(1, "name", TEXT),
        field(2, "group", TEXT),
        field(3, "kind", TEXT),
        field(6, "uid", Text("types.UID")),
        field(4, "causes", List(&Object(&STATUS_CAUSE))),
        field(5, "retryAfterSeconds", Shape::Int32),
    ],
);
