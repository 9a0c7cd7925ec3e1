//! Token reviews and requests.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.authentication.v1", fields, atomic: false }
}

/// `BoundObjectReference`.
pub static BOUND_OBJECT_REFERENCE: Struct = message(
    "BoundObjectReference",
    &[field(1, "kind", TEXT), field(2, "apiVersion", TEXT), field(3, "name", TEXT), field(4, "uid", Text("types.UID"))],
);

/// `SelfSubjectReview`.
pub static SELF_SUBJECT_REVIEW: Struct = message(
    "SelfSubjectReview",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "status", Object(&SELF_SUBJECT_REVIEW_STATUS))],
);

/// `SelfSubjectReviewStatus`.
pub static SELF_SUBJECT_REVIEW_STATUS: Struct =
    message("SelfSubjectReviewStatus", &[field(1, "userInfo", Object(&USER_INFO))]);

/// `TokenRequest`.
pub static TOKEN_REQUEST: Struct = message(
    "TokenRequest",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&TOKEN_REQUEST_SPEC)).always(),
        field(3, "status", Object(&TOKEN_REQUEST_STATUS)),
    ],
);

/// `TokenRequestSpec`.
pub static TOKEN_REQUEST_SPEC: Struct = message(
    "TokenRequestSpec",
    &[
        field(1, "audiences", List(&TEXT)).always(),
        field(4, "expirationSeconds", Shape::Int64).pointer(),
        field(3, "boundObjectRef", Object(&BOUND_OBJECT_REFERENCE)).pointer(),
    ],
);

/// `TokenRequestStatus`.
pub static TOKEN_REQUEST_STATUS: Struct = message(
    "TokenRequestStatus",
    &[field(1, "token", TEXT).always(), field(2, "expirationTimestamp", Shape::Time).always()],
);

/// `TokenReview`.
pub static TOKEN_REVIEW: Struct = message(
    "TokenReview",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&TOKEN_REVIEW_SPEC)).always().required(),
        field(3, "status", Object(&TOKEN_REVIEW_STATUS)),
    ],
);

/// `TokenReviewSpec`.
pub static TOKEN_REVIEW_SPEC: Struct =
    message("TokenReviewSpec", &[field(1, "token", TEXT).required(), field(2, "audiences", List(&TEXT))]);

/// `TokenReviewStatus`.
pub static TOKEN_REVIEW_STATUS: Struct = message(
    "TokenReviewStatus",
    &[
        field(1, "authenticated", Shape::Bool),
        field(2, "user", Object(&USER_INFO)),
        field(4, "audiences", List(&TEXT)),
        field(3, "error", TEXT),
    ],
);

/// `UserInfo`.
pub static USER_INFO: Struct = message(
    "UserInfo",
    &[
        field(1, "username", TEXT),
        field(2, "uid", TEXT),
        field(3, "groups", List(&TEXT)),
        field(4, "extra", Map(&List(&TEXT))),
    ],
);
