use fairlead_api::source::Key;
use fairlead_plan::PortKey;

use super::*;
use crate::{Counters, Traffic};

const BOTH: [Family; 2] = [Family::V4, Family::V6];

fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect()
}

/// Everything is counted once.
fn busy(mode: Mode) -> Metrics {
    let metrics = Metrics::new(mode, &BOTH);
    metrics.changes(2, 3);
    metrics.synced(Extent::Full, Duration::from_millis(3));
    metrics.synced(Extent::Partial, Duration::from_micros(300));
    metrics.changes(1, 0);
    metrics.sync_failed(Extent::Full);
    metrics.sync_failed(Extent::Partial);
    metrics.programmed(Family::V4, Duration::from_millis(700));
    metrics.no_local_endpoints(Policy::Internal, Family::V4, 1);
    metrics.no_local_endpoints(Policy::External, Family::V6, 0);
    metrics.flows_reconciled(Family::V4, Duration::from_millis(1), 4);
    metrics.iptables_rules("nat", Family::V4, 12, 3);
    metrics.probed(Probe::Healthz, 200);
    metrics.repaired();
    metrics
}

#[test]
fn names_types_and_labels_are_those_of_kube_proxy() {
    let text = busy(Mode::Nftables).text(Format::Prometheus);
    let expected = [
        "kubeproxy_sync_proxy_rules_duration_seconds histogram",
        "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds gauge",
        "kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge",
        "kubeproxy_sync_proxy_rules_endpoint_changes_pending gauge",
        "kubeproxy_sync_proxy_rules_endpoint_changes_total counter",
        "kubeproxy_sync_proxy_rules_service_changes_pending gauge",
        "kubeproxy_sync_proxy_rules_service_changes_total counter",
        "kubeproxy_proxy_healthz_total counter",
        "kubeproxy_network_programming_duration_seconds histogram",
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge",
        "kubeproxy_sync_full_proxy_rules_duration_seconds histogram",
        "kubeproxy_sync_partial_proxy_rules_duration_seconds histogram",
        "kubeproxy_sync_proxy_rules_nftables_sync_failures_total counter",
        "kubeproxy_conntrack_reconciler_sync_duration_seconds histogram",
        "kubeproxy_conntrack_reconciler_deleted_entries_total counter",
        "fairlead_proxy_drift_repairs_total counter",
        "process_open_fds gauge",
        "process_cpu_seconds_total counter",
        "process_start_time_seconds gauge",
        "process_resident_memory_bytes gauge",
        "process_virtual_memory_bytes gauge",
        "process_max_fds gauge",
    ];
    for name in expected {
        assert!(names(&text).contains(&name), "{name} in\n{text}");
    }
    for line in [
        "kubeproxy_sync_proxy_rules_endpoint_changes_total 3",
        "kubeproxy_sync_proxy_rules_service_changes_total 3",
        "kubeproxy_sync_proxy_rules_service_changes_pending 1",
        "kubeproxy_sync_proxy_rules_endpoint_changes_pending 0",
        "kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv6\"} 2",
        "kubeproxy_sync_full_proxy_rules_duration_seconds_bucket{le=\"0.004\",ip_family=\"IPv4\"} 1",
        "kubeproxy_network_programming_duration_seconds_bucket{le=\"1\",ip_family=\"IPv4\"} 1",
        "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"internal\",ip_family=\"IPv4\"} 1",
        "kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family=\"IPv4\"} 2",
        "kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family=\"IPv4\"} 4",
        "fairlead_proxy_drift_repairs_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(!text.contains("iptables") && !text.contains("# EOF"));
    let buckets = text.lines().filter(|line| {
        line.starts_with("kubeproxy_network_programming_duration_seconds_bucket") && line.contains("IPv4")
    });
    assert_eq!(buckets.count(), 2 + 59 + 12 + 7 + 1);
}

#[test]
fn a_mode_has_its_own_metrics() {
    let check = |mode: Mode, has: &[&str], lacks: &[&str]| {
        let text = busy(mode).text(Format::Prometheus);
        for part in has {
            assert!(text.contains(&format!("# TYPE kubeproxy_{part}")), "{mode} {part}");
        }
        for part in lacks {
            assert!(!text.contains(&format!("kubeproxy_{part}")), "{mode} {part}");
        }
    };
    let iptables = [
        "sync_proxy_rules_iptables_total gauge",
        "sync_proxy_rules_iptables_last gauge",
        "sync_proxy_rules_iptables_restore_failures_total counter",
        "sync_proxy_rules_iptables_partial_restore_failures_total counter",
        "sync_full_proxy_rules_duration_seconds histogram",
    ];
    check(Mode::Iptables, &iptables, &["sync_proxy_rules_nftables"]);
    check(
        Mode::Ipvs,
        &["sync_proxy_rules_iptables_restore_failures_total counter"],
        &["sync_full", "sync_proxy_rules_iptables_total"],
    );
    check(
        Mode::Userspace,
        &["sync_proxy_rules_duration_seconds histogram"],
        &["conntrack", "sync_proxy_rules_iptables"],
    );
}

#[test]
fn who_asks_for_openmetrics_gets_it() {
    let accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3";
    assert_eq!(Format::wanted(accept), Format::OpenMetrics);
    assert_eq!(Format::wanted("*/*"), Format::Prometheus);
    let text = busy(Mode::Nftables).text(Format::OpenMetrics);
    assert!(text.ends_with("# EOF\n") && text.contains("# TYPE process_cpu_seconds counter\n"));
}

#[test]
fn what_the_process_uses_is_told() {
    let text = Metrics::new(Mode::Nftables, &BOTH).text(Format::Prometheus);
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
    };
    let now = seconds(Timestamp::now());
    assert!((now - value("process_start_time_seconds")).abs() < 3600.0);
    assert!(value("process_resident_memory_bytes") > 1e6 && value("process_open_fds") >= 3.0);
    assert!(value("process_max_fds") >= value("process_open_fds"));
    assert!(value("process_cpu_seconds_total") >= 0.0);
}

