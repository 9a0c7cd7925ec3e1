use serde_json::json;

use super::*;
use crate::shim::launch::End;

fn check(metrics: &Metrics, want: &[&str]) {
    let text = metrics.text(Format::Prometheus);
    for want in want {
        assert!(text.lines().any(|line| line == *want), "no {want} in\n{text}");
    }
}

#[test]
fn what_runs_is_counted_until_the_pod_is_gone() {
    let metrics = Metrics::new();
    let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}});
    let (mut units, now) = (Unit::all(&pod), jiff::Timestamp::UNIX_EPOCH);
    let (mut one, mut other) = (metrics.share(), metrics.share());
    one.set(&units);
    let exited = "kubelet_running_containers{container_state=\"exited\"}";
    let running = "kubelet_running_containers{container_state=\"running\"}";
    check(&metrics, &["kubelet_running_pods 0", &format!("{running} 0")]);
    units.iter_mut().for_each(|unit| unit.start(now));
    units[0].end(&End { code: 0, signal: 0, at: String::new(), failure: None });
    one.set(&units);
    other.set(&units);
    check(&metrics, &["kubelet_running_pods 2", &format!("{running} 4"), &format!("{exited} 2")]);
    drop(one);
    check(&metrics, &["kubelet_running_pods 1", &format!("{running} 2"), &format!("{exited} 1")]);
}

#[test]
fn probes_are_counted_by_kind_and_result() {
    let metrics = Metrics::new();
    metrics.probed(Kind::Readiness, &Outcome::Success, Duration::from_secs(1));
    metrics.probed(Kind::Readiness, &Outcome::Warning("moved".to_owned()), Duration::from_secs(1));
    metrics.probed(Kind::Liveness, &Outcome::Failure("500".to_owned()), Duration::from_secs(2));
    check(
        &metrics,
        &[
            "prober_probe_total{probe_type=\"Readiness\",result=\"successful\"} 2",
            "prober_probe_total{probe_type=\"Liveness\",result=\"failed\"} 1",
            "prober_probe_duration_seconds_sum{probe_type=\"Liveness\"} 2.0",
        ],
    );
}

#[test]
fn ends_of_containers_are_counted_by_exit_code() {
    let metrics = Metrics::new();
    metrics.container_terminated(Role::Main, 139);
    metrics.container_terminated(Role::Main, 139);
    metrics.container_terminated(Role::Init, 0);
    check(
        &metrics,
        &[
            "kubelet_terminated_containers_total{container_type=\"container\",exit_code=\"139\"} 2",
            "kubelet_terminated_containers_total{container_type=\"init_container\",exit_code=\"0\"} 1",
        ],
    );
}
