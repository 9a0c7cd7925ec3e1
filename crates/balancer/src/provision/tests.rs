use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{Node, Service};
use serde_json::{Value, json};

use super::{FINALIZER, Kept, Ours, State, Task};
use crate::config::{Around, Config};
use crate::spec::Scheme;
use crate::spec::names::LAST_GOOD;
use crate::tls::Secret;

/// Knows a pool, and of Services what the test says.
struct World {
    state: State,
    secrets: BTreeMap<Key, Arc<Secret>>,
}

impl World {
    fn new(pool: &str) -> World {
        World::with(pool, true)
    }

    fn with(pool: &str, default: bool) -> World {
        let mut config = Config::default();
        if !pool.is_empty() {
            config.add_pool(pool, Scheme::Public).unwrap();
        }
        let ours = Ours { class: "fairlead.dev/lb".to_owned(), default };
        let pools = config.pools.clone();
        World { state: State::new(ours, Arc::new(config), false, pools), secrets: BTreeMap::new() }
    }

    /// A Service is so now. Returns what comes of it, for all it concerns.
    fn put(&mut self, name: &str, service: Option<&Value>) -> Vec<Task> {
        let service = service.map(|object| Arc::new(serde_json::from_value::<Service>(object.clone()).unwrap()));
        let concerned = self.state.put(Key::new("default", name), service);
        concerned.iter().filter_map(|key| self.decide(key)).collect()
    }

    fn decide(&mut self, key: &Arc<Key>) -> Option<Task> {
        self.state.decide(key, Around { secrets: &self.secrets, now: jiff::Timestamp::UNIX_EPOCH })
    }

    /// Puts one and says what becomes of it.
    fn one(&mut self, name: &str, more: &Value) -> Option<Task> {
        self.put(name, Some(&service(name, more))).pop()
    }
}

/// A Service of type LoadBalancer, with some fields replaced.
fn service(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": "10.96.0.9",
            "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "protocol": "TCP"}],
        },
    });
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.iter().for_each(|(key, value)| merge(into.entry(key.clone()).or_insert(Value::Null), value));
        }
        (into, more) => *into = more.clone(),
    }
}

/// A Service as it is after it was given an address.
fn given(ip: &str) -> Value {
    json!({
        "metadata": {"finalizers": [FINALIZER]},
        "status": {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": "VIP"}]}},
    })
}

fn with(mut one: Value, more: &Value) -> Value {
    merge(&mut one, more);
    one
}

/// `192.0.2.1/VIP`, `same`, `gone`.
fn kept(task: Option<&Task>) -> String {
    match task.map(|task| &task.kept) {
        None => "none".to_owned(),
        Some(Kept::Same) => "same".to_owned(),
        Some(Kept::Gone) => "gone".to_owned(),
        Some(Kept::At(all)) => {
            let one =
                |one: &fairlead_api::view::Ingress| format!("{}/{}", one.ip, one.ip_mode.as_deref().unwrap_or("-"));
            all.iter().map(one).collect::<Vec<_>>().join(",")
        }
    }
}

fn reasons(task: Option<&Task>) -> Vec<&'static str> {
    task.map(|task| task.before.iter().chain(&task.after).map(|note| note.reason).collect()).unwrap_or_default()
}

#[test]
fn a_service_gets_an_address_and_is_told_so() {
    let mut world = World::new("192.0.2.0/28");
    let task = world.one("web", &json!({}));
    assert_eq!(kept(task.as_ref()), "192.0.2.1/VIP");
    assert_eq!(reasons(task.as_ref()), ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]);
    assert_eq!(task.unwrap().after[0].message, "Ensured load balancer: 192.0.2.1 from pool \"default\"");
    assert_eq!(kept(world.one("web", &given("192.0.2.1")).as_ref()), "same");
    let only_status = with(given("192.0.2.1"), &json!({"metadata": {"finalizers": []}}));
    let task = world.one("web", &only_status);
    assert_eq!(
        (kept(task.as_ref()).as_str(), reasons(task.as_ref()).len()),
        ("192.0.2.1/VIP", 0),
        "the finalizer is missing"
    );
}

#[test]
fn what_is_proxied_says_so_in_its_mode() {
    let mut world = World::new("192.0.2.0/28");
    let proxy =
        json!({"metadata": {"annotations": {"service.beta.kubernetes.io/aws-load-balancer-proxy-protocol": "*"}}});
    assert_eq!(kept(world.one("web", &proxy).as_ref()), "192.0.2.1/Proxy");
    assert_eq!(kept(world.one("web", &with(given("192.0.2.1"), &proxy)).as_ref()), "192.0.2.1/Proxy");
}

