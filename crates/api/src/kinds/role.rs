//! Rules of role.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
