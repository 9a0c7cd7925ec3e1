use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;

use super::*;
use crate::backends::{Backend, Stage};
use crate::engine::ListenerKey;

fn listener(name: &str, totals: Totals, backends: Vec<BackendStatus>) -> ListenerStatus {
    let service = Arc::new(Key::new("shop", name));
    let key = ListenerKey { service, port: 443, protocol: Protocol::Tcp };
    ListenerStatus { key, addresses: Vec::new(), totals, backends, fails_open: false }
}

fn backend(address: &str, health: Health, ejected: Option<Duration>) -> BackendStatus {
    let address = address.parse().expect("an address");
    let backend = Backend { address, weight: 3, node: None, zone: None, stage: Stage::Ready };
    BackendStatus { backend, health, ejected, active: 2, total: 40, failures: 5 }
}

fn lines(metrics: &Metrics) -> Vec<String> {
    let text = metrics.text(Format::Prometheus);
    text.lines().filter(|line| line.starts_with("fairlead_")).map(str::to_owned).collect()
}

#[test]
fn listeners_and_backends_are_told_of_by_what_they_are() {
    let metrics = Metrics::new();
    metrics.ask_listeners(|| {
        let totals = Totals { accepted: 7, active: 1, answers_2xx: 9, bad_handshakes: 4, ..Totals::default() };
        let backends = vec![
            backend("10.0.0.1:80", Health::Healthy, None),
            backend("[fd00::2]:80", Health::Unhealthy, Some(Duration::from_secs(3))),
        ];
        vec![listener("web", totals, backends), listener("api", Totals::default(), Vec::new())]
    });
    let lines = lines(&metrics);
    let web = r#"namespace="shop",service="web",port="443/TCP""#;
    let expected = [
        format!("fairlead_balancer_connections_total{{{web}}} 7"),
        format!("fairlead_balancer_active_connections{{{web}}} 1"),
        format!("fairlead_balancer_requests_total{{{web},code=\"2xx\"}} 9"),
        format!("fairlead_balancer_requests_total{{{web},code=\"5xx\"}} 0"),
        format!("fairlead_balancer_connection_failures_total{{{web},reason=\"tls_handshake\"}} 4"),
        format!("fairlead_balancer_backend_up{{{web},backend=\"10.0.0.1:80\"}} 1"),
        format!("fairlead_balancer_backend_up{{{web},backend=\"[fd00::2]:80\"}} 0"),
        format!("fairlead_balancer_backend_ejected{{{web},backend=\"[fd00::2]:80\"}} 1"),
        format!("fairlead_balancer_backend_chosen_total{{{web},backend=\"10.0.0.1:80\"}} 40"),
        "fairlead_balancer_backends_omitted 0".to_owned(),
    ];
    for line in expected {
        assert!(lines.contains(&line), "{line} is not in\n{}", lines.join("\n"));
    }
}

#[test]
fn a_metric_is_described_once() {
    let metrics = Metrics::new();
    metrics.ask_listeners(|| {
        vec![listener("web", Totals::default(), vec![backend("10.0.0.1:80", Health::Unknown, None)])]
    });
    let text = metrics.text(Format::OpenMetrics);
    let mut described: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let count = described.len();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), count);
    assert!(count > LISTENER.len() - 13, "each name has a description");
}

#[test]
fn other_parts_tell_what_they_know() {
    let metrics = Metrics::new();
    assert_eq!(lines(&metrics), Vec::<String>::new());
    let sample = |pool: &str, value| Sample {
        name: "pool_addresses_free",
        help: "Addresses a pool has left",
        kind: Kind::Gauge,
        labels: vec![("pool", pool.to_owned())],
        value,
    };
    metrics.ask(move || vec![sample("lan", 12), sample("internal", 3)]);
    metrics.ask(|| {
        let (name, help) = ("access_log_lines_lost", "Lines of access logs that were lost");
        vec![Sample { name, help, kind: Kind::Counter, labels: Vec::new(), value: 1 }]
    });
    assert_eq!(
        lines(&metrics),
        [
            "fairlead_balancer_pool_addresses_free{pool=\"lan\"} 12",
            "fairlead_balancer_pool_addresses_free{pool=\"internal\"} 3",
            "fairlead_balancer_access_log_lines_lost_total 1",
        ]
    );
}
