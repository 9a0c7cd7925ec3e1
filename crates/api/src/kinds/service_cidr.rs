//! Rules of service_cidr.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
