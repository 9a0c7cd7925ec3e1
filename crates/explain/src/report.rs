//! What comes out: steps with their state, what was seen, what is wrong and what mends it; as JSON and as text.

use std::fmt;

use serde::Serialize;

use crate::{Cause, Live};

mod text;

/// What is the matter with a Service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `namespace/name`
    pub service: String,
    /// All in all.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub summary: String,
    /// What was looked at, in the order in which a packet depends on it.
    pub steps: Vec<Step>,
    /// The cause: that of the first finding.
    pub first: Option<Cause>,
    /// What became of a packet that was really sent.
    pub live: Option<Live>,
}

impl Report {
    /// All findings; the first is the cause of what is wrong.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        // What breaks a Service comes before what only may.
        let with = |severity| {
            self.steps.iter().flat_map(|step| &step.findings).filter(move |found| found.severity == severity)
        };
        with(Severity::Broken).chain(with(Severity::Warning))
    }

    /// The first finding.
    pub fn first_finding(&self) -> Option<&Finding> {
        self.findings().next()
    }

    /// A short sentence for lists: the first finding, empty if all is well.
    pub fn why(&self) -> &str {
        self.first_finding().map_or("", |finding| &finding.message)
    }

    /// The step of that name.
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("keys are texts")
    }
}

/// All in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing is wrong as far as was seen, and that is far enough.
    Ok,
    /// It works, but not all of it, or not for long.
    Warn,
    /// It does not work.
    Broken,
    /// Too little is known.
    Unknown,
}

impl Verdict {
    /// `ok`, `warn`, `broken` or `unknown`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Broken => "broken",
            Verdict::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub id: StepId,
    /// What is so if it is well, in words.
    pub title: &'static str,
    /// Whether it is well.
    pub state: State,
    /// What was seen, line by line.
    pub evidence: Vec<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// The steps there are, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepId {
    /// The Service exists.
    Exists,
    /// Its spec can work, and has what is asked for.
    Spec,
    /// Its selector matches Pods.
    Selector,
    /// They are ready.
    Pods,
    /// They have its target ports.
    Ports,
    /// Something listens there.
    Listening,
    /// EndpointSlices say so.
    Slices,
    /// Its name resolves.
    Dns,
    /// Its load balancer has an address.
    LoadBalancer,
    /// The plan of the Node forwards the packet: policies, topology, source ranges.
    Plan,
    /// The kernel has rules that do.
    Rules,
    /// Nothing else stands in the way: parameters of the kernel, rules of others.
    Path,
    /// A packet that was sent is answered.
    Reply,
}

impl StepId {
    /// All of them, in order.
    pub const ALL: [StepId; 13] = [
        StepId::Exists,
        StepId::Spec,
        StepId::Selector,
        StepId::Pods,
        StepId::Ports,
        StepId::Listening,
        StepId::Slices,
        StepId::Dns,
        StepId::LoadBalancer,
        StepId::Plan,
        StepId::Rules,
        StepId::Path,
        StepId::Reply,
    ];

    /// What is so if it is well.
    pub fn title(self) -> &'static str {
        match self {
            StepId::Exists => "The Service exists",
            StepId::Spec => "Its spec has what is asked for",
            StepId::Selector => "Its selector matches Pods",
            StepId::Pods => "Its Pods are ready",
            StepId::Ports => "Its target ports are ports of the Pods",
            StepId::Listening => "Something listens there in the Pods",
            StepId::Slices => "EndpointSlices list them",
            StepId::Dns => "Its name resolves",
            StepId::LoadBalancer => "Its load balancer has an address",
            StepId::Plan => "The Node's plan forwards the packet",
            StepId::Rules => "The kernel has its rules",
            StepId::Path => "Nothing else stands in the way",
            StepId::Reply => "A packet is answered",
        }
    }
}

/// Whether a step is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is.
    Ok,
    /// It is not, and that is why the Service does not work.
    Bad,
    /// It is not, but the Service may work.
    Warn,
    /// It does not apply, or something before it must be mended first.
    Skipped,
    /// It cannot be told from here.
    Unknown,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is, in a word.
    pub cause: Cause,
    /// Whether it breaks the Service.
    pub severity: Severity,
    /// What it is, in a sentence, with names and numbers.
    pub message: String,
    /// Commands that mend it or tell more, the best first.
    pub remedy: Vec<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The Service may work all the same.
    Warning,
    /// It does not.
    Broken,
}
