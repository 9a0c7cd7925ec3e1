//! The chain: which step is walked when, and what follows from what, so that a consequence is never taken for a cause.

use fairlead_api::source::Key;

use crate::report::{Finding, Report, Severity, State, Step, StepId, Verdict};
use crate::steps::{self, Case, Draft};
use crate::{Cause, Evidence, Objects, Question};

/// Says why a Service does not work, or that it does, as far as objects and evidence tell.
pub fn explain(question: &Question, objects: &Objects, evidence: &Evidence) -> Report {
    Walk::new(question, objects, evidence, true).report(&StepId::ALL)
}

/// The same from objects alone: for lists and Events, again at every change.
pub fn check(service: &Key, objects: &Objects) -> Report {
    let (question, evidence) = (Question::about(service.clone()), Evidence::default());
    Walk::new(&question, objects, &evidence, false).report(&FROM_OBJECTS)
}

/// The steps that need nothing but objects.
const FROM_OBJECTS: [StepId; 7] =
    [StepId::Exists, StepId::Spec, StepId::Selector, StepId::Pods, StepId::Ports, StepId::Slices, StepId::LoadBalancer];

/// What must be well for a step to say anything of its own.
fn needs(step: StepId) -> &'static [StepId] {
    use StepId::{Exists, Listening, LoadBalancer, Path, Plan, Pods, Ports, Rules, Selector, Slices, Spec};
    match step {
        Exists => &[],
        Spec => &[Exists],
        Selector => &[Exists],
        Pods => &[Exists, Selector],
        Ports => &[Exists, Spec, Selector],
        Listening => &[Exists, Spec, Selector, Pods, Ports],
        Slices => &[Exists, Selector, Pods, Ports],
        StepId::Dns | LoadBalancer => &[Exists],
        Plan => &[Exists, Spec, Selector, Pods, Ports, Slices],
        Rules | Path => &[Exists, Spec],
        StepId::Reply => &[Exists, Spec, Selector, Pods, Ports, Listening, Slices, Plan, Rules, Path],
    }
}

struct Walk<'a> {
    question: &'a Question,
    evidence: &'a Evidence,
    case: Option<Case<'a>>,
    missing: Draft,
    steps: Vec<Step>,
}

impl<'a> Walk<'a> {
    fn new(question: &'a Question, objects: &'a Objects, evidence: &'a Evidence, deep: bool) -> Walk<'a> {
        let case = Case::new(question, objects, evidence, deep);
        let missing = if case.is_none() { steps::missing(question, objects) } else { Draft::default() };
        Walk { question, evidence, case, missing, steps: Vec::new() }
    }

    fn report(mut self, ids: &[StepId]) -> Report {
        for id in ids {
            let draft = self.look(*id);
            self.steps.push(draft.finish(*id));
        }
        if self.case.as_ref().is_some_and(Case::is_dns_proxied) {
            settle(&mut self.steps);
        }
        let mut report = Report {
            service: self.question.service.to_string(),
            verdict: Verdict::Ok,
            summary: String::new(),
            steps: self.steps,
            first: None,
            live: self.evidence.live.clone(),
        };
        report.first = report.first_finding().map(|finding| finding.cause);
        report.verdict = verdict(&report);
        report.summary = summary(&report);
        report
    }

    fn look(&mut self, id: StepId) -> Draft {
        if let Some(bad) = self.blocked(id) {
            return Draft::skipped(format!("first: {}", lower(bad.title())));
        }
        match &self.case {
            Some(case) => steps::look(id, case),
            None => std::mem::take(&mut self.missing),
        }
    }

    /// The first step that must be mended before this one can say anything.
    fn blocked(&self, id: StepId) -> Option<StepId> {
        let headless = self.case.as_ref().is_some_and(|case| case.service.is_headless());
        let more: &[StepId] = match id {
            // The names of a headless Service are those of its endpoints.
            StepId::Dns if headless => &[StepId::Selector, StepId::Pods, StepId::Slices],
            _ => &[],
        };
        let bad = |id: &&StepId| self.steps.iter().any(|step| step.id == **id && step.state == State::Bad);
        needs(id).iter().chain(more).find(bad).copied()
    }
}

/// A DNS server may be behind a Service, too: when rules are wrong or the network is, its silence follows from that.
fn settle(steps: &mut [Step]) {
    let is_bad = |step: &&Step| matches!(step.id, StepId::Rules | StepId::Path) && step.state == State::Bad;
    let Some(cause) = steps.iter().find(is_bad).map(|step| step.title) else { return };
    let silent = |step: &&mut Step| step.findings.iter().any(|finding| finding.cause == Cause::DnsSilent);
    if let Some(dns) = steps.iter_mut().find(silent) {
        dns.findings.clear();
        dns.state = State::Skipped;
        dns.evidence.push(format!("first: {}", lower(cause)));
    }
}

fn lower(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

fn verdict(report: &Report) -> Verdict {
    match report.first_finding().map(|finding| finding.severity) {
        Some(Severity::Broken) => Verdict::Broken,
        Some(Severity::Warning) => Verdict::Warn,
        None if is_blind(report) => Verdict::Unknown,
        None => Verdict::Ok,
    }
}

/// Whether a whole explanation saw nothing but objects.
fn is_blind(report: &Report) -> bool {
    let machine = [StepId::Listening, StepId::Plan, StepId::Rules, StepId::Reply];
    let state = |id| report.step(id).map(|step| step.state);
    let unknown = machine.into_iter().filter_map(state).filter(|state| *state == State::Unknown).count();
    let seen = machine.into_iter().filter_map(state).filter(|state| *state == State::Ok).count();
    unknown > 0 && seen == 0
}

fn summary(report: &Report) -> String {
    let service = &report.service;
    match (report.verdict, report.first_finding()) {
        (_, Some(Finding { severity: Severity::Broken, message, .. })) => format!("{service} does not work: {message}"),
        (_, Some(Finding { message, .. })) => format!("{service} works, but: {message}"),
        (Verdict::Unknown, None) => format!("{service} looks well, but nothing of it was seen on a machine"),
        (_, None) => format!("{service} works as far as was seen"),
    }
}
