//! How a client's resolver makes whole names of short ones.

use fairlead_api::source::Key;

use crate::steps::{Case, list};
use crate::{From, Resolver};

/// What Pods have when nothing else is said.
const NDOTS: usize = 5;

/// A search path.
pub(super) struct Path {
    /// The client's namespace, if it is a Pod.
    pub(super) namespace: Option<String>,
    /// What is put behind names.
    pub(super) search: Vec<String>,
    /// Names with so many dots are asked for as they are first.
    pub(super) ndots: usize,
}

impl Path {
    /// The client's, as it was seen, or as it follows from its Pod.
    pub(super) fn of(case: &Case<'_>) -> Option<Path> {
        let key = match &case.question.from {
            From::Pod(key) => Some(key),
            _ => None,
        };
        let namespace = key.map(|key| key.namespace.to_string());
        if let Some(Resolver { search, ndots, .. }) = &case.evidence.resolver {
            return Some(Path { namespace, search: search.clone(), ndots: *ndots });
        }
        let pod = case.objects.pod(key?)?;
        let own = &pod.dns_config;
        let mut search = match pod.dns_policy.as_str() {
            "None" | "Default" => Vec::new(),
            _ => {
                let namespace = namespace.as_deref().unwrap_or_default();
                let domain = case.domain();
                vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.to_owned()]
            }
        };
        search.extend(own.searches.iter().cloned());
        let ndots = own.options.iter().find(|option| option.name == "ndots").and_then(|option| option.value.as_ref());
        // A resolver without the option takes 1.
        let usual = if pod.dns_policy == "None" || pod.dns_policy == "Default" { 1 } else { NDOTS };
        Some(Path { namespace, search, ndots: ndots.and_then(|text| text.parse().ok()).unwrap_or(usual) })
    }

    /// Whether one of the names that are tried is the Service's.
    pub(super) fn reaches(&self, service: &Key, host: &str) -> bool {
        let start = format!("{}.{}.svc.", service.name, service.namespace).to_ascii_lowercase();
        let whole = |name: &str| format!("{}.", name.trim_end_matches('.').to_ascii_lowercase());
        if whole(host).starts_with(&start) && whole(host) != start {
            return true;
        }
        !host.ends_with('.') && self.search.iter().any(|end| whole(&format!("{host}.{end}")).starts_with(&start))
    }

    /// Whether a name is asked for as it is before the search path is tried.
    pub(super) fn is_asked_first(&self, host: &str) -> bool {
        host.matches('.').count() >= self.ndots
    }

    pub(super) fn text(&self) -> String {
        format!("the client's search path: {}, ndots {}", list(self.search.iter()), self.ndots)
    }
}