#[test]
fn traffic_is_told_by_service_and_endpoint_and_fetched_once_a_second() {
    let metrics = Metrics::new(Mode::Nftables, &BOTH);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let port = PortKey {
        service: Arc::new(Key::new("ns", "web")),
        name: "http".into(),
        protocol: fairlead_api::view::Protocol::Tcp,
        family: Family::V4,
    };
    let traffic = Traffic { connections: 1, packets: 2, bytes: 120, back: None };
    let endpoint = "10.1.2.3:8080".parse().expect("an address");
    metrics.count_with(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let counters = Counters { endpoints: [((port.clone(), endpoint), traffic)].into(), ..Counters::default() };
        Some(Tallies::of(counters, true, &fairlead_plan::Plan::default()))
    });
    for _ in 0..3 {
        let text = metrics.text(Format::Prometheus);
        let labels = r#"{namespace="ns",service="web",port="http",endpoint="10.1.2.3:8080"}"#;
        for (unit, value) in [("connections", 1), ("packets", 2), ("bytes", 120)] {
            let line = format!("fairlead_proxy_endpoint_{unit}_total{labels} {value}");
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(names(&text).contains(&"fairlead_proxy_service_bytes_total counter"));
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn names_and_addresses_from_outside_cannot_break_the_text() {
    let metrics = Metrics::new(Mode::Nftables, &BOTH);
    let port = PortKey {
        service: Arc::new(Key::new("n\"s", "we\\b")),
        name: "a\nb".into(),
        protocol: fairlead_api::view::Protocol::Tcp,
        family: Family::V4,
    };
    let endpoint = "[::1]:1".parse().expect("an address");
    metrics.count_with(move || {
        let counters =
            Counters { endpoints: [((port.clone(), endpoint), Traffic::default())].into(), ..Counters::default() };
        Some(Tallies::of(counters, true, &fairlead_plan::Plan::default()))
    });
    let text = metrics.text(Format::Prometheus);
    let expected =
        r#"fairlead_proxy_endpoint_bytes_total{namespace="n\"s",service="we\\b",port="a\nb",endpoint="[::1]:1"} 0"#;
    assert!(text.lines().any(|line| line == expected), "{text}");
}
