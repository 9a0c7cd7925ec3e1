//! When the change happened that leads to a write: what `last-change-trigger-time` says, so that the way from a Pod's
//! readiness to the proxies can be measured.

use std::collections::BTreeMap;

use fairlead_api::view::{Pod, Service};

/// The times of one Service and its Pods that were seen last. Times are RFC 3339 in UTC, as the API writes them, which
/// sort as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerTimes {
    service: Option<String>,
    pods: BTreeMap<String, String>,
}

impl TriggerTimes {
    /// Takes in what is there now and says when it changed: the creation of a Service seen for the first time, else the
    /// earliest time that is newer than the one known. `None` when no time is newer, as when a Pod is gone.
    pub fn observe(&mut self, service: &Service, pods: &[&Pod]) -> Option<String> {
        let created = service.metadata.creation_timestamp.clone();
        let earliest = self.observe_pods(pods);
        let known = self.service.replace(created.clone().unwrap_or_default());
        let Some(known) = known else {
            return created;
        };
        earliest.into_iter().chain(created.filter(|created| *created > known)).min()
    }

    fn observe_pods(&mut self, pods: &[&Pod]) -> Option<String> {
        let mut earliest = None::<String>;
        let mut seen = 0;
        for pod in pods {
            let Some(time) = pod.ready_condition().and_then(|ready| ready.last_transition_time.as_ref()) else {
                continue;
            };
            seen += 1;
            let known = self.pods.get_mut(&pod.metadata.name);
            if known.as_ref().is_none_or(|known| *time > **known) && earliest.as_ref().is_none_or(|first| time < first)
            {
                earliest = Some(time.clone());
            }
            match known {
                Some(known) if known == time => {}
                Some(known) => known.clone_from(time),
                None => {
                    self.pods.insert(pod.metadata.name.clone(), time.clone());
                }
            }
        }
        if seen < self.pods.len() {
            self.forget_all_but(pods);
        }
        earliest
    }

    fn forget_all_but(&mut self, pods: &[&Pod]) {
        let mut kept = BTreeMap::new();
        for pod in pods.iter().filter(|pod| pod.ready_condition().is_some()) {
            kept.extend(self.pods.remove_entry(&pod.metadata.name));
        }
        self.pods = kept;
    }
}

#[cfg(test)]
mod tests;
