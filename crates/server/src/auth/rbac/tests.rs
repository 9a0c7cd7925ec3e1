//! Tables of who may do what.

use fairlead_api::value::{Value, json};
use fairlead_api::{Kind, kinds};

use super::*;

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.to_owned(), groups: groups.iter().map(|g| (*g).to_owned()).collect(), ..User::default() }
}

fn role(name: &str, namespace: &str, rules: Value) -> (&'static Kind, Value) {
    let kind: &Kind = if namespace.is_empty() { &kinds::CLUSTER_ROLE } else { &kinds::ROLE };
    (kind, json!({"metadata": {"name": name, "namespace": namespace}, "rules": rules}))
}

fn binding(name: &str, namespace: &str, role: (&str, &str), subjects: Value) -> (&'static Kind, Value) {
    let kind: &Kind = if namespace.is_empty() { &kinds::CLUSTER_ROLE_BINDING } else { &kinds::ROLE_BINDING };
    let role = json!({"apiGroup": GROUP, "kind": role.0, "name": role.1});
    (kind, json!({"metadata": {"name": name, "namespace": namespace}, "roleRef": role, "subjects": subjects}))
}

fn policy(objects: &[(&'static Kind, Value)]) -> Policy {
    Policy::build(objects.iter().map(|(kind, object)| (*kind, object)))
}

/// `get services/status.group web in default`, `get /metrics`.
fn attributes(text: &str) -> Attributes<'_> {
    let words: Vec<&str> = text.split(' ').collect();
    if words[1].starts_with('/') {
        return Attributes { verb: words[0], target: Target::Path(words[1]) };
    }
    let (resource, group) = words[1].split_once('.').unwrap_or((words[1], ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (name, namespace) = match words[2..] {
        ["in", namespace] => ("", namespace),
        [name, "in", namespace] => (name, namespace),
        [name] => (name, ""),
        _ => ("", ""),
    };
    Attributes { verb: words[0], target: Target::Resource { group, resource, subresource, namespace, name } }
}

#[track_caller]
fn check(policy: &Policy, user: &User, request: &str, allowed: bool) {
    let decision = policy.authorize(user, &attributes(request));
    assert_eq!(decision.allowed(), allowed, "{request}: {decision:?}");
}

#[test]
fn a_rule_allows_what_it_names_and_nothing_else() {
    let table: &[(Value, &str, bool)] = &[
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get pods a in x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "list pods in x", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get pods/status a in x", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get pods.apps a in x", false),
        (json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), "delete pods/status.apps a", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}), "get pods/status a in x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]}), "get pods a in x", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/scale"]}), "get pods/scale a in x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/scale"]}), "get pods/status a in x", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/scale"]}), "get pods a in x", false),
        (
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
            "get pods a",
            true,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
            "get pods b",
            false,
        ),
        (
            json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
            "list pods",
            false,
        ),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}), "get /healthz/ping", true),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}), "get /healthz", false),
        (json!({"verbs": ["get"], "nonResourceURLs": ["*"]}), "get /anything", true),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), "post /metrics", false),
        (json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}), "get /metrics", false),
    ];
    for (rule, request, allowed) in table {
        let subjects = json!([{"kind": "User", "name": "ann"}]);
        let objects = [role("r", "", json!([rule])), binding("b", "", ("ClusterRole", "r"), subjects)];
        check(&policy(&objects), &user("ann", &[]), request, *allowed);
    }
}

#[test]
fn a_binding_holds_for_its_subjects_in_its_namespace() {
    let read = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let subjects = json!([
        {"kind": "Group", "name": "devs"}, {"kind": "ServiceAccount", "name": "near"},
        {"kind": "ServiceAccount", "name": "far", "namespace": "b"}, {"kind": "Robot", "name": "eve"},
    ]);
    let policy = policy(&[
        role("r", "", read.clone()),
        role("local", "a", read),
        binding("one", "a", ("ClusterRole", "r"), subjects),
        binding("two", "a", ("Role", "local"), json!([{"kind": "User", "name": "ann"}])),
    ]);
    let table: &[(&str, &[&str], &str, bool)] = &[
        ("bob", &["devs"], "get pods p in a", true),
        ("bob", &["devs"], "get pods p in b", false),
        ("bob", &["devs"], "get pods p", false),
        ("devs", &[], "get pods p in a", false),
        ("system:serviceaccount:a:near", &[], "get pods p in a", true),
        ("system:serviceaccount:b:near", &[], "get pods p in a", false),
        ("system:serviceaccount:b:far", &[], "get pods p in a", true),
        ("eve", &[], "get pods p in a", false),
        ("ann", &[], "get pods p in a", true),
        ("root", &["system:masters"], "delete nodes n", true),
    ];
    for (name, groups, request, allowed) in table {
        check(&policy, &user(name, groups), request, *allowed);
    }
}

