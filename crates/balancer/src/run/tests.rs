use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Node, Service};
use fairlead_plan::{Change, Planner};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::balancer::{Balancer, Shared};
use super::input::{self, Advertised};
use super::{members, together};
use crate::announce::Input;
use crate::backends::Stage;
use crate::config::{Around, Config};
use crate::guard::Target;
use crate::metallb::{Advertisement, Found};
use crate::pools::Pool;
use crate::spec::Scheme;

#[test]
fn pools_of_metallbs_that_collide_are_not_used() {
    let own = [pool("default", "192.0.2.0/28")];
    let check = |others: &[Pool], used: &[&str], problem: &str| {
        let (all, problems) = together(&own, others);
        let names: Vec<&str> = all.iter().map(|pool| pool.name.as_str()).collect();
        assert_eq!(names, used);
        assert!(problems.join("\n").contains(problem), "{problems:?}");
    };
    check(&[pool("lan", "192.0.3.0/28")], &["default", "lan"], "");
    check(&[pool("default", "192.0.3.0/28")], &["default"], "another pool of that name");
    check(&[pool("lan", "192.0.2.7")], &["default"], "addresses of the pool default");
    check(&[pool("a", "192.0.3.0/28"), pool("b", "192.0.3.1")], &["default", "a"], "IPAddressPool b");
}

fn pool(name: &str, range: &str) -> Pool {
    Pool::new(name, vec![range.parse().unwrap()], Scheme::Public)
}

/// A Service at 192.0.2.1 with these annotations and traffic policy, and these endpoints, on the Node n1.
struct World {
    planner: Planner,
    balancer: Balancer,
    config: Arc<Config>,
}

fn world(policy: &str, annotations: &Value, endpoints: &Value) -> World {
    let mut config = Config::default();
    config.security_groups.insert("office".to_owned(), vec!["198.51.100.0/24".parse().unwrap()]);
    let config = Arc::new(config);
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "annotations": annotations},
        "spec": {
            "type": "LoadBalancer", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"],
            "externalTrafficPolicy": policy, "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy"}]}},
    }))
    .unwrap();
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"},
                     "annotations": {"fairlead.dev/weight": "10.0.0.4=0"}},
        "addressType": "IPv4", "ports": [{"name": "", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints,
    }))
    .unwrap();
    let key = Arc::new(Key::new("default", "web"));
    let mut balancer = Balancer::new(key.clone(), Arc::new(service));
    let shared = Shared::new(config.clone(), false, "spool".into());
    let secrets = std::collections::BTreeMap::new();
    balancer.read(&shared, Around { secrets: &secrets, now: Timestamp::UNIX_EPOCH });
    assert!(balancer.refused.is_empty());
    let mut planner = Planner::new(fairlead_plan::Node { name: "n1".to_owned(), ..fairlead_plan::Node::default() });
    let planned = members::planned(&balancer.service, &balancer.addresses);
    planner.apply([
        Change::Service((*key).clone(), Some(Arc::new(planned))),
        Change::Slice(Key::new("default", "web-1"), Some(Arc::new(slice))),
    ]);
    World { planner, balancer, config }
}

fn endpoint(ip: &str, node: &str, state: &str) -> Value {
    let (ready, serving, terminating) = match state {
        "ready" => (true, true, false),
        "ending" => (false, true, true),
        _ => (false, false, false),
    };
    let conditions = json!({"ready": ready, "serving": serving, "terminating": terminating});
    json!({"addresses": [ip], "nodeName": node, "zone": format!("zone-of-{node}"), "conditions": conditions})
}

#[test]
fn backends_are_what_the_plan_gives_packets_and_those_that_keep_what_they_have() {
    let check = |policy: &str, endpoints: Value, expected: &[&str]| {
        let world = world(policy, &json!({}), &endpoints);
        let spec = world.balancer.spec.as_ref().unwrap();
        let found = members::backends(&world.planner, &spec.listeners[0], &world.balancer.addresses);
        let words = |stage| if stage == Stage::Draining { "draining" } else { "ready" };
        let found: Vec<String> = found
            .iter()
            .map(|one| {
                format!("{} {} x{} {}", one.address, words(one.stage), one.weight, one.node.as_deref().unwrap_or("-"))
            })
            .collect();
        assert_eq!(found, expected, "{policy} {endpoints}");
    };
    let (one, two) = (endpoint("10.0.0.1", "n1", "ready"), endpoint("10.0.0.2", "n2", "ready"));
    let both = ["10.0.0.1:8080 ready x1 n1", "10.0.0.2:8080 ready x1 n2"];
    check("Cluster", json!([one, two]), &both);
    check("Local", json!([one, two]), &both[..1]);
    check("Local", json!([two]), &[]);
    check("Cluster", json!([one, endpoint("10.0.0.2", "n2", "starting")]), &both[..1]);
    let ending = endpoint("10.0.0.3", "n1", "ending");
    check("Cluster", json!([one, ending]), &[both[0], "10.0.0.3:8080 draining x1 n1"]);
    check("Cluster", json!([ending]), &["10.0.0.3:8080 draining x1 n1"]);
    let elsewhere = endpoint("10.0.0.3", "n2", "ending");
    check("Local", json!([one, elsewhere]), &both[..1]);
    check("Cluster", json!([one, endpoint("10.0.0.4", "n1", "ready")]), &[both[0], "10.0.0.4:8080 ready x0 n1"]);
}

