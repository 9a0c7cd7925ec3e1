use std::sync::atomic::{AtomicU16, Ordering};

use fairlead_plan::NodePortAddresses;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::Mode;
use fairlead_testkit::http::get;

const PERIOD: Duration = Duration::from_secs(30);

fn health() -> Health {
    let families = [Family::V4, Family::V6];
    Health::new(PERIOD, &families, Metrics::new(Mode::Nftables, &families))
}

fn time() -> Timestamp {
    "2026-01-02T03:04:05.06Z".parse().expect("a time")
}

#[test]
fn a_proxy_that_starts_is_well_and_has_no_history() {
    let health = health();
    let now = Instant::now();
    health.queued_at(now);
    let (status, body) = health.report(Probe::Healthz, now + 10 * PERIOD, time());
    assert_eq!(status, 200);
    let expected = r#"{"lastUpdated":"2026-01-02T03:04:05.06Z","currentTime":"2026-01-02T03:04:05.06Z","nodeEligible":true,"healthy":true}"#;
    assert_eq!(body, expected);
}

#[test]
fn an_update_that_waits_for_two_periods_is_a_proxy_that_hangs() {
    let check = |waits: Duration, healthy: bool| {
        let health = health();
        let now = Instant::now();
        health.updated_at(now);
        health.queued_at(now);
        // Only the first counts.
        health.queued_at(now + waits);
        let (status, body) = health.report(Probe::Livez, now + waits, time());
        assert_eq!(status.is_success(), healthy, "{body}");
        assert!(body.contains(&format!("\"healthy\":{healthy},\"status\":{{\"IPv4\"")), "{body}");
        health.updated_at(now + waits);
        assert_eq!(health.report(Probe::Livez, now + waits, time()).0, 200, "mended by an update");
    };
    check(2 * PERIOD - Duration::from_secs(1), true);
    check(2 * PERIOD, false);
}

#[test]
fn nothing_that_waits_is_no_problem_however_long_ago_the_last_update_was() {
    let health = health();
    let now = Instant::now();
    health.updated_at(now);
    let (status, body) = health.report(Probe::Healthz, now + 100 * PERIOD, time());
    assert_eq!(status, 200);
    assert_eq!(
        body,
        r#"{"lastUpdated":"2026-01-02T03:04:05.06Z","currentTime":"2026-01-02T03:04:05.06Z","nodeEligible":true,"healthy":true,"status":{"IPv4":{"lastUpdated":"2026-01-02T02:14:05.06Z","healthy":true},"IPv6":{"lastUpdated":"2026-01-02T02:14:05.06Z","healthy":true}}}"#
    );
}

#[test]
fn a_node_that_goes_fails_healthz_but_not_livez() {
    let health = health();
    let now = Instant::now();
    health.updated_at(now);
    health.node(false);
    let (status, body) = health.report(Probe::Healthz, now + Duration::from_secs(5), time());
    assert_eq!(status, 503);
    assert!(body.starts_with(r#"{"lastUpdated":"2026-01-02T03:04:00.06Z","currentTime":"2026-01-02T03:04:05.06Z","nodeEligible":false,"healthy":true"#), "{body}");
    let (status, body) = health.report(Probe::Livez, now, time());
    assert_eq!(status, 200);
    assert!(!body.contains("nodeEligible"), "{body}");
}

#[test]
fn which_nodes_get_traffic() {
    let check = |node: serde_json::Value, expected: bool| {
        let node: view::Node = serde_json::from_value(node).expect("a Node");
        assert_eq!(eligible(Some(&node)), expected);
    };
    check(serde_json::json!({"metadata": {"name": "n"}}), true);
    check(
        serde_json::json!({"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}}),
        true,
    );
    check(serde_json::json!({"spec": {"taints": [{"key": "a"}, {"key": "ToBeDeletedByClusterAutoscaler"}]}}), false);
    check(serde_json::json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}), false);
    check(serde_json::json!({"spec": {"taints": null}}), true);
    assert!(!eligible(None));
}

/// Ports for tests; others on the machine may have them, so each is tried.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = 20_000 + (std::process::id() as u16 % 8_000) + NEXT.fetch_add(1, Ordering::Relaxed);
        let free = |host: &str| std::net::TcpListener::bind((host, port)).is_ok();
        if free("0.0.0.0") && (free("::1") || !has_six()) {
            return port;
        }
    }
}

