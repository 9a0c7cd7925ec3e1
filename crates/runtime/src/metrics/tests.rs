use prometheus_client::registry::Registry;

use super::*;
use crate::budget::{Limits, Sender};

#[test]
fn each_budget_is_reported_with_its_largest_client_and_its_refusals() {
    let account = Account::default();
    let budget = account.budget("api connections", Limits { total: 10, per_sender: 2 });
    let small = Sender::User("bob".into());
    let large = Sender::from_address("192.0.2.1".parse().unwrap());
    let _held = (budget.acquire(&small, 1).unwrap(), budget.acquire(&large, 2).unwrap());
    budget.acquire(&large, 1).unwrap_err();

    let mut registry = Registry::default();
    registry.register_collector(Box::new(BudgetMetrics::new(account)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "fairlead_budget_limit{budget=\"api connections\"} 10",
        "fairlead_budget_limit_per_client{budget=\"api connections\"} 2",
        "fairlead_budget_in_use{budget=\"api connections\"} 3",
        "fairlead_budget_clients{budget=\"api connections\"} 2",
        "fairlead_budget_largest_client{budget=\"api connections\",client=\"192.0.2.1\"} 2",
        "fairlead_budget_refused_total{budget=\"api connections\",limit=\"client\"} 1",
        "fairlead_budget_refused_total{budget=\"api connections\",limit=\"total\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}
