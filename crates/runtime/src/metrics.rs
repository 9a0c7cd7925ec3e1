//! Metrics of budgets: the limit, the amount in use, the largest holder and the refusals of each.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::budget::{Account, BudgetReport};

#[cfg(test)]
mod tests;

/// Reports the budgets of an account as metrics `fairlead_budget_*`, each with the label `budget`.
#[derive(Debug)]
pub struct BudgetMetrics {
    account: Account,
}

impl BudgetMetrics {
    /// Returns a collector for a metrics registry.
    pub fn new(account: Account) -> BudgetMetrics {
        BudgetMetrics { account }
    }
}

impl Collector for BudgetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let reports = self.account.report();
        let mut gauge = |name: &str, help: &str, value: fn(&BudgetReport) -> u64| -> fmt::Result {
            let mut family =
                encoder.encode_descriptor(name, help, None, prometheus_client::metrics::MetricType::Gauge)?;
            for report in &reports {
                let labels = [("budget", report.name)];
                ConstGauge::new(value(report) as i64).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        gauge("fairlead_budget_limit", "Maximum for all clients together", |report| report.limits.total)?;
        gauge("fairlead_budget_limit_per_client", "Maximum for one client", |report| report.limits.per_sender)?;
        gauge("fairlead_budget_in_use", "Amount in use", |report| report.in_use)?;
        gauge("fairlead_budget_clients", "Clients that hold a part of it", |report| report.senders as u64)?;

        // One series per budget, so that an attacker with many addresses cannot create series.
        let help = "Amount held by the client that holds most";
        let kind = prometheus_client::metrics::MetricType::Gauge;
        let mut family = encoder.encode_descriptor("fairlead_budget_largest_client", help, None, kind)?;
        for report in &reports {
            if let Some((sender, amount)) = &report.largest {
                let labels = [("budget", report.name.to_owned()), ("client", sender.to_string())];
                ConstGauge::new(*amount as i64).encode(family.encode_family(&labels)?)?;
            }
        }

        let help = "Requests for a part of it that were refused, by the limit that was reached";
        let kind = prometheus_client::metrics::MetricType::Counter;
        let mut family = encoder.encode_descriptor("fairlead_budget_refused", help, None, kind)?;
        for report in &reports {
            let counts =
                [("total", report.refused_total), ("client", report.refused_sender), ("evicted", report.evicted)];
            for (limit, count) in counts {
                let labels = [("budget", report.name), ("limit", limit)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
