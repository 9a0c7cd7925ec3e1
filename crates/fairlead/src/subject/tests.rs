use fairlead_api::kinds;

use super::*;

fn check(words: &str, expected: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let found = match wanted(&words, &known()) {
        Ok(Wanted::Kinds(kinds)) => kinds.iter().map(|kind| kind.name.clone()).collect::<Vec<_>>().join(" "),
        Ok(Wanted::Objects(objects)) => objects.iter().map(shown).collect::<Vec<_>>().join(" "),
        Err(mistake) => mistake.to_string(),
    };
    assert_eq!(found, expected, "{words:?}");
}

fn check_one(words: &str, expected: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let found = one(&words, &known(), Some(&kinds::SERVICE));
    assert_eq!(found.map_or_else(|mistake| mistake.to_string(), |one| shown(&one)), expected, "{words:?}");
}

fn shown(subject: &Subject) -> String {
    let namespace = subject.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{}/{namespace}{}", subject.resource.name, subject.name)
}

#[test]
fn kinds_are_named_in_every_way_kubectl_knows() {
    for word in ["svc", "service", "services", "Service", "SERVICES", "services.v1", "services.v1."] {
        check(word, "services");
    }
    for word in [
        "endpointslices",
        "endpointslice.discovery.k8s.io",
        "endpointslices.v1.discovery.k8s.io",
        "endpointslices.discovery",
    ] {
        check(word, "endpointslices");
    }
    check("svc,po,svc", "services pods");
    check("all", "pods replicationcontrollers services daemonsets deployments replicasets statefulsets");
    check("events", "events");
}

#[test]
fn a_group_tells_kinds_of_one_name_apart() {
    let group = |word| find(word, &known()).map(|found| found.group.clone());
    assert_eq!(group("events"), Ok(String::new()));
    assert_eq!(group("events.events.k8s.io"), Ok("events.k8s.io".to_owned()));
    assert!(group("services.events.k8s.io").is_err());
}

#[test]
fn objects_are_named_with_a_slash_or_after_their_kind() {
    check("svc/web", "services/web");
    check("svc web", "services/web");
    check("svc web db", "services/web services/db");
    check("svc/web po/web-1", "services/web pods/web-1");
    check("svc,ep web", "services/web endpoints/web");
    check("svc/other/web", "services/other/web");
}

#[test]
fn mistakes_say_what_would_be_right() {
    check("", "say what: a KIND such as svc, or KIND/NAME such as svc/web");
    check("scv", "there is no kind \"scv\"; did you mean services (svc)?");
    check("servces/web", "there is no kind \"servces\"; did you mean services (svc)?");
    check("podz", "there is no kind \"podz\"; did you mean pods (po)?");
    check("jobs", "there is no kind \"jobs\"; `fairlead get --help` tells which there are");
    check("svc/", "\"svc/\" names no object: want KIND/NAME or KIND NAME, such as svc/web");
    check("svc po/x", "\"svc\" is a kind, and \"po/x\" has one of its own: say either KIND NAME… or KIND/NAME…");
    check("svc/a/b/c", "\"svc/a/b/c\" names no object: want KIND/NAME or KIND NAME, such as svc/web");
}

#[test]
fn one_object_may_be_named_without_its_kind_where_that_is_known() {
    check_one("web", "services/web");
    check_one("svc/web", "services/web");
    check_one("svc web", "services/web");
    check_one("pod/x", "pods/x");
    check_one("svc/other/web", "services/other/web");
    check_one("svc web db", "one at a time: \"db\" is one too many");
    check_one("svc/web svc/db", "one at a time: \"svc/db\" is one too many");
    assert_eq!(one(&["web"], &known(), None), Err(Mistake::NoKind("web".to_owned())));
    let which = one(&["svc"], &known(), None).expect_err("no name").to_string();
    assert_eq!(which, "which one of the services? Say its name, as in svc/NAME");
}
