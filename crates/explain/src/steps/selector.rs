//! Does the selector match Pods, and if not, which Pods were meant?

use std::collections::{BTreeMap, BTreeSet};

use fairlead_api::source::Key;
use serde_json::json;

use super::{Case, Draft, list, remedy};
use crate::nearest::{Difference, Miss, miss};
use crate::{Cause, Pod};

/// So many Pods are compared with a selector that matches none when somebody asks why.
const LOOKED_AT: usize = 10_000;
/// And so many for lists, which ask for all Services.
const GLANCED_AT: usize = 200;

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.is_alias() {
        return Draft::skipped("an alias has no Pods");
    }
    let selector = &case.service.spec.selector;
    if selector.is_empty() {
        return Draft::skipped("it has no selector: its endpoints are made by hand");
    }
    let mut draft = Draft::default();
    let text = pairs(selector);
    if !case.pods.is_empty() {
        draft.see(format!("{text} matches {}", list(case.pods.iter().map(|pod| &pod.view.metadata.name))));
        return draft;
    }
    draft.see(format!("{text} matches no Pod of namespace {}", case.key.namespace));
    nobody(case, &text, &mut draft);
    draft
}

fn nobody(case: &Case<'_>, text: &str, draft: &mut Draft) {
    let selector = &case.service.spec.selector;
    let here: Vec<&Pod> = case.objects.pods_in(&case.key.namespace).take(limit(case)).map(|pod| &**pod).collect();
    let misses = here.iter().filter_map(|pod| Some((*pod, miss(selector, &pod.view.metadata.labels)?)));
    let mut misses: Vec<(&Pod, Miss)> = misses.filter(|(pod, _)| !pod.view.is_terminal()).collect();
    misses.sort_by_key(|(_, miss)| miss.cost);
    let elsewhere = elsewhere(case);
    match (misses.first(), elsewhere.first()) {
        (Some((_, nearest)), other) if nearest.is_slip() || other.is_none() => almost(case, &misses, draft),
        (_, Some(pod)) => in_other_namespace(case, text, pod, &elsewhere, draft),
        _ if here.is_empty() => {
            let message = format!("there are no Pods in namespace {}: nothing can answer", case.key.namespace);
            let remedy = vec![format!("kubectl get pods --all-namespaces -l {}", remedy::quote(text))];
            draft.find(case.severity(), Cause::NoPods, message, remedy);
        }
        _ => {
            draft.see(have(selector, &here));
            let message = format!("no Pod has the labels {text}");
            let remedy = vec![format!("kubectl get pods -n {} --show-labels", remedy::quote(&case.key.namespace))];
            draft.find(case.severity(), Cause::SelectorMatchesNothing, message, remedy);
        }
    }
}

fn limit(case: &Case<'_>) -> usize {
    if case.deep { LOOKED_AT } else { GLANCED_AT }
}

/// Pods of other namespaces that have the labels and no Service of their own: with one, they are another copy of the whole.
fn elsewhere<'a>(case: &Case<'a>) -> Vec<&'a Key> {
    let looked_at = case.objects.pods().take(limit(case));
    let alike = looked_at.filter(|(_, pod)| case.service.selects(&pod.view.metadata.labels));
    alike.filter(|(_, pod)| !case.objects.is_selected(pod)).map(|(key, _)| key).collect()
}

fn in_other_namespace(case: &Case<'_>, text: &str, pod: &Key, all: &[&Key], draft: &mut Draft) {
    let namespaces: BTreeSet<&str> = all.iter().map(|key| &*key.namespace).collect();
    let message = format!(
        "Pods with the labels {text} are in namespace {}, but a Service selects only in its own, {}",
        list(namespaces.iter()),
        case.key.namespace
    );
    let remedy = vec![
        format!("kubectl get pods -n {} -l {}", remedy::quote(&pod.namespace), remedy::quote(text)),
        case.copy_to(&pod.namespace),
    ];
    draft.find(case.severity(), Cause::PodsInOtherNamespace, message, remedy);
}

/// Shows the nearest misses with what differs.
fn almost(case: &Case<'_>, misses: &[(&Pod, Miss)], draft: &mut Draft) {
    let Some((pod, nearest)) = misses.first() else { return };
    for (pod, miss) in misses.iter().take(5) {
        draft.see(format!("nearly: {} has {}", pod.view.metadata.name, says(miss)));
    }
    let Miss { key, value, .. } = nearest;
    let cause = match &nearest.difference {
        Difference::Case(..) => Cause::LabelCaseDiffers,
        Difference::ValueNear(_) | Difference::Value(_) => Cause::LabelValueDiffers,
        Difference::Key(_) => Cause::LabelKeyDiffers,
        Difference::Missing => Cause::LabelMissing,
    };
    let name = &pod.view.metadata.name;
    let message = format!("the selector asks for {key}={value}, but Pod {name} has {}", says(nearest));
    let relabel = format!(
        "kubectl label pod {} {} --overwrite",
        remedy::named(&Key::new(&*case.key.namespace, name.as_str())),
        remedy::quote(&format!("{key}={value}"))
    );
    let reselect = case.patch(&json!({"spec": {"selector": selector_for(nearest)}}));
    // Labels of a Pod that somebody manages come from a template, and if several Pods agree, the Service is more likely wrong.
    let managed = !pod.view.metadata.owner_references.is_empty();
    let agree = misses.iter().filter(|(_, miss)| miss.difference == nearest.difference).count() > 1;
    let meant = **value == *case.key.name;
    let remedy = if managed || agree && !meant { vec![reselect, relabel] } else { vec![relabel, reselect] };
    draft.find(case.severity(), cause, message, remedy);
}

/// The change of the selector that would match the Pod.
fn selector_for(miss: &Miss) -> serde_json::Value {
    let mut change = serde_json::Map::new();
    match &miss.difference {
        Difference::Case(key, value) => {
            change.insert(miss.key.clone(), serde_json::Value::Null);
            change.insert(key.clone(), json!(value));
        }
        Difference::ValueNear(value) | Difference::Value(value) => {
            change.insert(miss.key.clone(), json!(value));
        }
        Difference::Key(key) => {
            change.insert(miss.key.clone(), serde_json::Value::Null);
            change.insert(key.clone(), json!(miss.value));
        }
        Difference::Missing => {
            change.insert(miss.key.clone(), serde_json::Value::Null);
        }
    }
    change.into()
}

fn says(miss: &Miss) -> String {
    let Miss { key, value, difference, differing, .. } = miss;
    let more = if *differing > 1 { format!(" (and {} more that differ)", differing - 1) } else { String::new() };
    match difference {
        Difference::Case(key, value) => format!("{key}={value}{more}: upper and lower case matter"),
        Difference::ValueNear(has) | Difference::Value(has) => format!("{key}={has}{more}"),
        Difference::Key(other) => format!("{other}={value}{more}"),
        Difference::Missing => format!("no label {key}{more}"),
    }
}

/// Which values the keys of the selector have among these Pods.
fn have(selector: &BTreeMap<String, String>, pods: &[&Pod]) -> String {
    let labels = pods.iter().flat_map(|pod| &pod.view.metadata.labels);
    let same_key: BTreeSet<String> =
        labels.filter(|(key, _)| selector.contains_key(*key)).map(|(key, value)| format!("{key}={value}")).collect();
    if same_key.is_empty() {
        return format!("none of {} Pods has a label of that key", pods.len());
    }
    format!("{} Pods have instead: {}", pods.len(), list(same_key.iter()))
}

/// `app=web,tier=front`
pub(super) fn pairs(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
