//! Access reviews.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Map, Struct as Object};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.authorization.v1", fields, atomic: false }
}

/// `FieldSelectorAttributes`.
pub static FIELD_SELECTOR_ATTRIBUTES: Struct = message(
    "FieldSelectorAttributes",
    &[field(1, "rawSelector", TEXT), field(2, "requirements", List(&Object(&meta::FIELD_SELECTOR_REQUIREMENT)))],
);

/// `LabelSelectorAttributes`.
pub static LABEL_SELECTOR_ATTRIBUTES: Struct = message(
    "LabelSelectorAttributes",
    &[field(1, "rawSelector", TEXT), field(2, "requirements", List(&Object(&meta::LABEL_SELECTOR_REQUIREMENT)))],
);

/// `LocalSubjectAccessReview`.
pub static LOCAL_SUBJECT_ACCESS_REVIEW: Struct = message(
    "LocalSubjectAccessReview",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SUBJECT_ACCESS_REVIEW_SPEC)).always().required(),
        field(3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

/// `NonResourceAttributes`.
pub static NON_RESOURCE_ATTRIBUTES: Struct =
    message("NonResourceAttributes", &[field(1, "path", TEXT), field(2, "verb", TEXT)]);

/// `NonResourceRule`.
pub static NON_RESOURCE_RULE: Struct = message(
    "NonResourceRule",
    &[field(1, "verbs", List(&TEXT)).always().required(), field(2, "nonResourceURLs", List(&TEXT))],
);

/// `ResourceAttributes`.
pub static RESOURCE_ATTRIBUTES: Struct = message(
    "ResourceAttributes",
    &[
        field(1, "namespace", TEXT),
        field(2, "verb", TEXT),
        field(3, "group", TEXT),
        field(4, "version", TEXT),
        field(5, "resource", TEXT),
        field(6, "subresource", TEXT),
        field(7, "name", TEXT),
        field(8, "fieldSelector", Object(&FIELD_SELECTOR_ATTRIBUTES)).pointer(),
        field(9, "labelSelector", Object(&LABEL_SELECTOR_ATTRIBUTES)).pointer(),
    ],
);

/// `ResourceRule`.
pub static RESOURCE_RULE: Struct = message(
    "ResourceRule",
    &[
        field(1, "verbs", List(&TEXT)).always().required(),
        field(2, "apiGroups", List(&TEXT)),
        field(3, "resources", List(&TEXT)),
        field(4, "resourceNames", List(&TEXT)),
    ],
);

/// `SelfSubjectAccessReview`.
pub static SELF_SUBJECT_ACCESS_REVIEW: Struct = message(
    "SelfSubjectAccessReview",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)).always().required(),
        field(3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

/// `SelfSubjectAccessReviewSpec`.
pub static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Struct = message(
    "SelfSubjectAccessReviewSpec",
    &[
        field(1, "resourceAttributes", Object(&RESOURCE_ATTRIBUTES)).pointer(),
        field(2, "nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)).pointer(),
    ],
);

/// `SelfSubjectRulesReview`.
pub static SELF_SUBJECT_RULES_REVIEW: Struct = message(
    "SelfSubjectRulesReview",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SELF_SUBJECT_RULES_REVIEW_SPEC)).always().required(),
        field(3, "status", Object(&SUBJECT_RULES_REVIEW_STATUS)),
    ],
);

/// `SelfSubjectRulesReviewSpec`.
pub static SELF_SUBJECT_RULES_REVIEW_SPEC: Struct =
    message("SelfSubjectRulesReviewSpec", &[field(1, "namespace", TEXT)]);

/// `SubjectAccessReview`.
pub static SUBJECT_ACCESS_REVIEW: Struct = message(
    "SubjectAccessReview",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SUBJECT_ACCESS_REVIEW_SPEC)).always().required(),
        field(3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

/// `SubjectAccessReviewSpec`.
pub static SUBJECT_ACCESS_REVIEW_SPEC: Struct = message(
    "SubjectAccessReviewSpec",
    &[
        field(1, "resourceAttributes", Object(&RESOURCE_ATTRIBUTES)).pointer(),
        field(2, "nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)).pointer(),
        field(3, "user", TEXT),
        field(4, "groups", List(&TEXT)),
        field(5, "extra", Map(&List(&TEXT))),
        field(6, "uid", TEXT),
    ],
);

/// `SubjectAccessReviewStatus`.
pub static SUBJECT_ACCESS_REVIEW_STATUS: Struct = message(
    "SubjectAccessReviewStatus",
    &[
        field(1, "allowed", Shape::Bool).always().required(),
        field(4, "denied", Shape::Bool),
        field(2, "reason", TEXT),
        field(3, "evaluationError", TEXT),
    ],
);

/// `SubjectRulesReviewStatus`.
pub static SUBJECT_RULES_REVIEW_STATUS: Struct = message(
    "SubjectRulesReviewStatus",
    &[
        field(1, "resourceRules", List(&Object(&RESOURCE_RULE))).always().required(),
        field(2, "nonResourceRules", List(&Object(&NON_RESOURCE_RULE))).always().required(),
        field(3, "incomplete", Shape::Bool).always().required(),
        field(4, "evaluationError", TEXT),
    ],
);
