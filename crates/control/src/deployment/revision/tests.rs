use serde_json::json;

use super::*;

fn annotations(pairs: &[(&str, &str)]) -> Annotations {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_template_is_known_again_whatever_its_hash_label_and_null_fields() {
    let one = json!({"metadata": {"labels": {"app": "web"}, "creationTimestamp": null}, "spec": {"containers": [{"name": "c"}]}});
    let labels = json!({HASH_LABEL: "abc", "app": "web"});
    let same = json!({"spec": {"containers": [{"name": "c", "args": null}]}, "metadata": {"labels": labels}});
    let other = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "d"}]}});
    assert!(same_template(&one, &same) && !same_template(&one, &other));
    assert_eq!(template_hash(&one, None), template_hash(&same, None));
    let hashes = [template_hash(&one, None), template_hash(&one, Some(1)), template_hash(&other, None)];
    assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2], "{hashes:?}");
    assert!(hashes.iter().all(|hash| hash.len() <= 10 && hash.bytes().all(|byte| byte.is_ascii_alphanumeric())));
}

#[test]
fn the_hash_of_a_template_never_changes() {
    // Another hash for the same template would begin a rollout of every Deployment with the next release.
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "host"}]}});
    assert_eq!(template_hash(&template, None), "979967876");
}

#[test]
fn a_replica_set_gets_the_annotations_of_the_deployment_and_its_revision() {
    let deployment = annotations(&[("team", "a"), (REVISION, "7"), (NOT_COPIED[0], "{}")]);
    let mut set = Annotations::new();
    set_annotations(&mut set, &deployment, 3);
    assert_eq!(set, annotations(&[("team", "a"), (REVISION, "3")]));
    // A revision never decreases.
    set_annotations(&mut set, &deployment, 2);
    assert_eq!(revision_of(&set), 3);
    // A template that is used again becomes the newest revision, and its earlier numbers are kept.
    set_annotations(&mut set, &deployment, 5);
    set_annotations(&mut set, &deployment, 8);
    assert_eq!(set, annotations(&[("team", "a"), (REVISION, "8"), (REVISION_HISTORY, "3,5")]));
    for revision in 1000..2000 {
        set_annotations(&mut set, &deployment, revision);
    }
    let history = &set[REVISION_HISTORY];
    assert!(history.len() <= HISTORY_LENGTH && history.ends_with(",1998"), "{history}");
}
