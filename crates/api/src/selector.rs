//! `labelSelector` and `fieldSelector` of lists, watches and collections: which objects a request means.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::{Expression, LabelSelector};
