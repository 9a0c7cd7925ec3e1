//! Which resources may this process use, and which client uses how much of them?

pub mod budget;
pub mod machine;
pub mod metrics;
pub mod slots;

pub use budget::{Account, Budget, BudgetReport, Exceeded, Limits, Permit, Sender};
pub use machine::MachineLimits;
pub use metrics::BudgetMetrics;
pub use slots::{AtLimit, Slot, SlotTable};
