//! What Pods and Services may ask for, and what slices say of it.

use proptest::prelude::*;

use super::*;
use crate::sample::{Cluster, pod, service};

/// Some Pods, each with labels and annotations as YAML.
fn pods(all: &[&str]) -> Vec<Pod> {
    let pod = |(at, fields): (usize, &&str)| pod(&format!("p{at}"), &format!("10.1.0.{}", at + 1), fields);
    all.iter().enumerate().map(pod).collect()
}

const STABLE: &str = "metadata: {labels: {track: stable}}";
const CANARY: &str = "metadata: {labels: {track: canary}}";
const WAITING: &str = "{metadata: {labels: {track: canary}}, status: {conditions: [{type: Ready, status: 'False'}]}}";

fn shared(text: &str) -> Service {
    service(&format!("metadata: {{annotations: {{fairlead.dev/weights: '{text}'}}}}"))
}

/// What the one slice of a Service with these Pods says, and which Events there are.
fn said(service: Service, all: &[&str]) -> (Option<String>, Vec<String>) {
    let mut cluster = Cluster::new(service, pods(all));
    let changes = cluster.sync();
    assert_eq!(cluster.sync().writes(), 0, "a second look changes nothing");
    let text = cluster.slices[0].metadata.annotations.get(WEIGHT).cloned();
    (text, changes.notices.into_iter().map(|notice| notice.message).collect())
}

fn check(service: Service, all: &[&str], expected: &str) {
    let (text, notices) = said(service, all);
    assert_eq!(text.unwrap_or_default(), expected);
    assert_eq!(notices, [""; 0]);
}

#[test]
fn row_112_without_weights_slices_say_nothing() {
    check(service(""), &["", "", STABLE], "");
    check(service(""), &["metadata: {annotations: {fairlead.dev/weight: '1'}}"], "");
    check(shared(""), &["", "metadata: {annotations: {fairlead.dev/weight: ''}}"], "");
}

#[test]
fn row_112_the_weight_of_a_pod_is_that_of_its_endpoint() {
    let weight = |weight: &str| format!("metadata: {{annotations: {{fairlead.dev/weight: '{weight}'}}}}");
    check(service(""), &["", &weight("5"), &weight("0")], "10.1.0.2=5,10.1.0.3=0");
    check(service(""), &["", "", &weight(" 100 ")], "10.1.0.3=100");
    check(service(""), &[&weight("3"), &weight("3")], "3");
}

#[test]
fn row_112_a_share_is_divided_among_the_pods_of_a_group() {
    check(shared("track=canary:5"), &[STABLE, CANARY], "10.1.0.1=19");
    check(shared("track=canary:5"), &[STABLE, STABLE, CANARY], "19,10.1.0.3=2");
    check(shared("track=canary:20,track=stable:80"), &[STABLE, STABLE, STABLE, STABLE, CANARY], "");
    check(shared("track=canary:0"), &[STABLE, CANARY], "10.1.0.2=0");
    check(shared("track=canary:100"), &[STABLE, CANARY], "10.1.0.1=0");
    check(shared("track=canary:5,track=stable:95"), &[CANARY, ""], "10.1.0.2=0");
    // A group without Pods leaves its share to the others.
    check(shared("track=canary:5"), &[STABLE, STABLE], "");
}

#[test]
fn row_112_pods_that_get_no_traffic_leave_their_part_to_those_beside_them() {
    check(shared("track=canary:50"), &[STABLE, CANARY, CANARY], "10.1.0.1=2");
    check(shared("track=canary:50"), &[STABLE, CANARY, WAITING], "");
    check(shared("track=canary:50"), &[STABLE, WAITING, WAITING], "10.1.0.1=2");
}

