//! Are the Pods ready, and if not, why not?

use std::collections::BTreeMap;

use fairlead_api::view::{Condition, Family};
use fairlead_endpoints::{LeftOut, Reason};

use super::{Case, Draft, SHOWN, count, list};
use crate::{Cause, Pod, Severity};
use why::Why;

mod why;

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.service.spec.selector.is_empty() || case.is_alias() {
        return Draft::skipped("it selects no Pods");
    }
    let mut draft = Draft::default();
    let (mut ready, mut not) = (Vec::new(), Vec::new());
    for pod in &case.pods {
        match why::why(case, pod) {
            None => ready.push(*pod),
            Some(why) => not.push((*pod, why)),
        }
    }
    draft.see(format!("{} of {} Pods are ready", ready.len(), case.pods.len()));
    for (pod, why) in not.iter().take(SHOWN) {
        draft.see(format!("{}: {}", pod.view.metadata.name, why.message));
    }
    if ready.is_empty() {
        none_ready(case, &not, &mut draft);
    } else {
        some_ready(case, &not, &mut draft);
        lost(case, &ready, &mut draft);
        families(case, &mut draft);
    }
    draft
}

/// Whether a Pod can get traffic although it is not ready.
fn is_published(case: &Case<'_>, pod: &Pod) -> bool {
    case.service.spec.publish_not_ready_addresses && !pod.view.is_terminal() && pod.view.addresses().next().is_some()
}

fn none_ready(case: &Case<'_>, not: &[(&Pod, Why)], draft: &mut Draft) {
    if not.iter().any(|(pod, _)| is_published(case, pod)) {
        draft.see("publishNotReadyAddresses: they are endpoints all the same");
        return families(case, draft);
    }
    // Pods that ended or are about to go matter only if there are no others.
    let lasting: Vec<_> = not.iter().filter(|(_, why)| !why.is_over()).collect();
    let serving = not.iter().any(|(pod, why)| why.cause == Cause::PodTerminating && pod.view.is_ready());
    let severity = if serving { Severity::Warning } else { case.severity() };
    if lasting.is_empty() { find(severity, not.iter(), draft) } else { find(severity, lasting, draft) }
}

fn some_ready(case: &Case<'_>, not: &[(&Pod, Why)], draft: &mut Draft) {
    // Others come and go during every rollout; that is no trouble while some are ready.
    let troubled = not.iter().filter(|(pod, why)| !why.is_over() && !why.is_passing() && !is_published(case, pod));
    find(Severity::Warning, troubled, draft);
}

/// Pods that count as ready because the Node that would say otherwise is gone.
fn lost(case: &Case<'_>, ready: &[&Pod], draft: &mut Draft) {
    let is_lost = |pod: &&&Pod| {
        let node = case.objects.node(&pod.view.spec.node_name);
        let condition = node.and_then(|node| Condition::find(&node.status.conditions, "Ready"));
        condition.is_some_and(|condition| condition.status != "True")
    };
    let Some(pod) = ready.iter().find(is_lost) else { return };
    let (name, node) = (&pod.view.metadata.name, &pod.view.spec.node_name);
    let message = format!("Pod {name} counts as ready, but its Node {node} is not: packets for it may be lost");
    draft.warn(Cause::NodeNotReady, message, vec![format!("kubectl describe node {}", super::remedy::quote(node))]);
}

/// One finding a cause, the most frequent first.
fn find<'a>(severity: Severity, pods: impl IntoIterator<Item = &'a (&'a Pod, Why)>, draft: &mut Draft) {
    let mut by_cause = BTreeMap::<Cause, Vec<&(&Pod, Why)>>::new();
    pods.into_iter().for_each(|both| by_cause.entry(both.1.cause).or_default().push(both));
    let mut causes: Vec<_> = by_cause.into_iter().collect();
    causes.sort_by_key(|(_, pods)| std::cmp::Reverse(pods.len()));
    for (cause, pods) in causes {
        let Some((pod, why)) = pods.first() else { continue };
        let others = pods.len() - 1;
        let more = if others == 0 { String::new() } else { format!(" (and {} likewise)", count(others, "more Pod")) };
        let what = if pod.view.is_ready() { "is no endpoint" } else { "is not ready" };
        let message = format!("Pod {} {what}: {}{more}", pod.view.metadata.name, why.message);
        draft.find(severity, cause, message, why.remedy.clone());
    }
}

/// Whether the Pods have addresses of the Service's families.
fn families(case: &Case<'_>, draft: &mut Draft) {
    let families = fairlead_endpoints::members::families(case.service);
    let mut wrong = None;
    for family in &families {
        let found = case.members(*family, |members| {
            let has_no_address = |left: &LeftOut| matches!(left.reason, Reason::NoAddressOfFamily { .. });
            wrong = wrong.take().or(members.left_out.into_iter().find(has_no_address));
            !members.groups.is_empty()
        });
        if found {
            return;
        }
    }
    let Some(first) = wrong else { return };
    let message = format!(
        "the Service is for {}, but Pod {} has no such address",
        list(families.iter().map(|family| Family::as_str(*family))),
        first.name
    );
    let remedy = vec![
        format!("kubectl get pods -n {} -o wide", super::remedy::quote(&case.key.namespace)),
        case.patch(&serde_json::json!({"spec": {"ipFamilyPolicy": "PreferDualStack"}})),
    ];
    draft.find(case.severity(), Cause::PodFamilyDiffers, message, remedy);
}
