//! Which Services a Pod is found by, as they come and go.

use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn service(namespace: &str, name: &str, selector: Labels) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = namespace.to_owned();
    service.metadata.name = name.to_owned();
    service.spec.selector = selector;
    service
}

#[test]
fn a_pod_is_selected_by_services_of_its_namespace_whose_every_pair_it_has() {
    let mut selection = Selection::default();
    selection.apply(&service("a", "web", labels(&[("app", "web")])));
    selection.apply(&service("a", "front", labels(&[("app", "web"), ("tier", "front")])));
    selection.apply(&service("a", "none", labels(&[])));
    selection.apply(&service("b", "web", labels(&[("app", "web")])));
    let found = |namespace, pairs| selection.services_of(namespace, &labels(pairs)).into_iter().collect::<Vec<_>>();
    assert_eq!(found("a", &[("app", "web")]), ["web"]);
    assert_eq!(found("a", &[("app", "web"), ("tier", "front")]), ["front", "web"]);
    assert_eq!(found("a", &[("tier", "front")]), [""; 0]);
    assert_eq!(found("b", &[("app", "web"), ("tier", "front")]), ["web"]);
    assert_eq!(found("c", &[("app", "web")]), [""; 0]);
}

#[test]
fn services_that_share_a_pair_are_told_apart_by_another() {
    let mut selection = Selection::default();
    for at in 0..100 {
        let app = format!("app-{at}");
        selection.apply(&service("a", &app, labels(&[("all", "same"), ("app", &app)])));
    }
    let inside = &selection.namespaces["a"];
    let most = inside.by_pair.values().flat_map(HashMap::values).map(BTreeSet::len).max();
    assert_eq!(most, Some(1));
}

proptest! {
    /// Whatever happens, the index says what looking at all Services says, and nothing stays behind.
    #[test]
    fn the_index_agrees_with_looking_at_all(
        steps in prop::collection::vec((0..4usize, prop::collection::btree_map("[ab]", "[xy]", 0..3)), 0..30),
        pod in prop::collection::btree_map("[abc]", "[xy]", 0..4),
    ) {
        let mut selection = Selection::default();
        let mut all = BTreeMap::new();
        for (which, selector) in steps {
            let name = format!("s{which}");
            if which == 3 && !all.is_empty() {
                let (gone, _): (String, Service) = all.pop_first().expect("not empty");
                selection.remove("n", &gone);
                continue;
            }
            let service = service("n", &name, selector);
            selection.apply(&service);
            all.insert(name, service);
        }
        let expected: BTreeSet<_> =
            all.iter().filter(|(_, service)| service.selects(&pod)).map(|(name, _)| name.as_str()).collect();
        prop_assert_eq!(selection.services_of("n", &pod), expected);
        for name in all.keys() {
            selection.remove("n", name);
        }
        prop_assert!(selection.namespaces.is_empty());
    }
}
