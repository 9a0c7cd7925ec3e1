use fairlead_api::view::Pod;
use serde_json::Value;

use super::*;

fn pod(name: &str, owner: Option<&str>) -> Arc<Pod> {
    let owners: Vec<Value> =
        owner.iter().map(|uid| json!({"kind": "ReplicaSet", "uid": uid, "controller": true})).collect();
    let pod = json!({"metadata": {"namespace": "default", "name": name, "ownerReferences": owners}});
    Arc::new(serde_json::from_value(pod).expect("a Pod"))
}

fn change(old: Option<Arc<Pod>>, new: Option<Arc<Pod>>) -> Change<Pod> {
    let name = old.as_ref().or(new.as_ref()).map(|pod| pod.metadata.name.clone()).expect("one side");
    Change { key: Key::new("default", name), old, new }
}

#[test]
fn the_index_follows_owners_as_they_change() {
    let mut index = OwnerIndex::<Pod>::new();
    let keys = |index: &OwnerIndex<Pod>, uid: &str| -> Vec<String> {
        index.owned.get(uid).into_iter().flatten().map(|key| key.name.to_string()).collect()
    };
    index.update(&[change(None, Some(pod("a", Some("u")))), change(None, Some(pod("b", None)))]);
    assert_eq!((keys(&index, "u"), index.orphans.len()), (vec!["a".to_owned()], 1));
    index.update(&[
        change(Some(pod("b", None)), Some(pod("b", Some("u")))),
        change(Some(pod("a", Some("u"))), Some(pod("a", Some("v")))),
    ]);
    assert_eq!((keys(&index, "u"), keys(&index, "v")), (vec!["b".to_owned()], vec!["a".to_owned()]));
    assert!(index.orphans.is_empty());
    index.update(&[change(Some(pod("b", Some("u"))), None), change(Some(pod("a", Some("v"))), None)]);
    assert!(index.owned.is_empty() && index.orphans.is_empty());
}
