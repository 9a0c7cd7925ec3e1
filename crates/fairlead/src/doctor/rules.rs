//! What do the facts of a machine mean for Services? Rules only: each turns facts into checks, in the order in which they are read.

use super::Check;
use super::facts::Facts;

mod kernel;
mod machine;
mod ports;
mod traffic;

/// Everything there is to say.
pub(super) fn check(facts: &Facts) -> Vec<Check> {
    let mut checks = kernel::check(facts);
    checks.extend(traffic::check(facts));
    checks.extend(ports::check(facts));
    checks.extend(machine::check(facts));
    checks
}
