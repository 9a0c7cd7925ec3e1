use fairlead_api::Look;
use serde_json::{Value, json};

use super::*;

/// A graph and what it says is to be looked at.
#[derive(Default)]
struct World {
    graph: Graph,
    todo: Vec<Id>,
}

fn id(kind: &str, name: &str) -> Id {
    let place = kinds::KINDS.iter().position(|known| known.kind == kind).expect("a kind");
    Id::new(place, if kinds::KINDS[place].namespaced { "default" } else { "" }, name)
}

fn service() -> Id {
    id("Service", "web")
}

fn slice() -> Id {
    id("EndpointSlice", "web-abcde")
}

/// Metadata of a dependent of the Service with a uid.
fn owned_by(uid: &str) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "Service", "name": "web", "uid": uid, "blockOwnerDeletion": true});
    json!({"uid": "s", "ownerReferences": [owner]})
}

fn going(mut metadata: Value, finalizer: &str) -> Value {
    metadata.set("deletionTimestamp", "2026-01-01T00:00:00Z");
    metadata.set("finalizers", json!([finalizer]));
    metadata
}

impl World {
    fn synced() -> World {
        let mut world = World::default();
        world.graph.sync(&mut world.todo);
        world
    }

    fn put(&mut self, id: Id, metadata: &Value) {
        let text = json!({"kind": "Any", "metadata": metadata, "spec": {}}).to_string();
        self.graph.put(id, &Head::read(text.as_bytes()).expect("metadata"), &mut self.todo);
    }

    fn delete(&mut self, id: &Id) {
        self.graph.delete(id, &mut self.todo);
    }

    /// What is to be looked at since this was last asked.
    fn check(&mut self, expected: &[Id]) {
        let mut todo = std::mem::take(&mut self.todo);
        todo.sort();
        todo.dedup();
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(todo, expected);
    }
}

const CHECK: Known = Known { has_dependents: false, in_circle: false, fresh: false };

#[test]
fn objects_without_owners_are_not_remembered() {
    let mut world = World::synced();
    world.put(service(), &json!({"uid": "1"}));
    world.put(slice(), &json!({"uid": "s"}));
    assert_eq!((world.graph.nodes.len(), world.graph.places.len()), (0, 0));
}

#[test]
fn nothing_is_remembered_once_owner_and_dependent_are_gone() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.put(service(), &json!({"uid": "1"}));
    assert_eq!(world.graph.places.len(), 2);
    world.delete(&service());
    world.delete(&slice());
    assert_eq!((world.graph.places.len(), world.graph.free.len()), (0, 2));
    world.put(slice(), &owned_by("2"));
    assert_eq!((world.graph.nodes.len(), world.graph.free.len()), (2, 0));
}

#[test]
fn a_dependent_is_looked_at_when_it_comes_and_when_its_owner_goes_but_not_when_it_changes() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.check(&[slice()]);
    assert_eq!(world.graph.work(&slice()), Some(Work::Check(Known { fresh: true, ..CHECK })));
    world.put(service(), &json!({"uid": "1"}));
    world.put(slice(), &owned_by("1"));
    world.check(&[]);
    world.delete(&service());
    world.check(&[slice()]);
    assert_eq!(world.graph.work(&slice()), Some(Work::Check(CHECK)));
}

#[test]
fn an_owner_made_again_is_another() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.put(service(), &json!({"uid": "1"}));
    world.check(&[slice()]);
    world.put(service(), &json!({"uid": "2"}));
    world.check(&[slice()]);
}

#[test]
fn after_the_first_lists_only_dependents_of_absent_owners_are_looked_at() {
    for (uid, doubtful) in [("1", vec![]), ("2", vec![slice()])] {
        let mut world = World::default();
        [service().place(), slice().place()].into_iter().for_each(|kind| world.graph.listing(kind));
        world.put(service(), &json!({"uid": "1"}));
        world.put(slice(), &owned_by(uid));
        world.check(&[]);
        world.graph.sync(&mut world.todo);
        world.check(&doubtful);
    }
}

#[test]
fn what_a_later_list_does_not_show_is_gone() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.put(service(), &json!({"uid": "1"}));
    world.todo.clear();
    world.graph.listing(service().place());
    world.graph.listed(service().place(), &mut world.todo);
    world.check(&[slice()]);
}

#[test]
fn an_owner_that_deletes_its_dependents_waits_for_those_that_block_it() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.put(service(), &json!({"uid": "1"}));
    world.todo.clear();
    world.put(service(), &going(json!({"uid": "1"}), FOREGROUND));
    world.check(&[service(), slice()]);
    assert_eq!(world.graph.work(&service()), None);
    world.delete(&slice());
    world.check(&[service()]);
    assert_eq!(world.graph.work(&service()), Some(Work::Release));
}

#[test]
fn dependents_of_one_of_the_same_name_before_it_do_not_block_an_owner() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("another"));
    world.put(service(), &going(json!({"uid": "1"}), FOREGROUND));
    assert_eq!(world.graph.work(&service()), Some(Work::Release));
}

#[test]
fn an_owner_that_orphans_takes_itself_from_its_dependents() {
    let mut world = World::synced();
    world.put(slice(), &owned_by("1"));
    world.put(service(), &json!({"uid": "1"}));
    world.todo.clear();
    world.put(service(), &going(json!({"uid": "1"}), ORPHAN));
    world.check(&[service()]);
    assert_eq!(world.graph.work(&service()), Some(Work::Orphan(vec![slice()])));
}

#[test]
fn a_dependent_of_a_kind_we_do_not_know_is_left_alone() {
    let mut world = World::synced();
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "9"});
    let mut metadata = owned_by("1");
    metadata["ownerReferences"].as_array_mut().expect("owners").push(job);
    world.put(slice(), &metadata);
    assert_eq!(world.graph.work(&slice()), None);
}

#[test]
fn an_object_that_owns_itself_can_lose_that() {
    let mut world = World::synced();
    let (me, own) = (id("Service", "web"), owned_by("s"));
    world.put(me.clone(), &own);
    world.put(me.clone(), &going(json!({"uid": "s"}), FOREGROUND));
    assert_eq!(world.graph.work(&me), Some(Work::Release));
    world.delete(&me);
    assert_eq!(world.graph.places.len(), 0);
}
