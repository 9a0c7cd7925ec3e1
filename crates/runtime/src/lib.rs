//! Which resources may this process use, and which client uses how much of them?

pub mod budget;

pub use budget::{Account, Budget, BudgetReport, Exceeded, Limits, Permit, Sender};
