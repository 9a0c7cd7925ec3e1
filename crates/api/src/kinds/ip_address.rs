//! Rules of ip_address.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
