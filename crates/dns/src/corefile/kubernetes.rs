//! `kubernetes`: which names of the cluster are served.

use fairlead_api::selector::LabelSelector;
use fairlead_zone::{Name, PodRecords};

use super::Findings;
use super::tree::Line;
use super::value::{fallthrough, only, only_duration, only_number, zones};
use crate::settings::Kubernetes;

/// `kubernetes [ZONES...] { ... }`.
pub(super) fn read(line: &Line, of_block: &[Name], found: &mut Findings) -> Option<Kubernetes> {
    let zones = zones("kubernetes", line.arguments(), of_block, found);
    let mut kubernetes = Kubernetes { zones, ..Kubernetes::default() };
    for option in line.body.iter().flatten() {
        read_option(option, &mut kubernetes, found);
    }
    if !kubernetes.namespaces.is_empty() && kubernetes.namespace_labels.is_some() {
        found.add("kubernetes", line.name(), "namespaces and namespace_labels cannot both be set");
    }
    if kubernetes.zonal && kubernetes.noendpoints {
        found.add("kubernetes", line.name(), "zonal needs endpoints; remove noendpoints");
    }
    Some(kubernetes)
}

fn read_option(option: &Line, into: &mut Kubernetes, found: &mut Findings) {
    let arguments = option.arguments();
    match option.name().text.as_str() {
        "pods" => into.pods = pods(option, found).unwrap_or_default(),
        "ttl" => match only_number::<u32>("kubernetes", option, found) {
            Some(ttl @ 0..=3600) => into.ttl = ttl,
            Some(_) => found.add("kubernetes", option.name(), "ttl is from 0 to 3600"),
            None => {}
        },
        "namespaces" => {
            if arguments.is_empty() {
                found.arguments("kubernetes", option);
            }
            into.namespaces.extend(arguments.iter().map(|word| word.text.clone()));
        }
        "labels" => into.labels = selector(option, found),
        "namespace_labels" => into.namespace_labels = selector(option, found),
        "endpoint_pod_names" => into.endpoint_pod_names = found.alone("kubernetes", option),
        "noendpoints" => into.noendpoints = found.alone("kubernetes", option),
        "zonal" => into.zonal = found.alone("kubernetes", option),
        "fallthrough" => into.fallthrough = fallthrough("kubernetes", option, found),
        "ignore" => match arguments {
            [what] if what.text == "empty_service" => into.ignore_empty_service = true,
            [what, ..] => found.invalid("kubernetes", what, "thing to ignore: empty_service"),
            [] => found.arguments("kubernetes", option),
        },
        "startup_timeout" => {
            into.startup_timeout = only_duration("kubernetes", option, found).unwrap_or_default();
        }
        "kubeconfig" => match arguments {
            [file] => into.kubeconfig = Some(file.text.clone()),
            [_, context] => found.unsupported("kubernetes", context),
            _ => found.arguments("kubernetes", option),
        },
        "endpoint" => into.endpoint = only("kubernetes", option, found).map(|url| url.text.clone()),
        // How much is asked of the API server at once: a list and a watch of each kind, whatever is said.
        "apiserver_qps" | "apiserver_burst" | "apiserver_max_inflight" => {
            let _ = only_number::<f64>("kubernetes", option, found);
        }
        "tls" | "multicluster" => found.unsupported("kubernetes", option.name()),
        _ => found.unknown("kubernetes", option),
    }
}

fn pods(option: &Line, found: &mut Findings) -> Option<PodRecords> {
    let mode = only("kubernetes", option, found)?;
    match mode.text.as_str() {
        "disabled" => Some(PodRecords::Disabled),
        "insecure" => Some(PodRecords::Insecure),
        "verified" => Some(PodRecords::Verified),
        _ => {
            found.invalid("kubernetes", mode, "way to serve Pods: disabled, insecure or verified");
            None
        }
    }
}

/// A label selector; it may be several words.
fn selector(option: &Line, found: &mut Findings) -> Option<String> {
    let words: Vec<&str> = option.arguments().iter().map(|word| word.text.as_str()).collect();
    let text = words.join(" ");
    if text.is_empty() {
        found.arguments("kubernetes", option);
        return None;
    }
    if LabelSelector::parse(&text).is_err() {
        found.add("kubernetes", option.name(), format_args!("{text:?} is no label selector"));
    }
    Some(text)
}