#[test]
fn row_112_weights_of_pods_count_within_their_group() {
    let drained = "metadata: {labels: {track: canary}, annotations: {fairlead.dev/weight: '0'}}";
    check(shared("track=canary:50"), &[STABLE, CANARY, drained], "10.1.0.3=0");
    let double = "metadata: {labels: {track: canary}, annotations: {fairlead.dev/weight: '2'}}";
    check(shared("track=canary:50"), &[STABLE, CANARY, double], "10.1.0.1=3,10.1.0.3=2");
}

#[test]
fn proportions_that_no_weights_have_come_out_as_near_as_they_can() {
    // One per cent for ten Pods is a thousandth each: the least there is is a hundredth of the greatest.
    let mut all = vec![CANARY; 10];
    all.push(STABLE);
    check(shared("track=canary:1"), &all, "10.1.0.11=100");
}

#[test]
fn what_cannot_be_read_is_told_and_counts_as_absent() {
    let bad = "metadata: {annotations: {fairlead.dev/weight: lots}}";
    let (text, notices) = said(service(""), &[bad, ""]);
    assert_eq!(text, None);
    assert_eq!(
        notices,
        [r#"Pod p0 counts as 1: annotation fairlead.dev/weight is "lots", not a number from 0 to 100"#]
    );
    let (text, notices) = said(shared("track=canary:200"), &[STABLE, CANARY]);
    assert_eq!(text, None);
    assert_eq!(
        notices,
        [
            "Annotation fairlead.dev/weights is not followed: \"track=canary:200\" is to end with a colon and a number from \
          0 to 100, as in track=canary:5"
        ]
    );
    let (_, notices) = said(service(""), &[bad; 20]);
    assert_eq!(notices.len(), TOLD);
}

#[test]
fn a_weight_that_comes_and_goes_writes_its_slice_alone() {
    let mut cluster = Cluster::new(service(""), pods(&[""; 6]));
    cluster.max = 2;
    cluster.sync();
    cluster.pods[3].metadata.annotations.insert(WEIGHT.to_owned(), "0".to_owned());
    let changes = cluster.sync();
    assert_eq!((changes.update.len(), changes.writes()), (1, 1));
    assert_eq!(changes.update[0].metadata.annotations[WEIGHT], "10.1.0.4=0");
    cluster.pods[3].metadata.annotations.clear();
    let changes = cluster.sync();
    assert_eq!((changes.update.len(), changes.writes()), (1, 1));
    assert!(changes.update[0].metadata.annotations.is_empty());
}

#[test]
fn a_changed_weight_concerns_the_services_of_a_pod() {
    let (old, mut new) = (pod("p", "10.1.0.1", ""), pod("p", "10.1.0.1", ""));
    assert!(!members::differs(&old, &new));
    new.metadata.annotations.insert("note".to_owned(), "x".to_owned());
    assert!(!members::differs(&old, &new));
    new.metadata.annotations.insert(WEIGHT.to_owned(), "2".to_owned());
    assert!(members::differs(&old, &new));
}

proptest! {
    /// Where the weights can be exact, each group gets its share.
    #[test]
    fn shares_come_out_as_given(share in 1..100u8, canaries in 1..6usize, stables in 1..6usize) {
        let all: Vec<_> = [CANARY].repeat(canaries).into_iter().chain([STABLE].repeat(stables)).collect();
        let (text, _) = said(shared(&format!("track=canary:{share}")), &all);
        let weights = weights::SliceWeights::read(&text.unwrap_or_default(), |part| panic!("{part}"));
        let weight = |at: usize| u64::from(weights.of([10, 1, 0, at as u8 + 1].into()));
        let canary: u64 = (0..canaries).map(weight).sum();
        let total: u64 = (0..all.len()).map(weight).sum();
        prop_assert!((0..all.len()).all(|at| weight(at) > 0));
        // Within half a weight a Pod of what it should be, when the greater one has a hundred.
        let error = (canary as f64 / total as f64 - f64::from(share) / 100.0).abs();
        prop_assert!(error < 0.05, "{canary} of {total} is not {share} of 100");
    }
}
