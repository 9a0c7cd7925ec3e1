//! Which containers of a Pod must be started now? Init containers one after the other, then all others; again by the restart
//! policy, and not too often. Pure.

use jiff::Timestamp;

use crate::unit::{Role, State, Unit};

#[cfg(test)]
mod tests;

/// Whether containers that end are started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    OnFailure,
    Never,
}

impl Policy {
    pub(crate) fn read(text: &str) -> Policy {
        match text {
            "Never" => Policy::Never,
            "OnFailure" => Policy::OnFailure,
            _ => Policy::Always,
        }
    }

    /// Whether one that ended with this code is.
    pub(crate) fn again(self, code: i32) -> bool {
        match self {
            Policy::Always => true,
            Policy::OnFailure => code != 0,
            Policy::Never => false,
        }
    }
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Order {
    /// Start these.
    pub(crate) start: Vec<usize>,
    /// These wait for their time.
    pub(crate) held_back: Vec<usize>,
    /// When to look again.
    pub(crate) again: Option<Timestamp>,
    /// Nothing will be started any more: it went well, or not.
    pub(crate) over: Option<bool>,
}

/// What to do with the containers of a Pod.
pub(crate) fn order(policy: Policy, units: &[Unit], now: Timestamp) -> Order {
    let mut order = Order::default();
    let begun = units.iter().any(|unit| unit.role == Role::Main && unit.begun);
    for (place, unit) in units.iter().enumerate().filter(|(_, unit)| unit.role != Role::Main) {
        let go_on = match unit.role {
            Role::Sidecar => order.sidecar(place, unit, now) || begun,
            _ if begun => true,
            _ => order.init(policy, place, unit, now),
        };
        if !go_on {
            return order;
        }
    }
    let mains = || units.iter().enumerate().filter(|(_, unit)| unit.role == Role::Main);
    let over = |unit: &Unit| unit.ended().is_some_and(|ended| !policy.again(ended.code));
    if mains().all(|(_, unit)| over(unit)) {
        let well = mains().all(|(_, unit)| unit.ended().is_some_and(|ended| ended.code == 0));
        return Order { over: Some(well), ..Order::default() };
    }
    mains().filter(|(_, unit)| !unit.is_running() && !over(unit)).for_each(|(place, unit)| order.add(place, unit, now));
    order
}

impl Order {
    /// Whether what comes after a sidecar may begin.
    fn sidecar(&mut self, place: usize, unit: &Unit, now: Timestamp) -> bool {
        if !unit.is_running() {
            self.add(place, unit, now);
        }
        unit.is_running() && unit.started
    }

    /// Whether what comes after an init container may begin.
    fn init(&mut self, policy: Policy, place: usize, unit: &Unit, now: Timestamp) -> bool {
        match &unit.state {
            State::Ended(ended) if ended.code == 0 => return true,
            State::Ended(_) if policy == Policy::Never => self.over = Some(false),
            State::Running { .. } => {}
            _ => self.add(place, unit, now),
        }
        false
    }

    fn add(&mut self, place: usize, unit: &Unit, now: Timestamp) {
        match unit.due().filter(|due| *due > now) {
            Some(due) => {
                self.held_back.push(place);
                self.again = Some(self.again.map_or(due, |again| again.min(due)));
            }
            None => self.start.push(place),
        }
    }
}