#[test]
fn changes_take_hold_one_by_one() {
    let ann = user("ann", &[]);
    let (kind, object) = role("r", "", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]));
    let mut policy = Policy::default();
    policy.apply(kind, &object);
    check(&policy, &ann, "get pods p", false);
    let (bind, to_ann) = binding("b", "", ("ClusterRole", "r"), json!([{"kind": "User", "name": "ann"}]));
    policy.apply(bind, &to_ann);
    check(&policy, &ann, "get pods p", true);
    let (_, to_bob) = binding("b", "", ("ClusterRole", "r"), json!([{"kind": "User", "name": "bob"}]));
    policy.apply(bind, &to_bob);
    check(&policy, &ann, "get pods p", false);
    policy.apply(bind, &to_ann);
    policy.remove(kind, "", "r");
    let reason = "RBAC: clusterrole.rbac.authorization.k8s.io \"r\" not found".to_owned();
    assert_eq!(policy.authorize(&ann, &attributes("get pods p")), Decision::Deny { reason });
    policy.remove(bind, "", "b");
    assert_eq!(policy.authorize(&ann, &attributes("get pods p")), Decision::Deny { reason: String::new() });
    assert!(policy.subjects.is_empty());
}

#[test]
fn an_aggregating_role_has_the_rules_of_those_it_selects() {
    let mut policy = policy(&builtin::objects());
    let (kind, bind) = binding("b", "a", ("ClusterRole", "admin"), json!([{"kind": "User", "name": "ann"}]));
    policy.apply(kind, &bind);
    let ann = user("ann", &[]);
    for request in ["get pods p in a", "delete services s in a", "create rolebindings.rbac.authorization.k8s.io in a"] {
        check(&policy, &ann, request, true);
    }
    check(&policy, &ann, "get widgets.example.com w in a", false);
    let rules = json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}]);
    let (kind, mut widgets) = role("widgets", "", rules);
    widgets["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    policy.apply(kind, &widgets);
    check(&policy, &ann, "get widgets.example.com w in a", true);
    policy.remove(kind, "", "widgets");
    check(&policy, &ann, "get widgets.example.com w in a", false);
}

#[test]
fn roles_that_select_each_other_end() {
    let mut objects = vec![];
    for name in ["a", "b"] {
        let (kind, mut object) = role(name, "", json!([]));
        object["metadata"]["labels"] = json!({"x": "y"});
        object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]});
        objects.push((kind, object));
    }
    assert_eq!(policy(&objects).cluster_role_rules("a"), Some(&[][..]));
}

