use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn service(selector: &Value) -> Change {
    let object = json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "selector": selector, "ports": [{"port": 80, "targetPort": 80}]},
    });
    Change::Service(Key::new("shop", "web"), Some(Arc::new(serde_json::from_value(object).unwrap())))
}

fn gone() -> Change {
    Change::Service(Key::new("shop", "web"), None)
}

/// Changes, and at which second they come.
type At = (u64, Vec<Change>);
/// A reason, and at which second it is told.
type Told = (u64, &'static str);

/// What is told at each second after changes.
fn told(steps: &[At], until: u64) -> Vec<Told> {
    let (mut desk, began, mut all) = (Desk::default(), Instant::now(), Vec::new());
    for second in 0..=until {
        let now = began + Duration::from_secs(second);
        for (_, changes) in steps.iter().filter(|(at, _)| *at == second) {
            desk.apply(changes.clone(), now);
        }
        while desk.next_due().is_some_and(|due| due <= now) {
            all.extend(desk.judge_next(now).map(|(_, news)| (second, news.reason)));
        }
    }
    assert!(desk.due.is_empty() && desk.when.is_empty(), "something is still to be looked at");
    all
}

#[test]
fn what_stays_broken_is_told_once_and_what_is_mended_too() {
    let broken = || service(&json!({"app": "web"}));
    let other = || service(&json!({"app": "web", "tier": "x"}));
    // Without a selector and with no endpoints, it is broken for another cause.
    let by_hand = || service(&Value::Null);
    let cause = |change: Change| {
        let mut objects = Objects::default();
        objects.apply([change]);
        check(&Key::new("shop", "web"), &objects).first.unwrap().as_str()
    };
    let (no_pods, no_hand) = (cause(broken()), cause(by_hand()));
    assert_ne!(no_pods, no_hand);
    let cases: [(&[At], &[Told]); 5] = [
        (&[(0, vec![broken()])], &[(5, no_pods)]),
        // A change that changes nothing is not told again, nor does it put the Event off.
        (&[(0, vec![broken()]), (3, vec![other()]), (8, vec![broken()])], &[(5, no_pods)]),
        // Another cause begins anew.
        (&[(0, vec![broken()]), (3, vec![by_hand()])], &[(8, no_hand)]),
        (&[(0, vec![broken()]), (7, vec![by_hand()])], &[(5, no_pods), (12, no_hand)]),
        // What is gone is not told of.
        (&[(0, vec![broken()]), (4, vec![gone()])], &[]),
    ];
    for (number, (steps, expected)) in cases.into_iter().enumerate() {
        assert_eq!(told(steps, 20), expected, "case {number}");
    }
}

#[test]
fn a_service_that_works_again_is_told_of_only_if_it_was_said_to_be_broken() {
    let external = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"type": "ExternalName", "externalName": "example.com"}});
    let fine =
        || Change::Service(Key::new("shop", "web"), Some(Arc::new(serde_json::from_value(external.clone()).unwrap())));
    let broken = || service(&json!({"app": "web"}));
    assert_eq!(told(&[(0, vec![broken()]), (3, vec![fine()])], 20), []);
    let all = told(&[(0, vec![broken()]), (9, vec![fine()])], 20);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1], (9, MENDED));
}

#[test]
fn messages_fit_into_an_event() {
    let long = "ä".repeat(2000);
    assert!(words(&long, Some(&"kubectl".to_owned())).len() <= LONGEST);
    assert_eq!(words("it is so", Some(&"kubectl get".to_owned())), "it is so; try: kubectl get");
    assert_eq!(words("it is so", None), "it is so");
}