fn has_six() -> bool {
    std::net::TcpListener::bind("[::1]:0").is_ok()
}

fn check(port: u16, endpoints: &[(Family, usize)]) -> HealthCheck {
    let local_endpoints = endpoints.iter().copied().collect();
    HealthCheck { service: Arc::new(Key::new("ns", "web")), port, local_endpoints }
}

fn change(old: Option<HealthCheck>, new: Option<HealthCheck>) -> Delta<Arc<Key>, HealthCheck> {
    Delta { key: Arc::new(Key::new("ns", "web")), old, new }
}

fn node(ranges: &[&str]) -> Node {
    let ranges = ranges.iter().map(|range| range.parse().expect("a range")).collect();
    let addresses = ["127.0.0.1", "::1"].iter().map(|ip| ip.parse().expect("an address")).collect();
    let places = NodePortAddresses::Ranges(ranges);
    Node { addresses, node_port_addresses: places, localhost_node_ports: true, ..Node::default() }
}

/// Serves, and stops when dropped.
struct Running(CancellationToken);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn run(health: &Health, healthz: Option<SocketAddr>) -> Running {
    let stop = CancellationToken::new();
    let listeners = Listeners { healthz, hard_fail: false, node: "n".to_owned(), recorder: None };
    tokio::spawn(serve(health.clone(), listeners, stop.clone()));
    Running(stop)
}

async fn open(address: SocketAddr) {
    while tokio::net::TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
}

