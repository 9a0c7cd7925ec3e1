//! What the server's `/metrics` tells of the cluster beside its requests: Services by verdict, endpoints, Pods, Nodes, controllers, the
//! Pods and the DNS server of this machine.

use fairlead_explain::{Objects, Verdict};
use fairlead_monitor::Format;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Ui;
use super::board::Rows;

/// What of the process the server tells itself.
const PROCESS: [&str; 3] = ["process_", "# HELP process_", "# TYPE process_"];

/// All of it, as Prometheus reads it.
pub(super) async fn text(ui: &Ui) -> String {
    let mut registry = Registry::default();
    // Who asks too early is told nothing of the cluster: Prometheus waits ten seconds, and then has nothing at all.
    if let Some(board) = ui.board.soon().await {
        services(&mut registry, &board.rows());
        members(&mut registry, &board.objects());
    }
    let mut text = fairlead_monitor::write(&registry, Format::Prometheus);
    text.push_str(&ui.here.control.text(Format::Prometheus));
    text.push_str(&ui.here.pods.text(Format::Prometheus));
    for line in ui.here.names.text(Format::Prometheus).lines() {
        if !PROCESS.iter().any(|prefix| line.starts_with(prefix)) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// What something is counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    state: String,
}

/// A gauge for each state, with its number.
fn gauges(registry: &mut Registry, name: &str, help: &str, states: impl IntoIterator<Item = (String, usize)>) {
    let family = Family::<Of, Gauge>::default();
    for (state, number) in states {
        family.get_or_create(&Of { state }).inc_by(i64::try_from(number).unwrap_or(i64::MAX));
    }
    registry.register(name, help, family);
}

fn services(registry: &mut Registry, rows: &Rows) {
    let verdicts = [Verdict::Ok, Verdict::Warn, Verdict::Broken];
    let states = verdicts.map(|verdict| (verdict.to_string(), rows.count(verdict)));
    gauges(registry, "fairlead_services", "Services by what is the matter with them: ok, warn or broken", states);
}

fn members(registry: &mut Registry, objects: &Objects) {
    let ready = objects.slices().flat_map(|(_, slice)| &slice.endpoints).map(|endpoint| {
        let ready = endpoint.conditions.ready.unwrap_or(true);
        (if ready { "ready" } else { "notReady" }.to_owned(), 1)
    });
    gauges(registry, "fairlead_endpoints", "Endpoints in EndpointSlices", ready);
    let phases = objects.pods().map(|(_, pod)| (pod.view.status.phase.to_string(), 1));
    gauges(registry, "fairlead_pods", "Pods by phase", phases);
    let nodes = objects.nodes().map(|node| (if node.is_ready() { "ready" } else { "notReady" }.to_owned(), 1));
    gauges(registry, "fairlead_nodes", "Nodes by whether they are ready", nodes);
}
