//! Which time a sequence of sights leads to.

use fairlead_api::view::Condition;

use super::*;

fn pod(name: &str, time: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.to_owned();
    let last_transition_time = Some(time.to_owned()).filter(|time| !time.is_empty());
    pod.status.conditions = vec![Condition { kind: "Ready".to_owned(), last_transition_time, ..Condition::default() }];
    pod
}

/// The Pods with their times, and what is said of them.
type Sight<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);

fn check(sights: &[Sight<'_>]) {
    let mut service = Service::default();
    service.metadata.creation_timestamp = Some("05".to_owned());
    let mut times = TriggerTimes::default();
    for (pods, expected) in sights {
        let pods: Vec<_> = pods.iter().map(|(name, time)| pod(name, time)).collect();
        let said = times.observe(&service, &pods.iter().collect::<Vec<_>>());
        assert_eq!(said.as_deref(), *expected, "{pods:?}");
    }
}

#[test]
fn a_new_service_gives_its_creation_whatever_its_pods_say() {
    check(&[(&[("a", "09")], Some("05"))]);
}

#[test]
fn then_the_earliest_newer_time_of_a_pod_counts() {
    check(&[(&[], Some("05")), (&[("a", "07"), ("b", "06")], Some("06")), (&[("a", "09"), ("b", "08")], Some("08"))]);
}

#[test]
fn a_time_that_is_not_newer_does_not_count() {
    check(&[
        (&[("a", "07")], Some("05")),
        (&[("a", "07")], None),
        (&[("a", "06")], None),
        (&[("a", "07")], Some("07")),
    ]);
}

#[test]
fn a_pod_that_goes_gives_no_time_and_is_forgotten() {
    check(&[
        (&[("a", "07"), ("b", "08")], Some("05")),
        (&[("b", "08")], None),
        (&[("a", "07"), ("b", "08")], Some("07")),
    ]);
}

#[test]
fn a_pod_without_a_time_gives_none() {
    check(&[(&[], Some("05")), (&[("a", "")], None), (&[("a", "06")], Some("06"))]);
}
