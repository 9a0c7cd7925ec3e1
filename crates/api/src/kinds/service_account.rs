//! Rules of service_account.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
