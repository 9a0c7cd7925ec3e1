//! Membership agrees with looking at everything, whatever happens.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Pod(usize, BTreeMap<String, String>),
    NoPod(usize),
    Service(usize, BTreeMap<String, String>),
    NoService(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let labels = || prop::collection::btree_map("[ab]", "[xy]", 0..3);
    prop_oneof![
        4 => (0..6usize, labels()).prop_map(|(at, labels)| Step::Pod(at, labels)),
        1 => (0..6usize).prop_map(Step::NoPod),
        3 => (0..4usize, labels()).prop_map(|(at, labels)| Step::Service(at, labels)),
        1 => (0..4usize).prop_map(Step::NoService),
    ]
}

fn selecting<'a>(services: &'a BTreeMap<String, Service>, pod: &Pod) -> BTreeSet<&'a str> {
    let selecting = services.iter().filter(|(_, service)| service.selects(&pod.metadata.labels));
    selecting.map(|(name, _)| name.as_str()).collect()
}

proptest! {
    #[test]
    fn membership_agrees_with_looking_at_everything(steps in prop::collection::vec(step(), 0..40)) {
        let mut membership = Membership::default();
        let (mut pods, mut services) = (BTreeMap::<String, Pod>::new(), BTreeMap::<String, Service>::new());
        for step in steps {
            match step {
                Step::Pod(at, labels) => {
                    let mut pod = Pod::default();
                    pod.metadata.name = format!("p{at}");
                    pod.metadata.labels = labels;
                    let mut expected = selecting(&services, &pod);
                    if let Some(old) = pods.get(&pod.metadata.name) {
                        expected.extend(selecting(&services, old));
                    }
                    let concerned = membership.apply_pod(&pod);
                    prop_assert!(concerned.iter().map(String::as_str).eq(expected.iter().copied()));
                    pods.insert(pod.metadata.name.clone(), pod);
                }
                Step::NoPod(at) => {
                    let name = format!("p{at}");
                    let old = pods.remove(&name);
                    let expected = old.map(|old| selecting(&services, &old)).unwrap_or_default();
                    let concerned = membership.remove_pod("", &name);
                    prop_assert!(concerned.iter().map(String::as_str).eq(expected.iter().copied()));
                }
                Step::Service(at, selector) => {
                    let mut service = Service::default();
                    service.metadata.name = format!("s{at}");
                    service.spec.selector = selector;
                    membership.apply_service(&service, pods.values());
                    services.insert(service.metadata.name.clone(), service);
                }
                Step::NoService(at) => {
                    membership.remove_service("", &format!("s{at}"));
                    services.remove(&format!("s{at}"));
                }
            }
            for (name, service) in &services {
                let expected = pods.values().filter(|pod| service.selects(&pod.metadata.labels));
                prop_assert!(membership.pods_of("", name).eq(expected.map(|pod| pod.metadata.name.as_str())));
            }
        }
        for name in pods.keys() {
            membership.remove_pod("", name);
        }
        prop_assert!(membership.namespaces.is_empty());
    }
}