fn told(world: &World, found: Found) -> Input {
    let node: Node =
        serde_json::from_value(json!({"metadata": {"name": "n1"}, "spec": {"podCIDRs": ["10.244.0.0/24"]}})).unwrap();
    let advertised = Advertised { found: Arc::new(found), interfaces: vec!["eth0".to_owned()] };
    input::input([&world.balancer].into_iter(), &world.planner, vec![Arc::new(node)], &advertised, &world.config)
}

#[test]
fn an_address_is_wanted_where_its_pool_is_advertised_and_its_endpoints_are() {
    let ready = json!([endpoint("10.0.0.1", "n1", "ready"), endpoint("10.0.0.2", "n2", "starting")]);
    let input = told(&world("Cluster", &json!({}), &ready), Found::default());
    let [wanted] = &input.wanted[..] else { panic!("{:?}", input.wanted) };
    assert_eq!((wanted.address, wanted.local.is_none()), ("192.0.2.1".parse::<IpAddr>().unwrap(), true));
    assert_eq!(wanted.advertisements[0].interfaces, ["eth0"]);
    let input = told(&world("Local", &json!({}), &ready), Found::default());
    assert_eq!(input.wanted[0].local, Some(["n1".to_owned()].into()));
    let advertisement =
        Advertisement { pools: vec!["lan".to_owned()], nodes: Vec::new(), interfaces: vec!["eth7".to_owned()] };
    let mut found = Found { pools: vec![pool("lan", "192.0.2.0/28")], ..Found::default() };
    assert_eq!(told(&world("Cluster", &json!({}), &ready), found.clone()).wanted[0].advertisements, []);
    found.advertisements.push(advertisement);
    let input = told(&world("Cluster", &json!({}), &ready), found);
    assert_eq!(input.wanted[0].advertisements[0].interfaces, ["eth7"]);
}

#[test]
fn the_announcer_is_told_of_endpoints_only_where_they_decide_who_answers() {
    let here = json!([endpoint("10.0.0.1", "n1", "ready")]);
    for there in
        [json!([endpoint("10.0.0.2", "n2", "ready")]), json!([endpoint("10.0.0.1", "n1", "starting")]), json!([])]
    {
        for policy in ["Cluster", "Local"] {
            let [before, after] = [&here, &there].map(|endpoints| world(policy, &json!({}), endpoints));
            let [had, has] = [&before, &after].map(|world| told(world, Found::default()));
            let changed = (had.wanted, had.guard) != (has.wanted, has.guard);
            assert_eq!(changed, input::depends_on_endpoints(&after.balancer), "{policy} {there}");
        }
    }
}

#[test]
fn what_is_served_at_an_address_is_guarded_with_who_may_use_it() {
    let ready = json!([endpoint("10.0.0.1", "n1", "ready")]);
    let guard = told(&world("Cluster", &json!({}), &ready), Found::default()).guard;
    assert_eq!((guard.addresses.len(), guard.listeners.len(), guard.rules.len(), guard.pods.len()), (1, 1, 0, 1));
    let groups = json!({"service.beta.kubernetes.io/aws-load-balancer-extra-security-groups": "office"});
    let guard = told(&world("Cluster", &groups, &ready), Found::default()).guard;
    assert_eq!(guard.rules.len(), 1);
    assert_eq!(guard.rules[0].from, ["198.51.100.0/24".parse().unwrap()]);
    let nlb = json!({"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"});
    let guard = told(&world("Cluster", &nlb, &ready), Found::default()).guard;
    let described = |purpose: &str| guard.rules.iter().filter(|rule| rule.description.contains(purpose)).count();
    assert_eq!((described("nlb/health="), described("nlb/client="), described("nlb/mtu=")), (1, 1, 1));
    assert!(guard.rules.iter().any(|rule| rule.to == Target::TooLong(30080)), "{:?}", guard.rules);
}

#[test]
fn who_begins_to_serve_while_a_value_is_bad_serves_what_last_made_sense() {
    let mut world = world("Cluster", &json!({}), &json!([]));
    let idle = "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout";
    let mut service = (*world.balancer.service).clone();
    service.metadata.annotations.insert(idle.to_owned(), "never".to_owned());
    let shared = Shared::new(world.config.clone(), false, "spool".into());
    let secrets = std::collections::BTreeMap::new();
    let around = Around { secrets: &secrets, now: Timestamp::UNIX_EPOCH };
    let mut read = |service: &Service| {
        world.balancer = Balancer::new(world.balancer.key.clone(), Arc::new(service.clone()));
        world.balancer.read(&shared, around);
        assert_eq!(world.balancer.refused.len(), 1);
        (world.balancer.spec.as_ref().map(|spec| spec.idle.as_secs()), world.balancer.is_proxied())
    };
    assert_eq!(read(&service), (None, false));
    service.metadata.annotations.insert("fairlead.dev/last-good".to_owned(), format!("{{\"{idle}\":\"7\"}}"));
    assert_eq!(read(&service), (Some(7), true));
}
