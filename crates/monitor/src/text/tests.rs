use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::*;
use crate::PlainCounter;

fn registry() -> Registry {
    let (plain, usual, times) = (PlainCounter::default(), Counter::<u64>::default(), Histogram::new([0.5, 10.0]));
    plain.inc();
    usual.inc();
    times.observe(2.0);
    let mut registry = Registry::default();
    registry.register("syncs", "Syncs", plain);
    registry.register("adds", "Adds", usual);
    registry.register("seconds", "Seconds", times);
    registry
}

#[test]
fn the_older_format_has_counters_with_and_without_total_and_whole_bounds() {
    let want = "# HELP syncs Syncs\n# TYPE syncs counter\nsyncs 1\n\
        # HELP adds_total Adds\n# TYPE adds_total counter\nadds_total 1\n\
        # HELP seconds Seconds\n# TYPE seconds histogram\nseconds_sum 2.0\nseconds_count 1\n\
        seconds_bucket{le=\"0.5\"} 0\nseconds_bucket{le=\"10\"} 1\nseconds_bucket{le=\"+Inf\"} 1\n";
    assert_eq!(write(&registry(), Format::Prometheus), want);
}

#[test]
fn openmetrics_knows_no_counter_without_total() {
    let text = write(&registry(), Format::OpenMetrics);
    assert!(text.starts_with("# HELP syncs Syncs.\n# TYPE syncs unknown\nsyncs 1\n"), "{text}");
    assert!(text.contains("# TYPE adds counter\nadds_total 1\n") && text.ends_with("# EOF\n"), "{text}");
}
