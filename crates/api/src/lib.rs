//! What an API object may be: the kinds we serve, their fields, defaults, validation, selectors, patches, table
//! columns and allocations. Everything here computes; nothing here does I/O, reads a clock or draws a random number.

pub mod age;
pub mod alloc;
pub mod decode;
pub mod discovery;
pub mod field;
pub mod golang;
pub mod head;
pub mod ip;
pub mod json;
pub mod kinds;
pub mod load_balancer;
pub mod look;
pub mod managed;
pub mod meta;
pub mod names;
pub mod openapi;
pub mod patch;
pub mod programmed;
pub mod proto;
pub mod quantity;
pub mod repair;
pub mod schema;
pub mod selector;
pub mod settings;
pub mod source;
pub mod status;
pub mod validation;
pub mod value;
pub mod view;
pub mod weights;

pub use field::{FieldError, Path};
pub use kinds::Kind;
pub use look::Look;
pub use settings::Settings;
pub use status::Failure;
pub use value::Value;
