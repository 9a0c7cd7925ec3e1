//! How long a Pod may take to go.

use crate::value::Value;

use crate::look::Look;

/// What a DELETE does to a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// It is gone at once. The answer still shows `deletionTimestamp` and `deletionGracePeriodSeconds: 0`.
    AtOnce,
    /// It gets `deletionTimestamp` (that many seconds from now) and `deletionGracePeriodSeconds`, and stays until
    /// deleted again with 0.
    Seconds(i64),
}

/// The grace of a Pod under the options of a DELETE (`gracePeriodSeconds`). One without a node, or that has ended, goes at
/// once.
pub fn grace(pod: &Value, options: &Value) -> Grace {
    let (spec, status) = (pod.at("spec"), pod.at("status"));
    let given = options.int_opt("gracePeriodSeconds").or_else(|| spec.int_opt("terminationGracePeriodSeconds"));
    if spec.text("nodeName").is_empty() || matches!(status.text("phase"), "Failed" | "Succeeded") {
        return Grace::AtOnce;
    }
    match given.unwrap_or(0) {
        0 => Grace::AtOnce,
        negative if negative < 0 => Grace::Seconds(1),
        seconds => Grace::Seconds(seconds),
    }
}
