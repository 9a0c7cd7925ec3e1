use serde_json::json;

use super::{Subject, of_slice, selects};
use crate::Followed;

#[test]
fn subjects_are_named_as_people_name_them() {
    let check = |text: &str, kind: Followed, namespace: &str, name: &str, said: &str| {
        let subject: Subject = text.parse().expect("it names something");
        assert_eq!(subject, Subject { kind, namespace: namespace.to_owned(), name: name.to_owned() });
        assert_eq!(subject.to_string(), said);
        assert_eq!(said.parse(), Ok(subject), "what is said is understood");
    };
    check("svc/default/web", Followed::Service, "default", "web", "svc/default/web");
    check("Services/default/web", Followed::Service, "default", "web", "svc/default/web");
    check("po/shop/web-1", Followed::Pod, "shop", "web-1", "pod/shop/web-1");
    check("node/n1", Followed::Node, "", "n1", "node/n1");
    check("endpointslices/default/web-x", Followed::EndpointSlice, "default", "web-x", "endpointslice/default/web-x");
    check("servicecidrs/kubernetes", Followed::ServiceCidr, "", "kubernetes", "servicecidr/kubernetes");
}

#[test]
fn what_names_nothing_is_refused() {
    for wrong in [
        "",
        "svc",
        "svc/web",
        "svc//web",
        "svc/default/",
        "svc/a/b/c",
        "node/a/b",
        "event/default/e",
        "secret/default/s",
    ] {
        assert!(wrong.parse::<Subject>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_selector_without_labels_selects_nothing() {
    let pod = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
    let check = |selector, want: bool| assert_eq!(selects(&json!({"spec": {"selector": selector}}), &pod), want);
    check(json!({"app": "web"}), true);
    check(json!({"app": "web", "tier": "front"}), true);
    check(json!({"app": "web", "tier": "back"}), false);
    check(json!({"other": "x"}), false);
    check(json!({}), false);
    check(json!(null), false);
    assert!(!selects(&json!({"spec": {"selector": {"app": "web"}}}), &json!({})));
    assert_eq!(of_slice(&json!({"metadata": {"labels": {"kubernetes.io/service-name": "web"}}})), "web");
}
