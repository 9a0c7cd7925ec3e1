//! In which form is something told: to people, or to programs?

use clap::ValueEnum;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}