#[test]
fn only_services_of_our_class_are_ours() {
    let check = |default: bool, class: &Value, expected: &str| {
        let mut world = World::with("192.0.2.0/28", default);
        let task = world.one("web", &json!({"spec": {"loadBalancerClass": class}}));
        assert_eq!(kept(task.as_ref()), expected, "{default} {class}");
    };
    check(true, &Value::Null, "192.0.2.1/VIP");
    check(false, &Value::Null, "none");
    check(true, &json!("fairlead.dev/lb"), "192.0.2.1/VIP");
    check(false, &json!("fairlead.dev/lb"), "192.0.2.1/VIP");
    check(true, &json!("example.com/other"), "none");
}

#[test]
fn a_service_of_another_class_is_left_alone_with_the_same_finalizer() {
    let mut world = World::new("192.0.2.0/28");
    let other = with(given("203.0.113.1"), &json!({"spec": {"loadBalancerClass": "example.com/other"}}));
    assert_eq!(kept(world.one("web", &other).as_ref()), "none");
    let deleted = with(other, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(kept(world.one("web", &deleted).as_ref()), "none");
}

#[test]
fn a_service_that_changes_its_type_or_class_or_is_deleted_loses_its_load_balancer() {
    for change in [
        json!({"spec": {"type": "ClusterIP"}}),
        json!({"spec": {"loadBalancerClass": "example.com/other"}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    ] {
        let mut world = World::new("192.0.2.1");
        world.one("web", &given("192.0.2.1"));
        assert_eq!(reasons(world.one("next", &json!({})).as_ref()), ["SyncLoadBalancerFailed"]);
        let changed = with(given("192.0.2.1"), &change);
        let task = world.one("web", &changed).unwrap();
        assert_eq!(task.kept, Kept::Gone, "{change}");
        assert_eq!(reasons(Some(&task)), ["DeletingLoadBalancer", "DeletedLoadBalancer"]);
        let concerned = world.state.wrote(&task);
        assert_eq!(concerned.len(), 1, "somebody waits for it");
        assert_eq!(kept(world.decide(&concerned[0]).as_ref()), "192.0.2.1/VIP");
        let plain = with(service("web", &change), &json!({}));
        assert!(world.put("web", Some(&plain)).is_empty() || change["metadata"].is_object());
    }
}

#[test]
fn a_service_that_changed_its_type_while_nobody_looked_is_cleaned_up() {
    let changed = with(given("192.0.2.1"), &json!({"spec": {"type": "NodePort"}}));
    assert_eq!(kept(World::new("192.0.2.0/28").one("web", &changed).as_ref()), "gone");
    assert_eq!(kept(World::with("192.0.2.0/28", false).one("web", &changed).as_ref()), "gone", "its address is ours");
    let foreign = with(given("203.0.113.1"), &json!({"spec": {"type": "NodePort"}}));
    assert_eq!(kept(World::with("192.0.2.0/28", false).one("web", &foreign).as_ref()), "none", "its address is not");
}

#[test]
fn a_refusal_is_told_once_and_the_service_keeps_what_it_has() {
    let mut world = World::new("192.0.2.0/28");
    world.one("web", &given("192.0.2.5"));
    let bad = |value: &str| {
        let name = "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout";
        with(given("192.0.2.5"), &json!({"metadata": {"annotations": {name: value}}}))
    };
    let task = world.one("web", &bad("soon")).unwrap();
    assert_eq!((task.kept.clone(), reasons(Some(&task))), (Kept::Same, vec!["SyncLoadBalancerFailed"]));
    let message = &task.before[0].message;
    assert!(message.contains("idle-timeout: \"soon\" is not accepted: "), "{message}");
    assert!(world.one("web", &bad("soon")).unwrap().before.is_empty(), "told already");
    assert_eq!(world.one("web", &bad("later")).unwrap().before.len(), 1, "another mistake");
    assert_eq!(
        kept(world.one("other", &json!({"spec": {"loadBalancerIP": "192.0.2.5"}})).as_ref()),
        "same",
        "still taken"
    );
    assert_eq!(reasons(world.one("web", &given("192.0.2.5")).as_ref()), Vec::<&str>::new());
    assert_eq!(world.one("web", &bad("later")).unwrap().before.len(), 1, "broken again");
}

#[test]
fn after_a_start_a_refused_service_still_has_its_address() {
    let mut world = World::new("192.0.2.0/28");
    let bad = json!({"spec": {"loadBalancerIP": "192.0.2.99"}});
    world.one("web", &with(given("192.0.2.1"), &bad));
    assert_eq!(kept(world.one("other", &json!({})).as_ref()), "192.0.2.2/VIP");
}

#[test]
fn without_pools_every_service_is_told_which_flag_makes_one() {
    let mut world = World::new("");
    let task = world.one("web", &json!({})).unwrap();
    assert!(task.before[0].message.contains("--pool"), "{:?}", task.before);
    let mut pools = Config::default();
    pools.add_pool("192.0.2.7", Scheme::Public).unwrap();
    let all = world.state.set_pools(pools.pools);
    assert_eq!(kept(world.decide(&all[0]).as_ref()), "192.0.2.7/VIP");
}

#[test]
fn who_has_an_address_comes_before_who_wants_one() {
    let mut world = World::new("192.0.2.1-192.0.2.2");
    let older = json!({"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}});
    for (name, more) in [("new", older), ("has", given("192.0.2.1"))] {
        let service = serde_json::from_value::<Service>(service(name, &more)).unwrap();
        world.state.put(Key::new("default", name), Some(Arc::new(service)));
    }
    let order = world.state.claim();
    let answers: Vec<String> = order.iter().map(|key| kept(world.decide(key).as_ref())).collect();
    assert_eq!(answers, ["same", "192.0.2.2/VIP"]);
}

#[test]
fn a_node_that_comes_with_an_address_takes_it() {
    let mut world = World::new("192.0.2.1-192.0.2.2");
    world.one("web", &given("192.0.2.1"));
    let node: Node =
        serde_json::from_value(json!({"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}))
            .unwrap();
    let concerned = world.state.put_node("n1", Some(&node));
    assert_eq!(concerned.len(), 1);
    assert_eq!(kept(world.decide(&concerned[0]).as_ref()), "192.0.2.2/VIP");
    world.one("more", &json!({}));
    assert_eq!(world.state.put_node("n1", None).len(), 1, "who waits is looked at when it goes");
}

#[test]
fn a_service_made_again_under_its_name_is_another() {
    let mut world = World::new("192.0.2.0/28");
    world.one("web", &given("192.0.2.7"));
    let again = json!({"metadata": {"uid": "another"}});
    assert_eq!(kept(world.one("web", &again).as_ref()), "192.0.2.1/VIP");
    assert!(world.put("web", None).is_empty());
    assert_eq!(kept(world.one("more", &json!({})).as_ref()), "192.0.2.1/VIP");
}

#[test]
fn names_of_certificates_and_buckets_must_be_known() {
    let annotated = |pairs: &[(&str, &str)]| {
        let all: serde_json::Map<String, Value> = pairs
            .iter()
            .map(|(name, value)| (format!("service.beta.kubernetes.io/aws-load-balancer-{name}"), json!(value)))
            .collect();
        json!({"metadata": {"annotations": all}})
    };
    let check = |pairs: &[(&str, &str)], expected: &str| {
        let task = World::new("192.0.2.0/28").one("web", &annotated(pairs)).unwrap();
        let said = task.before.iter().map(|note| note.message.as_str()).collect::<String>();
        assert!(said.contains(expected), "{pairs:?}: {said}");
    };
    check(
        &[("ssl-cert", "arn:aws:acm:us-east-1:123456789012:certificate/1")],
        "neither in the configuration nor a Secret",
    );
    check(&[("ssl-cert", "web-tls")], "ssl-cert: \"web-tls\" is not accepted: it is neither");
    let log = [("access-log-enabled", "true"), ("access-log-s3-bucket-name", "logs")];
    check(&log, "want one of buckets in --balancer-config, which has none");
}

const IDLE: &str = "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout";

/// A Service that has 192.0.2.1, with this idle limit, and this kept of its annotations.
fn idle(seconds: &str, kept: Option<&str>) -> Value {
    let mut more = given("192.0.2.1");
    more["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("Proxy");
    more["metadata"]["annotations"] = json!({IDLE: seconds});
    if let Some(kept) = kept {
        more["metadata"]["annotations"][LAST_GOOD] = json!(kept);
    }
    more
}

#[test]
fn annotations_that_make_sense_are_kept_for_when_they_do_not() {
    let good = |seconds: &str| format!("{{\"fairlead.dev/ports\":\"80/TCP\",\"{IDLE}\":\"{seconds}\"}}");
    let mut world = World::new("192.0.2.0/28");
    let check = |world: &mut World, more: &Value, expected: Option<Option<&str>>| {
        let task = world.one("web", more).unwrap();
        assert_eq!(task.good.as_ref().map(Option::as_deref), expected, "{more}");
        assert_eq!(task.is_idle(), expected.is_none());
    };
    // What was refused before we came is nobody's last good.
    check(&mut world, &idle("never", None), None);
    check(&mut world, &idle("7", None), Some(Some(&good("7"))));
    check(&mut world, &idle("7", Some(&good("7"))), None);
    check(&mut world, &idle("8", Some(&good("7"))), Some(Some(&good("8"))));
    // A bad value changes nothing, and who takes the good ones away gets them back.
    check(&mut world, &idle("never", Some(&good("8"))), None);
    check(&mut world, &idle("never", None), Some(Some(&good("8"))));
    // Without annotations there is nothing to keep.
    let mut plain = given("192.0.2.1");
    check(&mut world, &plain, None);
    plain["metadata"]["annotations"] = json!({LAST_GOOD: good("8")});
    check(&mut world, &plain, Some(None));
    // It goes with the load balancer.
    plain["spec"] = json!({"type": "ClusterIP"});
    let task = world.one("web", &plain).unwrap();
    assert_eq!((task.kept, task.good), (Kept::Gone, Some(None)));
}

/// The message, and the error of each port, of what comes of a Service.
fn refused(task: &Task) -> (String, Vec<(i32, Option<String>)>) {
    let said: Vec<&str> = task.before.iter().map(|note| note.message.as_str()).collect();
    let Kept::At(ingress) = &task.kept else { return (said.join("\n"), Vec::new()) };
    (said.join("\n"), ingress[0].ports.iter().map(|one| (one.port, one.error.clone())).collect())
}

#[test]
fn a_port_without_its_certificate_is_refused_and_its_siblings_are_served() {
    let tls = |ports: &str| {
        let mut more = given("192.0.2.1");
        more["metadata"]["annotations"] = json!({
            "service.beta.kubernetes.io/aws-load-balancer-ssl-cert": "web-tls",
            "service.beta.kubernetes.io/aws-load-balancer-ssl-ports": ports,
        });
        more["spec"] = json!({"ports": [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 443, "protocol": "TCP"}]});
        more
    };
    let missing = || Some("fairlead.dev/CertificateMissing".to_owned());
    let mut world = World::new("192.0.2.0/28");
    // A new one is given its address; the port says why it is not served.
    let mut fresh = tls("443");
    fresh["status"] = json!({});
    let task = world.one("fresh", &fresh).unwrap();
    let (said, ports) = refused(&task);
    assert!(said.contains("port 443/TCP is not served: ") && said.contains("web-tls"), "{said}");
    assert_eq!(ports, [(80, None), (443, missing())]);
    assert_eq!((task.after.len(), task.good), (1, None), "{:?}", task.after);
    // One that was served without TLS keeps its port, on both paths, and what it was is written
    // down.
    world.one("web", &given("192.0.2.2"));
    let mut served = tls("443");
    served["status"]["loadBalancer"]["ingress"][0]["ip"] = json!("192.0.2.2");
    for ports in ["443", "*"] {
        served["metadata"]["annotations"]["service.beta.kubernetes.io/aws-load-balancer-ssl-ports"] = json!(ports);
        let task = world.one("web", &served).unwrap();
        let (said, errors) = refused(&task);
        assert!(said.contains("port 443/TCP is not served: "), "{ports}: {said}");
        assert_eq!(said.contains("port 80/TCP is served as before: "), ports == "*", "{said}");
        assert_eq!(errors, [(80, None), (443, missing())], "{ports}");
        assert_eq!(task.good, Some(Some("{\"fairlead.dev/ports\":\"80/TCP\"}".to_owned())), "{ports}");
    }
}

#[test]
fn a_port_that_is_refused_says_so_in_the_status_of_a_service_that_is_served() {
    let mut world = World::new("192.0.2.0/28");
    let mut more = idle("7", Some(&format!("{{\"{IDLE}\":\"7\"}}")));
    more["spec"] =
        json!({"ports": [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]});
    let task = world.one("web", &more).unwrap();
    let Kept::At(ingress) = &task.kept else { panic!("{task:?}") };
    let told: Vec<_> = ingress[0].ports.iter().map(|one| (one.port, one.error.as_deref())).collect();
    assert_eq!(told, [(80, None), (53, Some("fairlead.dev/ProtocolNotServed"))]);
    assert_eq!((ingress.len(), &*ingress[0].ip, ingress[0].ip_mode.as_deref()), (1, "192.0.2.1", Some("Proxy")));
    assert_eq!(task.before.len(), 1);
    world.state.wrote(&task);
    // Said once, and written once.
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "error": "fairlead.dev/ProtocolNotServed"}]);
    more["status"]["loadBalancer"]["ingress"][0]["ports"] = ports;
    let task = world.one("web", &more).unwrap();
    assert_eq!((task.is_idle(), task.before), (true, vec![]));
    // One that is not served has no status to say it in.
    more["status"] = json!({});
    assert!(world.one("other", &more).unwrap().kept == Kept::Same);
    // Without the port all is well again.
    more["status"] =
        json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy", "ports": [{"port": 80}]}]}});
    more["spec"] = json!({"ports": [{"port": 80, "protocol": "TCP"}]});
    let Kept::At(ingress) = world.one("web", &more).unwrap().kept else { panic!() };
    assert_eq!(ingress[0].ports, []);
}
