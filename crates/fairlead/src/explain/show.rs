//! A report for people: a line for each step, and below it what was seen, what is wrong and which command mends it.

use std::fmt::Write;

use fairlead_explain::{Finding, Live, Reply, Report, State, Step, Verdict};

use crate::objects::table::harmless;

/// So much of the kernel's trace is shown without being asked for.
const SHORT: usize = 6;

/// The report as text, in colour for a terminal. Without `verbose`, steps that are well are a line each, and those that do not
/// matter are left out.
pub(super) fn text(report: &Report, verbose: bool, terminal: bool) -> String {
    let paint = Paint(terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    let mut text = String::new();
    // Writing into a String does not fail.
    for shown in report.steps.iter().filter(|step| verbose || step.state != State::Skipped) {
        let _ = step(&mut text, shown, verbose, paint);
    }
    if let Some(sent) = &report.live {
        let _ = live(&mut text, sent, verbose, paint);
    }
    let colour = match report.verdict {
        Verdict::Ok => GREEN,
        Verdict::Warn | Verdict::Unknown => YELLOW,
        Verdict::Broken => RED,
    };
    let _ = writeln!(text, "\n{}", paint.with(colour, &report.summary));
    text
}

fn step(text: &mut String, step: &Step, verbose: bool, paint: Paint) -> std::fmt::Result {
    let colour = match step.state {
        State::Ok => GREEN,
        State::Bad => RED,
        State::Warn => YELLOW,
        State::Skipped | State::Unknown => DIM,
    };
    writeln!(text, "{} {}", paint.with(colour, &step.state.mark().to_string()), step.title)?;
    let quiet = step.state == State::Ok && !verbose;
    for line in step.evidence.iter().filter(|_| !quiet) {
        writeln!(text, "    {}", paint.with(DIM, line))?;
    }
    step.findings.iter().try_for_each(|it| finding(text, it, paint))
}

fn finding(text: &mut String, finding: &Finding, paint: Paint) -> std::fmt::Result {
    writeln!(text, "  {}: {}", paint.with(BOLD, finding.cause.as_str()), theirs(&finding.message))?;
    for command in &finding.remedy {
        writeln!(text, "    $ {}", paint.with(CYAN, command))?;
    }
    Ok(())
}

fn live(text: &mut String, live: &Live, verbose: bool, paint: Paint) -> std::fmt::Result {
    let from = live.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
    writeln!(text, "\nA packet{from} to {}:", live.to)?;
    let most = if verbose { live.trace.len() } else { SHORT };
    let hidden = live.trace.len().saturating_sub(most);
    if hidden > 0 {
        writeln!(text, "    {}", paint.with(DIM, &format!("{hidden} rules before; -v shows them")))?;
    }
    for line in live.trace.iter().skip(hidden) {
        writeln!(text, "    {}", paint.with(DIM, line))?;
    }
    let by = live.endpoint.map(|endpoint| format!(" by {endpoint}")).unwrap_or_default();
    let to = live.endpoint.map(|endpoint| format!(", sent on to {endpoint}")).unwrap_or_default();
    let ended = live.ended_by.as_ref().map(|rule| format!(", because of {}", theirs(rule))).unwrap_or_default();
    match &live.reply {
        Reply::Answered => writeln!(text, "  it was answered{by}"),
        Reply::Refused => writeln!(text, "  it was refused{by}{ended}"),
        Reply::Nothing => writeln!(text, "  nothing came back{to}{ended}"),
        Reply::Failed(why) => writeln!(text, "  it could not be sent: {}", theirs(why)),
    }
}

/// Words that may be somebody else's, such as the message of an Event: nothing a terminal obeys, and no line that looks like ours.
fn theirs(text: &str) -> String {
    harmless(text).replace('\n', "\n      ")
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// Whether there are colours.
#[derive(Debug, Clone, Copy)]
struct Paint(bool);

impl Paint {
    /// A text of whomever, in colour.
    fn with(self, code: &str, text: &str) -> String {
        let text = theirs(text);
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text }
    }
}

#[cfg(test)]
mod tests;