async fn closed(address: SocketAddr) {
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_port_of_the_proxy_answers_two_questions() {
    let health = health();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _running = run(&health, Some(address));
    open(address).await;
    let (status, head, body) = get(address, "/healthz").await;
    assert_eq!(status, 200);
    assert!(
        head.contains("content-type: application/json\r\n") && head.contains("x-content-type-options: nosniff"),
        "{head}"
    );
    assert!(body.contains("\"nodeEligible\":true"), "{body}");
    health.node(false);
    assert_eq!(get(address, "/healthz").await.0, 503);
    assert_eq!(get(address, "/livez").await.0, 200);
    assert_eq!(get(address, "/nope").await, (404, get(address, "/nope").await.1, "404 page not found\n".to_owned()));
    let text = health.shared.metrics.text(crate::metrics::Format::Prometheus);
    for line in [
        "kubeproxy_proxy_healthz_total{code=\"200\"} 1",
        "kubeproxy_proxy_healthz_total{code=\"503\"} 1",
        "kubeproxy_proxy_livez_total{code=\"200\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[tokio::test]
async fn the_port_of_a_service_says_how_many_endpoints_are_here() {
    let health = health();
    let port = free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let _running = run(&health, None);
    health.listen_as(&node(&["127.0.0.0/8", "::1/128"]));
    let two = check(port, &[(Family::V4, 2), (Family::V6, 0)]);
    health.checks(&[change(None, Some(two.clone()))]);
    open(address).await;
    let (status, head, body) = get(address, "/any/path").await;
    assert_eq!(status, 200);
    assert!(head.contains("x-load-balancing-endpoint-weight: 2"), "{head}");
    assert_eq!(
        body,
        "{\n\t\"service\": {\n\t\t\"namespace\": \"ns\",\n\t\t\"name\": \"web\"\n\t},\n\t\"localEndpoints\": 2,\n\t\"serviceProxyHealthy\": true\n}"
    );
    health.checks(&[change(Some(two.clone()), Some(check(port, &[(Family::V4, 0)])))]);
    let (status, head, _) = get(address, "/").await;
    assert_eq!(status, 503);
    assert!(head.contains("x-load-balancing-endpoint-weight: 0"), "{head}");
    health.checks(&[change(Some(two), None)]);
    closed(address).await;
}

#[tokio::test]
async fn a_proxy_that_hangs_fails_the_ports_of_services() {
    let health = health();
    let port = free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let _running = run(&health, None);
    health.listen_as(&node(&["127.0.0.0/8"]));
    health.checks(&[change(None, Some(check(port, &[(Family::V4, 1)])))]);
    open(address).await;
    health.updated();
    let Some(before) = Instant::now().checked_sub(3 * PERIOD) else { return };
    health.queued_at(before);
    let (status, _, body) = get(address, "/").await;
    assert!(status == 503 && body.contains("\"serviceProxyHealthy\": false"), "{status} {body}");
}

#[tokio::test]
async fn each_family_has_its_own_count_and_another_port_takes_the_place_of_the_first() {
    if !has_six() {
        return;
    }
    let health = health();
    let (first, second) = (free_port(), free_port());
    let _running = run(&health, None);
    health.listen_as(&node(&[]));
    let old = check(first, &[(Family::V4, 1), (Family::V6, 3)]);
    health.checks(&[change(None, Some(old.clone()))]);
    let (four, six) = (SocketAddr::from(([127, 0, 0, 1], first)), SocketAddr::from((Ipv6Addr::LOCALHOST, first)));
    open(four).await;
    open(six).await;
    assert!(get(four, "/").await.1.contains("weight: 1") && get(six, "/").await.1.contains("weight: 3"));
    health.checks(&[change(Some(old), Some(check(second, &[(Family::V4, 1)])))]);
    open(SocketAddr::from(([127, 0, 0, 1], second))).await;
    closed(four).await;
    closed(six).await;
    assert!(tokio::net::TcpStream::connect((Ipv6Addr::LOCALHOST, second)).await.is_err(), "not of that family");
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_taken_is_tried_again() {
    let health = health();
    let taken = crate::http::listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = taken.local_addr().expect("its address");
    let _running = run(&health, None);
    health.listen_as(&node(&["127.0.0.0/8"]));
    health.checks(&[change(None, Some(check(address.port(), &[(Family::V4, 1)])))]);
    tokio::time::sleep(2 * serve::RETRY).await;
    drop(taken);
    tokio::time::sleep(2 * serve::RETRY).await;
    open(address).await;
}

#[tokio::test]
async fn a_port_that_must_be_had_and_cannot_is_the_end() {
    let taken = crate::http::listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let healthz = Some(taken.local_addr().expect("its address"));
    let listeners = Listeners { healthz, hard_fail: true, node: "n".to_owned(), recorder: None };
    let error = serve(health(), listeners, CancellationToken::new()).await.expect_err("the port is taken");
    assert!(error.to_string().starts_with("listening for healthz at 127.0.0.1:"), "{error}");
}

#[test]
fn ports_listen_where_node_ports_are_served() {
    let check = |places: &NodePorts, family: Family, expected: &[&str]| {
        let found: Vec<String> = addresses(places, family).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    };
    let only = |ranges: &[&str]| NodePorts::Only(ranges.iter().map(|range| range.parse().expect("a range")).collect());
    check(&NodePorts::All { loopback: false }, Family::V4, &["0.0.0.0"]);
    check(&NodePorts::All { loopback: true }, Family::V6, &["::"]);
    check(&only(&["192.0.2.1/32", "127.0.0.0/8"]), Family::V4, &["192.0.2.1", "127.0.0.1"]);
    check(&only(&["127.3.0.0/16"]), Family::V4, &["127.3.0.0"]);
    check(&only(&["2001:db8::1/128"]), Family::V6, &["2001:db8::1"]);
}
