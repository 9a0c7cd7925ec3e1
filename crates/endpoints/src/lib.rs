//! Which endpoints a Service has, and what must be written so that the API says so: Pods into EndpointSlices
//! ([`slices`]), Pods into the legacy Endpoints ([`legacy`]), hand-made Endpoints into EndpointSlices ([`mirror`]).
//!
//! Objects go in, [`Changes`] come out, with the [`Reason`] for everything that was left out. Each call looks at one
//! Service; [`Membership`] says which Services a changed Pod concerns, and which Pods they select.

pub mod hints;
pub mod legacy;
pub mod members;
pub mod mirror;
pub mod slices;

mod changes;
mod membership;
mod names;
mod order;
mod reason;
#[cfg(test)]
mod sample;
mod selection;
mod trigger;
mod weights;

pub use changes::{Changes, LeftOut, Notice, Severity};
pub use membership::Membership;
pub use reason::Reason;
pub use selection::Selection;
pub use trigger::TriggerTimes;
