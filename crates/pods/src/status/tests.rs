use super::*;
use crate::order::order;
use crate::shim::launch::End;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A Pod with an init container and one other, each with a history: `r` starts it, `R` starts it and it is ready, a digit ends it.
fn status(policy: &str, init: &str, main: &str, failed: Option<(&str, &str)>, gates: &[(&str, &str)]) -> Value {
    let gate = |(kind, _): &(&str, &str)| json!({"conditionType": kind});
    let set = gates.iter().filter(|(_, status)| !status.is_empty());
    let pod = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", "generation": 3},
        "spec": {
            "restartPolicy": policy,
            "initContainers": [{"name": "i", "image": "host"}],
            "containers": [{"name": "a", "image": "host"}],
            "readinessGates": gates.iter().map(gate).collect::<Vec<_>>(),
        },
        "status": {
            "qosClass": "Burstable",
            "conditions": set.map(|(kind, status)| json!({"type": kind, "status": status})).collect::<Vec<_>>(),
        },
    });
    let mut units = Unit::all(&pod);
    for (unit, history) in units.iter_mut().zip([init, main]) {
        for letter in history.chars() {
            match letter.to_digit(10) {
                Some(code) => {
                    unit.end(&End { code: code.cast_signed(), signal: 0, at: NOW.to_string(), failure: None })
                }
                None => {
                    unit.start(NOW);
                    (unit.started, unit.ready) = (true, letter == 'R');
                }
            }
        }
    }
    let order = order(super::policy(&pod), &units, NOW);
    render(&Facts {
        pod: &pod,
        before: pod.at("status"),
        units: &units,
        order: &order,
        network: true,
        addresses: &["10.0.0.2".to_owned()],
        host_addresses: &["192.168.0.1".to_owned()],
        began: NOW,
        failed,
        rejected: false,
        now: NOW,
    })
}

/// The phase, then the conditions that are not true with their reasons.
fn check(policy: &str, init: &str, main: &str, expected: &str) {
    check_with(policy, init, main, &[], expected);
}

fn check_with(policy: &str, init: &str, main: &str, gates: &[(&str, &str)], expected: &str) {
    let status = status(policy, init, main, None, gates);
    let mut said = vec![status.text("phase").to_owned()];
    let conditions = status.list("conditions").iter().filter(|condition| condition.text("status") != "True");
    said.extend(conditions.map(|condition| format!("{}={}", condition.text("type"), condition.text("reason"))));
    assert_eq!(said.join(" "), expected, "{policy} {init} {main}");
}

#[test]
fn phases_and_conditions_follow_the_containers() {
    let not_ready = "Ready=ContainersNotReady ContainersReady=ContainersNotReady";
    check("Always", "", "", &format!("Pending Initialized=ContainersNotInitialized {not_ready}"));
    check("Always", "r", "", &format!("Pending Initialized=ContainersNotInitialized {not_ready}"));
    check("Always", "r0", "", &format!("Pending {not_ready}"));
    check("Always", "r0", "r", &format!("Running {not_ready}"));
    check("Always", "r0", "R", "Running");
    check("Always", "r0", "R1", &format!("Running {not_ready}"));
    check("Always", "r0", "R1r1", &format!("Running {not_ready}"));
    check("Never", "r0", "R0", "Succeeded Ready=PodCompleted ContainersReady=PodCompleted");
    check("Never", "r0", "R1", "Failed Ready=PodFailed ContainersReady=PodFailed");
    check("Never", "r1", "", "Failed Initialized=ContainersNotInitialized Ready=PodFailed ContainersReady=PodFailed");
}

#[test]
fn readiness_gates_hold_back_ready_alone() {
    check_with("Always", "r0", "R", &[("example.com/a", "True")], "Running");
    check_with("Always", "r0", "R", &[("example.com/a", "False")], "Running Ready=ReadinessGatesNotReady");
    check_with("Always", "r0", "R", &[("example.com/a", "")], "Running Ready=ReadinessGatesNotReady");
}

#[test]
fn a_container_that_crashes_again_and_again_waits() {
    let status = status("Always", "r0", "r1r1", None, &[]);
    let container = &status.list("containerStatuses")[0];
    let waiting = container.at("state").at("waiting");
    assert_eq!(waiting.text("reason"), "CrashLoopBackOff");
    assert_eq!(waiting.text("message"), "back-off 10s restarting failed container=a pod=web_default(u1)");
    assert_eq!(container.at("lastState").at("terminated").int("exitCode"), 1);
    assert_eq!(container.int("restartCount"), 1);
}

#[test]
fn a_pod_that_failed_as_a_whole_says_why() {
    let status = status("Always", "r0", "R", Some(("DeadlineExceeded", "too long")), &[]);
    assert_eq!((status.text("phase"), status.text("reason")), ("Failed", "DeadlineExceeded"));
    assert_eq!(status.text("message"), "too long");
    assert_eq!(status.text("podIP"), "10.0.0.2");
    assert_eq!(status.int("observedGeneration"), 3);
    assert_eq!(status.list("conditions").len(), 5);
}

#[test]
fn an_evicted_pod_is_the_target_of_a_disruption() {
    let status = status("Always", "r0", "R", Some(("Evicted", "too large")), &[]);
    let last = &status.list("conditions")[5];
    assert_eq!((last.text("type"), last.text("status")), ("DisruptionTarget", "True"));
    assert_eq!((last.text("reason"), last.text("message")), ("TerminationByKubelet", "too large"));
}

/// The reasons for which the containers of the Pod wait, init containers first.
fn waits(policy: &str, init: &str, main: &str) -> Vec<String> {
    let status = status(policy, init, main, None, &[]);
    let all = status.list("initContainerStatuses").iter().chain(status.list("containerStatuses"));
    all.map(|container| container.at("state").at("waiting").text("reason").to_owned()).collect()
}

#[test]
fn containers_of_a_pod_with_init_containers_wait_for_its_initialization() {
    assert_eq!(waits("Always", "", ""), ["PodInitializing", "PodInitializing"]);
    assert_eq!(waits("Always", "r", ""), ["", "PodInitializing"]);
    assert_eq!(waits("Always", "r0", ""), ["", "PodInitializing"]);
    assert_eq!(waits("Never", "r1", ""), ["", "PodInitializing"]);
}
