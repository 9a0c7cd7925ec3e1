//! Set-ups of Services, broken and healthy, each with the cause that must be found first: changes of a small cluster in which
//! everything works and everything is seen.

mod broken_endpoints;
mod broken_pods;
mod broken_service;
mod broken_way;
mod healthy;
mod lab;
mod printed;

use std::collections::{BTreeMap, BTreeSet};

use fairlead_explain::{Cause, State, Verdict, check, explain};
use lab::Row;

fn broken() -> Vec<Row> {
    let groups = [broken_service::rows(), broken_pods::rows(), broken_endpoints::rows(), broken_way::rows()];
    groups.into_iter().flatten().collect()
}

#[test]
fn the_first_finding_of_every_broken_set_up_is_its_cause() {
    let mut wrong = Vec::new();
    for row in broken() {
        let seen = row.lab.build();
        let report = explain(&seen.question, &seen.objects, &seen.evidence);
        if (report.first, report.verdict) != (Some(row.cause), row.verdict) {
            wrong.push(format!("{}: wanted {} ({}), found\n{report}\n", row.name, row.cause, row.verdict));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cause_is_told_once_and_its_consequences_are_not_told() {
    for row in broken().into_iter().filter(|row| row.alone) {
        let seen = row.lab.build();
        let report = explain(&seen.question, &seen.objects, &seen.evidence);
        // What else is not well, though nothing breaks for it, may be told beside.
        let worst = report.first_finding().map(|finding| finding.severity);
        let alike = report.findings().filter(|finding| Some(finding.severity) == worst);
        let causes: Vec<Cause> = alike.map(|finding| finding.cause).collect();
        assert_eq!(causes, [row.cause], "{}\n{report}", row.name);
    }
}

#[test]
fn healthy_set_ups_have_no_finding_whatever_is_seen_of_them() {
    for (name, lab) in healthy::rows() {
        let seen = lab.build();
        let report = explain(&seen.question, &seen.objects, &seen.evidence);
        assert_eq!((report.first, report.verdict), (None, Verdict::Ok), "{name}\n{report}");
        let bad = report.steps.iter().filter(|step| matches!(step.state, State::Bad | State::Warn));
        assert_eq!(bad.count(), 0, "{name}\n{report}");

        let blind = explain(&seen.question, &seen.objects, &Default::default());
        assert_eq!(blind.first, None, "{name}, without evidence\n{blind}");
        let listed = check(&seen.question.service, &seen.objects);
        assert_eq!((listed.first, listed.verdict), (None, Verdict::Ok), "{name}, in a list\n{listed}");
    }
}

#[test]
fn there_are_many_set_ups_and_no_two_have_the_same_name() {
    let (broken, healthy) = (broken(), healthy::rows());
    assert!(broken.len() >= 100, "{} broken", broken.len());
    assert!(healthy.len() >= 15, "{} healthy", healthy.len());
    let mut names: Vec<&str> = broken.iter().map(|row| row.name).chain(healthy.iter().map(|(name, _)| *name)).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a name is there twice");
}

#[test]
fn every_cause_has_a_set_up_that_finds_it_first_and_a_remedy() {
    let mut found = BTreeMap::new();
    for row in broken() {
        let seen = row.lab.build();
        let report = explain(&seen.question, &seen.objects, &seen.evidence);
        let Some(finding) = report.first_finding() else { continue };
        assert!(!finding.remedy.is_empty(), "{}: {} has no remedy", row.name, finding.cause);
        assert!(!finding.message.is_empty() && !finding.message.ends_with('.'), "{}: {}", row.name, finding.message);
        assert!(finding.cause.meaning().ends_with('.'), "{}", finding.cause);
        found.insert(finding.cause, row.name);
    }
    let missing: BTreeSet<_> = Cause::ALL.iter().filter(|cause| !found.contains_key(cause)).collect();
    assert!(missing.is_empty(), "no set-up finds {missing:?}");
}

#[test]
fn objects_in_which_any_field_is_empty_are_explained_all_the_same() {
    let labs: [fn() -> lab::Lab; 2] =
        [lab::Lab::new, || broken_endpoints::manual().with(&broken_endpoints::slice("{}"))];
    for lab in labs {
        for (at, pointer) in lab().places() {
            let seen = lab().empty_at(at, &pointer).build();
            let report = explain(&seen.question, &seen.objects, &seen.evidence);
            assert_eq!(report.first.is_some(), report.findings().count() > 0, "{pointer}\n{report}");
            let listed = check(&seen.question.service, &seen.objects);
            assert_ne!(listed.verdict, Verdict::Unknown, "{pointer}\n{listed}");
        }
    }
}

#[test]
fn nothing_seen_is_never_an_alarm_about_machines() {
    for row in broken() {
        let seen = row.lab.build();
        let listed = check(&seen.question.service, &seen.objects);
        let full = explain(&seen.question, &seen.objects, &seen.evidence);
        // What a list says broken must be so for one who looks closer, too.
        if listed.verdict == Verdict::Broken && row.verdict != Verdict::Broken {
            panic!("{}: only the list says broken\n{listed}\n{full}", row.name);
        }
    }
}
