//! How do controllers do that run in a process of their own? `/metrics` and `/healthz` of `fairlead control`.

use std::net::SocketAddr;

use fairlead_control::Metrics;
use fairlead_monitor::{Format, Process, http as monitor};
use http::StatusCode;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

const TEXT: &str = "text/plain; charset=utf-8";

/// Shows the page until told to stop. Controllers do their work without it, too.
pub(super) async fn serve(metrics: Metrics, address: SocketAddr, stop: CancellationToken) {
    let listener = match monitor::listen(address) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(
                "--metrics-bind-address: cannot listen at {address}: {error}; there are no metrics, name another address"
            );
            return;
        }
    };
    let reply = move |question: monitor::Question| {
        let metrics = metrics.clone();
        async move { answer(&question.path, &metrics) }
    };
    monitor::serve(listener, stop, reply).await;
}

fn answer(path: &str, metrics: &Metrics) -> monitor::Answer {
    match path {
        "/metrics" => monitor::answer(StatusCode::OK, Format::Prometheus.media(), text(metrics)),
        // Who waits for the Lease is as healthy as who has it.
        "/healthz" | "/livez" | "/readyz" => monitor::answer(StatusCode::OK, TEXT, "ok"),
        _ => monitor::not_found(),
    }
}

fn text(metrics: &Metrics) -> String {
    let mut process = Registry::default();
    process.register_collector(Box::new(Process));
    metrics.text(Format::Prometheus) + &fairlead_monitor::write(&process, Format::Prometheus)
}