#[test]
fn a_refusal_reads_as_kubernetes_words_it() {
    let table: &[(&str, &str, &str)] = &[
        (
            "list services in default",
            "",
            r#"services is forbidden: User "x" cannot list resource "services" in API group "" in the namespace "default""#,
        ),
        (
            "get endpointslices.discovery.k8s.io web in default",
            "",
            r#"endpointslices.discovery.k8s.io "web" is forbidden: User "x" cannot get resource "endpointslices" in API group "discovery.k8s.io" in the namespace "default""#,
        ),
        (
            "patch nodes/status n",
            "",
            r#"nodes "n" is forbidden: User "x" cannot patch resource "nodes/status" in API group "" at the cluster scope"#,
        ),
        ("get /metrics", "", r#"forbidden: User "x" cannot get path "/metrics""#),
        (
            "get pods p in a",
            "RBAC: role gone",
            r#"pods "p" is forbidden: User "x" cannot get resource "pods" in API group "" in the namespace "a": RBAC: role gone"#,
        ),
    ];
    for (request, reason, message) in table {
        let failure = forbidden(&user("x", &[]), &attributes(request), reason);
        assert_eq!((failure.code, failure.reason, failure.message.as_str()), (403, "Forbidden", *message));
    }
    let failure = forbidden(&user("<a>&", &[]), &attributes("get /x"), "");
    assert_eq!(failure.message, r#"forbidden: User "&lt;a&gt;&amp;" cannot get path "/x""#);
    assert_eq!(failure.details, Some(json!({})));
    let failure = forbidden(&user("x", &[]), &attributes("list services in default"), "");
    assert_eq!(failure.details, Some(json!({"kind": "services"})));
}

#[test]
fn the_reason_names_the_binding_that_allows() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let subjects = json!([{"kind": "User", "name": "bob"}, {"kind": "ServiceAccount", "name": "s"}]);
    let policy = policy(&[role("r", "a", rules), binding("b", "a", ("Role", "r"), subjects)]);
    let reason = r#"RBAC: allowed by RoleBinding "b/a" of Role "r" to ServiceAccount "s/a""#.to_owned();
    let decision = policy.authorize(&user("system:serviceaccount:a:s", &[]), &attributes("get pods p in a"));
    assert_eq!(decision, Decision::Allow { reason });
}

#[test]
fn the_builtin_roles_give_everybody_their_due() {
    let policy = policy(&builtin::objects());
    let table: &[(&str, &[&str], &str, bool)] = &[
        ("system:anonymous", &["system:unauthenticated"], "get /readyz", true),
        ("system:anonymous", &["system:unauthenticated"], "get /apis", false),
        ("ann", &["system:authenticated"], "get /apis/discovery.k8s.io", true),
        ("ann", &["system:authenticated"], "create selfsubjectaccessreviews.authorization.k8s.io", true),
        ("ann", &["system:authenticated"], "list services in default", false),
        ("system:kube-proxy", &[], "watch endpointslices.discovery.k8s.io", true),
        ("system:kube-proxy", &[], "watch secrets", false),
        ("system:kube-controller-manager", &[], "list services", true),
        ("system:serviceaccount:kube-system:coredns", &[], "watch endpointslices.discovery.k8s.io", true),
        ("system:serviceaccount:kube-system:kube-dns", &[], "list services", true),
        (
            "system:serviceaccount:kube-system:endpointslice-controller",
            &[],
            "create endpointslices.discovery.k8s.io in a",
            true,
        ),
        ("system:serviceaccount:kube-system:fairlead-balancer", &[], "patch services/status web in a", true),
        ("system:serviceaccount:kube-system:fairlead-balancer", &[], "get secrets s in a", false),
        ("fairlead:ui", &["fairlead:viewers"], "get /fairlead/v1/services", true),
        ("fairlead:ui", &["fairlead:viewers"], "post /fairlead/v1/links", false),
        ("fairlead:ui", &["fairlead:viewers"], "watch services", true),
        ("fairlead:ui", &["fairlead:viewers"], "get pods/log web in a", true),
        ("fairlead:ui", &["fairlead:viewers"], "get pods/exec web in a", false),
        ("fairlead:ui", &["fairlead:viewers"], "get services/proxy web in a", false),
        ("fairlead:ui", &["fairlead:viewers"], "list secrets", false),
        ("fairlead:ui", &["fairlead:viewers"], "create serviceaccounts/token s in a", false),
        ("fairlead:ui", &["fairlead:viewers"], "patch services web in a", false),
        ("fairlead:ui", &["fairlead:viewers", "fairlead:editors"], "patch services web in a", true),
        ("fairlead:ui", &["fairlead:viewers", "fairlead:editors"], "patch nodes n", true),
        ("fairlead:ui", &["fairlead:viewers", "fairlead:editors"], "get secrets s in a", false),
        ("fairlead:ui", &["fairlead:viewers", "fairlead:editors"], "post /fairlead/v1/links", false),
        ("ann", &["system:authenticated"], "get /fairlead/v1/services", false),
    ];
    for (name, groups, request, allowed) in table {
        check(&policy, &user(name, groups), request, *allowed);
    }
    let names: Vec<_> =
        builtin::objects().iter().map(|(k, o)| format!("{}/{}", k.kind, o["metadata"]["name"])).collect();
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
}

#[test]
fn a_rules_review_lists_what_holds_in_the_namespace() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let ann = json!([{"kind": "User", "name": "ann"}]);
    let policy = policy(&[
        role("r", "a", rules),
        role("u", "", json!([{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}])),
        binding("b", "a", ("Role", "r"), ann.clone()),
        binding("c", "", ("ClusterRole", "u"), ann.clone()),
        binding("d", "", ("ClusterRole", "gone"), ann),
    ]);
    let status = policy.rules_review(&user("ann", &[]), "a");
    let expected = json!({
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}],
        "incomplete": false,
        "evaluationError": "clusterrole.rbac.authorization.k8s.io \"gone\" not found",
    });
    assert_eq!(status, expected);
    assert_eq!(policy.rules_review(&user("ann", &[]), "b")["resourceRules"], json!([]));
}

