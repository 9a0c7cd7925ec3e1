//! What a hand-made EndpointSlice wants looked at, and what it should say afterwards. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use fairlead_api::view::{AddressType, EndpointConditions, EndpointSlice, Protocol};
use fairlead_probe::{Check, Schedule, State, Unreadable, Wish, duration};

#[cfg(test)]
mod tests;

/// The annotation with the check; further ones add to its name.
const CHECK: &str = "fairlead.dev/health-check";
/// Whose slice it is.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Those who know the readiness of their endpoints themselves.
pub(super) const MANAGERS: [&str; 3] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io", "fairlead-register"];
/// The bounds of times: nobody may keep the controller busy with one slice.
const INTERVAL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(30);

/// How often to look, and at what: addresses and the check of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) schedule: Schedule,
    pub(super) checks: BTreeMap<String, Check>,
}

/// Why the annotations of a slice cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Mistake {
    #[error("the annotation {CHECK}: {0}")]
    Check(#[from] Unreadable),
    #[error("the annotation {CHECK}: commands run only where fairlead register runs, not in the controller")]
    Exec,
    #[error("the annotation {CHECK}-{name}: {value:?} is not {want}")]
    Value { name: &'static str, value: String, want: &'static str },
    #[error("the annotation {CHECK}: the slice has no TCP port to look at; name one, as in http:8080/healthz")]
    NoPort,
    #[error("the annotation {CHECK}: only addresses are looked at, and this slice has names")]
    Names,
    #[error("the annotation {CHECK} has no effect: the readiness of its endpoints comes from {0}")]
    Managed(String),
}

/// What a slice wants. `None`: nothing.
pub(super) fn read(slice: &EndpointSlice) -> Option<Result<Plan, Mistake>> {
    let annotations = &slice.metadata.annotations;
    annotations.get(CHECK).map(|check| {
        let manager = slice.metadata.labels.get(MANAGED_BY).filter(|manager| MANAGERS.contains(&manager.as_str()));
        if let Some(manager) = manager {
            return Err(Mistake::Managed(manager.clone()));
        }
        if slice.address_type == AddressType::Fqdn {
            return Err(Mistake::Names);
        }
        Ok(Plan { schedule: schedule(annotations)?, checks: checks(slice, &check.parse()?)? })
    })
}

fn schedule(annotations: &BTreeMap<String, String>) -> Result<Schedule, Mistake> {
    let said = |name: &str| annotations.get(&format!("{CHECK}-{name}"));
    let time = |name, bounds: RangeInclusive<Duration>, usual, want| match said(name) {
        None => Ok(usual),
        Some(value) => duration(value).filter(|time| bounds.contains(time)).ok_or_else(|| Mistake::Value {
            name,
            value: value.clone(),
            want,
        }),
    };
    let count = |name, usual| match said(name) {
        None => Ok(usual),
        Some(value) => {
            let wrong = || Mistake::Value { name, value: value.clone(), want: "a number from 1 to 100" };
            value.trim().parse().ok().filter(|count| (1..=100).contains(count)).ok_or_else(wrong)
        }
    };
    Ok(Schedule {
        initial_delay: Duration::ZERO,
        period: time("interval", INTERVAL, Duration::from_secs(5), "a duration from 1s to 1h")?,
        timeout: time("timeout", TIMEOUT, Duration::from_secs(1), "a duration from 10ms to 30s")?,
        success_threshold: count("healthy-threshold", 1)?,
        failure_threshold: count("unhealthy-threshold", 3)?,
    })
}

/// The check of the first address of each endpoint, at the first TCP port unless the wish names another.
fn checks(slice: &EndpointSlice, wish: &Wish) -> Result<BTreeMap<String, Check>, Mistake> {
    if matches!(wish, Wish::Exec(_)) {
        return Err(Mistake::Exec);
    }
    let mut served = slice.ports.iter().filter(|port| port.protocol.unwrap_or_default() == Protocol::Tcp);
    let served = served.find_map(|port| u16::try_from(port.port?).ok());
    let addresses = slice.endpoints.iter().filter_map(|endpoint| endpoint.addresses.first());
    addresses.map(|address| Ok((address.clone(), wish.check(address, served).ok_or(Mistake::NoPort)?))).collect()
}

/// How an endpoint does by what its slice says, before anybody looked.
pub(super) fn initial(slice: &EndpointSlice, address: &str) -> State {
    let endpoint =
        slice.endpoints.iter().find(|endpoint| endpoint.addresses.first().is_some_and(|first| first == address));
    // An endpoint on its way out is not ready in any case; whether it answers is what counts.
    let answers = endpoint.and_then(|endpoint| endpoint.conditions.serving.or(endpoint.conditions.ready));
    match answers {
        None => State::Unknown,
        Some(true) => State::Healthy,
        Some(false) => State::Unhealthy,
    }
}

/// The slice as it should be by what is known of its endpoints. `None`: as it is.
pub(super) fn judged(slice: &EndpointSlice, state: impl Fn(&str) -> State) -> Option<EndpointSlice> {
    let mut judged = slice.clone();
    for endpoint in &mut judged.endpoints {
        let healthy = match endpoint.addresses.first().map_or(State::Unknown, |address| state(address)) {
            State::Unknown => continue,
            State::Healthy => true,
            State::Unhealthy => false,
        };
        let EndpointConditions { terminating, .. } = endpoint.conditions;
        let ready = healthy && terminating != Some(true);
        endpoint.conditions = EndpointConditions { ready: Some(ready), serving: Some(healthy), terminating };
    }
    (judged != *slice).then_some(judged)
}
