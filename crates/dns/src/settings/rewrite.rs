//! Questions asked as others: `rewrite`.

use super::{Matcher, Pattern};

/// `rewrite`: one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    /// Whether later rules are looked at after this one matched.
    pub proceed: bool,
    /// What it does.
    pub rule: Rule,
}

/// What a rewrite does.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// Asks for another name.
    Name {
        /// Which names.
        from: Matcher,
        /// The other name; `{1}` is what the first group matched.
        to: String,
        /// What is done to the answer.
        answers: Vec<AnswerRule>,
    },
    /// Asks for another type.
    Type {
        /// This one.
        from: u16,
        /// By that one.
        to: u16,
    },
    /// Changes times to live in the answer.
    Ttl {
        /// Of which names.
        of: Matcher,
        /// At least.
        min: u32,
        /// At most.
        max: u32,
    },
}

/// What a rewrite of a name does to the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerRule {
    /// The name asked for stands where the other name stood.
    Auto,
    /// Names of records that match become another.
    Name(Pattern, String),
    /// Names in the data of records that match become another.
    Value(Pattern, String),
}
