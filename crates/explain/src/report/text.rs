//! A report as plain text: one line a step, with a mark, and below it what was seen, what is wrong and what mends it.

use std::fmt;

use super::{Report, State, Step};

impl State {
    /// `✓`, `✗`, `!`, `·` or `?`
    pub fn mark(self) -> char {
        match self {
            State::Ok => '✓',
            State::Bad => '✗',
            State::Warn => '!',
            State::Skipped => '·',
            State::Unknown => '?',
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step}")?;
        }
        write!(f, "{}", self.summary)
    }
}

/// Ends with the end of a line.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.state.mark(), self.title)?;
        for line in &self.evidence {
            writeln!(f, "    {line}")?;
        }
        for finding in &self.findings {
            writeln!(f, "  {}: {}", finding.cause, finding.message)?;
            for command in &finding.remedy {
                writeln!(f, "    $ {command}")?;
            }
        }
        Ok(())
    }
}
