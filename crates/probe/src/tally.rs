//! What to make of several looks: a state changes only after so many alike in a row, and looks have their time. Pure: whoever
//! counts says what time it is, from when the thing looked at began.

use std::time::Duration;

/// When to look, and how many looks make a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// No look before.
    pub initial_delay: Duration,
    /// From one look to the next.
    pub period: Duration,
    /// How long a look may take.
    pub timeout: Duration,
    /// So many successes in a row make it healthy.
    pub success_threshold: u32,
    /// So many failures in a row make it unhealthy.
    pub failure_threshold: u32,
}

impl Default for Schedule {
    /// What a Pod's probe has that says nothing.
    fn default() -> Schedule {
        Schedule {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

/// How something does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nobody knows yet.
    Unknown,
    /// It answers.
    Healthy,
    /// It does not.
    Unhealthy,
}

/// Counts looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    schedule: Schedule,
    state: State,
    /// The last look, and how many in a row were like it.
    run: Option<(bool, u32)>,
    due: Duration,
}

impl Tally {
    /// Begins in a state: readiness as unhealthy, liveness as healthy, startup as unknown.
    pub fn new(schedule: Schedule, initial: State) -> Tally {
        Tally { schedule, state: initial, run: None, due: schedule.initial_delay }
    }

    /// How it does now.
    pub fn state(&self) -> State {
        self.state
    }

    /// When to look next.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// A look that ended at `now` went well or not. Returns the state if it is another now.
    pub fn count(&mut self, now: Duration, success: bool) -> Option<State> {
        // A look that took longer than the period is followed by the next at once, and by no more than one.
        self.due = (self.due + self.schedule.period).max(now);
        let run = match self.run {
            Some((last, run)) if last == success => run.saturating_add(1),
            _ => 1,
        };
        self.run = Some((success, run));
        let (threshold, state) = match success {
            true => (self.schedule.success_threshold, State::Healthy),
            false => (self.schedule.failure_threshold, State::Unhealthy),
        };
        if run < threshold || self.state == state {
            return None;
        }
        self.state = state;
        Some(state)
    }
}

#[cfg(test)]
mod tests;
