//! Colours, where somebody looks at a terminal and wants them: not with `NO_COLOR`, not where the terminal has none.

use std::io::IsTerminal;

use crate::config::Environment;

/// How to write on an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    /// Somebody looks at it.
    pub(crate) terminal: bool,
    colours: bool,
}

/// What a text is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is well.
    Good,
    /// Not yet, or not quite.
    Fair,
    /// Something is wrong.
    Bad,
    /// Less important.
    Faint,
    /// More important.
    Strong,
}

impl Paint {
    /// As where somebody looks and wants colours.
    #[cfg(test)]
    pub(crate) const ALWAYS: Paint = Paint { terminal: true, colours: true };
    /// As where nobody looks.
    #[cfg(test)]
    pub(crate) const NEVER: Paint = Paint { terminal: false, colours: false };

    /// For what is printed.
    pub(crate) fn stdout() -> Paint {
        Paint::of(std::io::stdout().is_terminal())
    }

    /// For what is said beside it.
    pub(crate) fn stderr() -> Paint {
        Paint::of(std::io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Paint {
        Paint { terminal, colours: terminal && Environment::wants_colours() }
    }

    /// A text in a tone.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Fair => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A word in the tone of what it says.
    pub(crate) fn word(self, text: &str) -> String {
        match tone_of(text) {
            Some(tone) => self.tone(tone, text),
            None => text.to_owned(),
        }
    }
}

/// What words in tables of Kubernetes are about.
fn tone_of(text: &str) -> Option<Tone> {
    let bad = ["Error", "Failed", "CrashLoopBackOff", "NotReady", "Unknown", "OOMKilled", "Evicted", "False"];
    match text {
        "Running" | "Ready" | "Active" | "Bound" | "True" => Some(Tone::Good),
        "Pending" | "<pending>" | "Terminating" | "ContainerCreating" | "Warning" => Some(Tone::Fair),
        "<none>" | "<unset>" | "<unknown>" | "Normal" | "Completed" => Some(Tone::Faint),
        text if bad.contains(&text) || text.starts_with("NotReady,") => Some(Tone::Bad),
        text if text.ends_with("BackOff") || text.starts_with("Err") => Some(Tone::Bad),
        text => counted(text),
    }
}

/// `1/2`: fewer than there should be.
fn counted(text: &str) -> Option<Tone> {
    let (ready, all) = text.split_once('/')?;
    let (ready, all): (u32, u32) = (ready.parse().ok()?, all.parse().ok()?);
    (ready < all).then_some(Tone::Fair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_painted_by_what_they_say_and_only_where_somebody_looks() {
        let looked_at = Paint { terminal: true, colours: true };
        let check = |text: &str, expected: &str| assert_eq!(looked_at.word(text), expected);
        check("Running", "\u{1b}[32mRunning\u{1b}[0m");
        check("ImagePullBackOff", "\u{1b}[31mImagePullBackOff\u{1b}[0m");
        check("1/2", "\u{1b}[33m1/2\u{1b}[0m");
        check("2/2", "2/2");
        check("web", "web");
        check("80/TCP", "80/TCP");
        assert_eq!(Paint { terminal: true, colours: false }.word("Running"), "Running");
    }
}
