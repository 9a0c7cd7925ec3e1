//! A container as facts: what it does, what it did before, how often it was started.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use fairlead_api::Look;

use crate::container::UNKNOWN;
use crate::shim::launch::End;

/// The first back-off, in seconds; it is doubled each time.
const FIRST_WAIT: u64 = 10;
/// The longest.
const LONGEST_WAIT: u64 = 300;
/// Who ran so long begins anew.
const LONG_ENOUGH: i64 = 600;

/// A container of a Pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// The run before this one.
    pub(crate) last: Option<Ended>,
    /// How often it was started; the number of the next run.
    pub(crate) runs: u32,
    /// It was started since the machine was.
    pub(crate) begun: bool,
    /// Seconds to wait after its end before it is started again.
    pub(crate) wait: u64,
    /// It passed its startup probe.
    pub(crate) started: bool,
    /// It passes its readiness probe.
    pub(crate) ready: bool,
    /// The image it was started with last; empty for the machine's files.
    #[serde(default)]
    pub(crate) image_id: String,
}

/// What a container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It runs to its end before the next.
    Init,
    /// It is started before the next, and runs on.
    Sidecar,
    /// It is what the Pod is for.
    Main,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    /// It was not started, and perhaps cannot be.
    Waiting {
        reason: String,
        message: String,
    },
    Running {
        #[serde(with = "time")]
        since: Timestamp,
    },
    Ended(Ended),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// 0: by itself.
    pub(crate) signal: i32,
    pub(crate) reason: String,
    pub(crate) message: String,
    #[serde(with = "time")]
    pub(crate) started: Timestamp,
    #[serde(with = "time")]
    pub(crate) finished: Timestamp,
    /// Which run.
    pub(crate) run: u32,
}

impl Unit {
    /// The containers of a Pod, as they are before anything happens: those that run first come first.
    pub(crate) fn all(pod: &Value) -> Vec<Unit> {
        let spec = pod.at("spec");
        let init = spec.list("initContainers").iter().map(|container| match container.text("restartPolicy") {
            "Always" => Unit::new(container, Role::Sidecar),
            _ => Unit::new(container, Role::Init),
        });
        init.chain(spec.list("containers").iter().map(|container| Unit::new(container, Role::Main))).collect()
    }

    fn new(container: &Value, role: Role) -> Unit {
        Unit {
            name: container.text("name").to_owned(),
            role,
            state: State::waiting("", ""),
            last: None,
            runs: 0,
            begun: false,
            wait: 0,
            started: false,
            ready: false,
            image_id: String::new(),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// How it ended, if it does not run.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// It runs, for the next time.
    pub(crate) fn start(&mut self, now: Timestamp) {
        if self.runs > 0 {
            self.wait = if self.wait == 0 { FIRST_WAIT } else { (2 * self.wait).min(LONGEST_WAIT) };
        }
        self.runs += 1;
        self.begun = true;
        let before = std::mem::replace(&mut self.state, State::Running { since: now });
        if let State::Ended(ended) = before {
            self.last = Some(ended);
        }
        (self.started, self.ready) = (false, false);
    }

    /// Its run has ended.
    pub(crate) fn end(&mut self, end: &End) {
        let finished = end.at.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let started = match self.state {
            State::Running { since } => since,
            _ => finished,
        };
        if finished.as_second() - started.as_second() >= LONG_ENOUGH {
            self.wait = 0;
        }
        let (reason, message) = told(end);
        let ended = Ended {
            code: end.code,
            signal: end.signal,
            reason: reason.to_owned(),
            message,
            started,
            finished,
            run: self.runs.saturating_sub(1),
        };
        self.state = State::Ended(ended);
        (self.started, self.ready) = (false, false);
    }

    /// How often it was started again.
    pub(crate) fn restarts(&self) -> u32 {
        self.runs.saturating_sub(1)
    }

    /// When it may be started again.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let wait = i64::try_from(self.wait).unwrap_or(i64::MAX);
        self.ended().map(|ended| ended.finished + jiff::SignedDuration::from_secs(wait))
    }
}

/// Why a run ended, in the words of container runtimes.
fn told(end: &End) -> (&'static str, String) {
    match &end.failure {
        Some(why) if why.starts_with(UNKNOWN) => ("ContainerStatusUnknown", why.clone()),
        Some(why) => ("StartError", why.clone()),
        None if end.code == 0 => ("Completed", String::new()),
        None => ("Error", String::new()),
    }
}

impl State {
    pub(crate) fn waiting(reason: &str, message: impl Into<String>) -> State {
        State::Waiting { reason: reason.to_owned(), message: message.into() }
    }
}

/// Times as text.
mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}
