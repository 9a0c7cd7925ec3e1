//! Rules of config_map.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;