#[track_caller]
fn check_write(policy: &Policy, user: &User, (kind, object): &(&'static Kind, Value), expected: Result<(), &str>) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let found = escalation::check(policy, user, &escalation::Write { kind, namespace, object, old: None })
        .map_err(|failure| failure.message);
    assert_eq!(found, expected.map_err(str::to_owned));
}

#[test]
fn nobody_gives_away_rights_they_do_not_have() {
    let ann = json!([{"kind": "User", "name": "ann"}]);
    let read = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]});
    let policy = policy(&[
        role("reader", "", json!([read])),
        role("writer", "", json!([{"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}])),
        role(
            "binder",
            "",
            json!([{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["writer"]}]),
        ),
        role("escalator", "", json!([{"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"]}])),
        binding("r", "a", ("ClusterRole", "reader"), ann),
        binding("b", "a", ("ClusterRole", "binder"), json!([{"kind": "User", "name": "bob"}])),
        binding("e", "a", ("ClusterRole", "escalator"), json!([{"kind": "User", "name": "eve"}])),
    ]);
    let (ann, bob, eve) = (user("ann", &["g"]), user("bob", &[]), user("eve", &[]));
    let narrow =
        role("n", "a", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}]));
    let wide =
        role("w", "a", json!([{"verbs": ["get", "delete", "create"], "apiGroups": [""], "resources": ["pods"]}]));
    let refused = "roles.rbac.authorization.k8s.io \"w\" is forbidden: user \"ann\" (groups=[\"g\"]) is attempting to grant RBAC \
                   permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"create\"]}";
    check_write(&policy, &ann, &narrow, Ok(()));
    check_write(&policy, &ann, &wide, Err(refused));
    check_write(&policy, &eve, &wide, Ok(()));
    check_write(&policy, &user("root", &[MASTERS]), &wide, Ok(()));
    let give = |role: &str| binding("new", "a", ("ClusterRole", role), json!([]));
    check_write(&policy, &ann, &give("reader"), Ok(()));
    check_write(&policy, &bob, &give("writer"), Ok(()));
    let refused = "rolebindings.rbac.authorization.k8s.io \"new\" is forbidden: user \"ann\" (groups=[\"g\"]) is attempting to grant \
                   RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"*\"]}";
    check_write(&policy, &ann, &give("writer"), Err(refused));
    let gone = "clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    check_write(&policy, &ann, &give("gone"), Err(gone));
}

#[test]
fn only_who_may_do_everything_may_write_an_aggregating_role() {
    let ann = json!([{"kind": "User", "name": "ann"}]);
    let policy = policy(&[
        role("some", "", json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])),
        role(
            "root",
            "",
            json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]),
        ),
        binding("r", "", ("ClusterRole", "some"), ann),
        binding("s", "", ("ClusterRole", "root"), json!([{"kind": "User", "name": "bob"}])),
    ]);
    let (kind, mut object) = role("agg", "", json!([]));
    object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let escalating = user("ann", &[]);
    // A rule for every resource covers the verb `escalate` too.
    check_write(&policy, &escalating, &(kind, object.clone()), Ok(()));
    check_write(&policy, &user("bob", &[]), &(kind, object.clone()), Ok(()));
    let why = "clusterroles.rbac.authorization.k8s.io \"agg\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
    check_write(&policy, &user("eve", &[]), &(kind, object), Err(why));
}
