//! Rules of endpoint_slice.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
