use super::*;
use crate::ask::Transport;

fn seen() -> Seen {
    Seen {
        transport: Transport::Udp,
        ipv6: false,
        rtype: words::A,
        dnssec_ok: true,
        rcode: Rcode::NO_ERROR,
        plugin: "kubernetes",
        request: 50,
        response: 600,
        took: Duration::from_micros(300),
    }
}

#[test]
fn names_and_labels_are_those_of_coredns() {
    let metrics = Metrics::new();
    metrics.counts("dns://:53", ".").seen(&seen());
    metrics.forwarded(([192, 0, 2, 1], 53).into(), Rcode::NX_DOMAIN, Duration::from_millis(3));
    metrics.connected(([192, 0, 2, 1], 53).into(), "udp", true);
    metrics.healthcheck_failed(([192, 0, 2, 1], 53).into());
    metrics.programmed(Duration::from_millis(30));
    metrics.cache("dns://:53", ".").hit("success");
    let text = metrics.text(Format::Prometheus);
    for line in [
        "coredns_build_info{version=\"",
        "coredns_dns_requests_total{server=\"dns://:53\",zone=\".\",view=\"\",proto=\"udp\",family=\"1\",type=\"A\"} 1",
        "coredns_dns_do_requests_total{server=\"dns://:53\",zone=\".\",view=\"\"} 1",
        "coredns_dns_responses_total{server=\"dns://:53\",zone=\".\",view=\"\",rcode=\"NOERROR\",plugin=\"kubernetes\"} 1",
        "coredns_dns_request_duration_seconds_bucket{le=\"0.00025\",server=\"dns://:53\",zone=\".\",view=\"\",type=\"A\"} 0",
        "coredns_dns_request_duration_seconds_bucket{le=\"0.0005\",server=\"dns://:53\",zone=\".\",view=\"\",type=\"A\"} 1",
        "coredns_dns_request_size_bytes_bucket{le=\"100\",server=\"dns://:53\",zone=\".\",view=\"\",proto=\"udp\"} 1",
        "coredns_dns_response_size_bytes_bucket{le=\"511\",server=\"dns://:53\",zone=\".\",view=\"\",proto=\"udp\"} 0",
        "coredns_dns_response_size_bytes_bucket{le=\"+Inf\",server=\"dns://:53\",zone=\".\",view=\"\",proto=\"udp\"} 1",
        "coredns_dns_response_size_bytes_sum{server=\"dns://:53\",zone=\".\",view=\"\",proto=\"udp\"} 600",
        "coredns_forward_requests_total{to=\"192.0.2.1:53\"} 1",
        "coredns_forward_responses_total{to=\"192.0.2.1:53\",rcode=\"NXDOMAIN\"} 1",
        "coredns_proxy_request_duration_seconds_count{proxy_name=\"forward\",to=\"192.0.2.1:53\",rcode=\"NXDOMAIN\"} 1",
        "coredns_proxy_conn_cache_hits_total{proxy_name=\"forward\",to=\"192.0.2.1:53\",proto=\"udp\"} 1",
        "coredns_proxy_healthcheck_failures_total{proxy_name=\"forward\",to=\"192.0.2.1:53\"} 1",
        "coredns_forward_healthcheck_broken_total 0",
        "coredns_forward_max_concurrent_rejects_total 0",
        "coredns_cache_hits_total{server=\"dns://:53\",type=\"success\",zones=\".\",view=\"\"} 1",
        "coredns_kubernetes_dns_programming_duration_seconds_count{service_kind=\"headless_with_selector\"} 1",
        "coredns_panics_total 0",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}\n{text}");
    }
}

#[test]
fn buckets_are_those_of_coredns() {
    let check = |micros: u64, bound: &str| {
        let metrics = Metrics::new();
        metrics.counts("s", "z").seen(&Seen { took: Duration::from_micros(micros), ..seen() });
        let text = metrics.text(Format::Prometheus);
        let bucket = text.lines().filter(|line| line.starts_with("coredns_dns_request_duration_seconds_bucket"));
        let first = bucket.map(str::to_owned).find(|line| line.ends_with(" 1")).expect("a bucket");
        assert!(first.contains(&format!("le=\"{bound}\"")), "{micros}: {first}");
    };
    check(0, "0.00025");
    check(250, "0.00025");
    check(251, "0.0005");
    check(1000, "0.001");
    check(1001, "0.002");
    check(8_192_000, "8.192");
    check(8_193_000, "+Inf");
}
