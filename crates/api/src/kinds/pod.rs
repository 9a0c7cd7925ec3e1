//! Rules of pod.

use super::Rules;

/// The rules.
pub static RULES: Rules = Rules::PLAIN;

/// Stand-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// a
    AtOnce,
    /// b
    Seconds(i64),
}
/// Stand-in.
pub fn grace(_pod: &serde_json::Value, _options: &serde_json::Value) -> Grace {
    Grace::AtOnce
}
/// Stand-in.
pub fn bind(_pod: &mut serde_json::Value, _b: &serde_json::Value, _now: &str) -> Result<(), crate::Failure> {
    Ok(())
}
