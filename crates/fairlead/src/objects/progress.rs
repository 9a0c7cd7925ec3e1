//! How far long work has come, for who looks at a terminal: one line on standard error, gone when the work is done.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter work needs no telling.
const PATIENCE: Duration = Duration::from_millis(500);

/// Work of some steps.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    done: usize,
    all: usize,
    began: Instant,
    shown: bool,
}

impl Progress {
    /// Work that begins.
    pub(super) fn new(what: &'static str, all: usize) -> Progress {
        Progress { what, done: 0, all, began: Instant::now(), shown: false }
    }

    /// A step is done.
    pub(super) fn step(&mut self) {
        self.done += 1;
        if self.done < self.all {
            self.say(&format!("{} {} of {}", self.what, self.done, self.all));
        }
    }

    /// Says what is going on, if it takes long.
    pub(super) fn say(&mut self, text: &str) {
        if self.began.elapsed() < PATIENCE || !std::io::stderr().is_terminal() {
            return;
        }
        self.clear();
        // Who does not read it needs no progress.
        let _ = write!(std::io::stderr(), "{text}").and_then(|()| std::io::stderr().flush());
        self.shown = true;
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
