use serde_json::json;

use super::*;

const NOW: &str = "2024-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn template(version: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": version}]}})
}

/// A Deployment of template `v2`; `change` is merged into its spec.
fn deployment(replicas: i32, change: &Value) -> Deployment {
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template("v2"),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({"metadata": {"name": "web", "uid": "d", "generation": 1}, "spec": spec});
    serde_json::from_value(object).expect("a Deployment")
}

fn strategy(surge: &Value, unavailable: &Value) -> Value {
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})
}

/// A ReplicaSet whose Pods are all available. `age` orders creation times, the greatest is the oldest.
fn set(version: &str, age: u8, replicas: i32) -> ReplicaSet {
    sized(version, age, replicas, &json!({}))
}

fn sized(version: &str, age: u8, replicas: i32, annotations: &Value) -> ReplicaSet {
    let name = format!("web-{version}");
    let created = format!("2024-01-01T11:{:02}:00Z", 59 - age);
    let object = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": created, "annotations": annotations, "generation": 1},
        "spec": {"replicas": replicas, "template": template(version)},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1},
    });
    serde_json::from_value(object).expect("a ReplicaSet")
}

fn planned(deployment: &Deployment, sets: &[ReplicaSet]) -> Plan {
    plan(deployment, sets.iter().cloned().map(Arc::new).collect(), |_| false, now())
}

/// The sizes that a plan gives, by name.
fn sizes(plan: &Plan) -> Vec<(&str, i32)> {
    let mut sizes: Vec<_> = plan.sets.iter().map(|set| (set.name.as_str(), set.replicas)).collect();
    sizes.sort_unstable();
    sizes
}

fn condition<'a>(status: &'a DeploymentStatus, kind: &str) -> (&'a str, &'a str) {
    conditions::find(status, kind).map_or(("", ""), |found| (found.status.as_str(), found.reason.as_str()))
}

/// A cluster of one Deployment in which every planned write happens, and Pods become available one at a time.
struct Simulation {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    created: u8,
}

impl Simulation {
    fn new(deployment: Deployment, sets: Vec<ReplicaSet>) -> Simulation {
        Simulation { deployment, sets, created: 0 }
    }

    /// Writes what is planned. Returns false if nothing is.
    fn write(&mut self) -> bool {
        let plan = plan(&self.deployment, self.sets.iter().cloned().map(Arc::new).collect(), |_| false, now());
        let changed = !plan.sets.is_empty() || !plan.delete.is_empty() || plan.status != self.deployment.status;
        for planned in plan.sets {
            let created = self.sets.iter().all(|set| set.metadata.name != planned.name);
            if created {
                self.created += 1;
                let mut new = set("v2", 50 - self.created, 0);
                new.metadata.name.clone_from(&planned.name);
                new.spec.template = self.deployment.spec.template.clone();
                self.sets.push(new);
            }
            let set = self.sets.iter_mut().find(|set| set.metadata.name == planned.name).expect("it is there");
            set.spec.replicas = Some(planned.replicas);
            set.metadata.annotations = planned.annotations;
        }
        self.sets.retain(|set| !plan.delete.iter().any(|deleted| deleted.metadata.name == set.metadata.name));
        self.deployment.status = plan.status;
        changed
    }

    /// Creates and deletes the Pods of each ReplicaSet, and makes one Pod available. Returns false if nothing changes.
    fn run_pods(&mut self) -> bool {
        let mut changed = false;
        let mut available = 1;
        for set in &mut self.sets {
            let replicas = set.spec.replicas.unwrap_or(1);
            let mut status = set.status.clone();
            status.replicas = replicas;
            status.available_replicas = status.available_replicas.min(replicas);
            if status.available_replicas < replicas && available > 0 {
                status.available_replicas += 1;
                available -= 1;
            }
            status.ready_replicas = status.available_replicas;
            changed |= status != set.status;
            set.status = status;
        }
        changed
    }

    fn total(&self) -> i32 {
        self.sets.iter().map(|set| set.spec.replicas.unwrap_or(1)).sum()
    }

    fn available(&self) -> i32 {
        self.sets.iter().map(|set| set.status.available_replicas.min(set.spec.replicas.unwrap_or(1))).sum()
    }

    /// Runs until nothing changes, and checks the limits of a rolling update in every step.
    fn finish(&mut self, max: i32, min_available: i32) {
        for _ in 0..1000 {
            let written = self.write();
            assert!(self.total() <= max, "{} Pods of at most {max}: {:?}", self.total(), self.sets);
            assert!(self.available() >= min_available, "{} of at least {min_available} available", self.available());
            if !self.run_pods() && !written {
                return;
            }
        }
        panic!("the rollout does not end: {:?}", self.sets);
    }
}

#[test]
fn a_rolling_update_keeps_its_limits_in_every_step_and_ends() {
    for (replicas, surge, unavailable, max, min_available) in [
        (4, json!("25%"), json!("25%"), 5, 3),
        (10, json!("25%"), json!("25%"), 13, 8),
        (3, json!(1), json!(0), 4, 3),
        (3, json!(0), json!(1), 3, 2),
        (3, json!("0%"), json!("10%"), 3, 2),
        (1, json!("25%"), json!("25%"), 2, 1),
        (5, json!("100%"), json!("0%"), 10, 5),
        (5, json!(0), json!("100%"), 5, 0),
    ] {
        let change = strategy(&surge, &unavailable);
        let mut simulation = Simulation::new(deployment(replicas, &change), vec![set("v1", 20, replicas)]);
        simulation.finish(max, min_available);
        let sizes: Vec<_> = simulation.sets.iter().map(|set| set.spec.replicas).collect();
        assert_eq!(sizes, [Some(0), Some(replicas)], "{replicas} {surge} {unavailable}");
        let status = &simulation.deployment.status;
        assert_eq!((status.updated_replicas, status.available_replicas), (replicas, replicas));
        assert_eq!(condition(status, "Progressing"), ("True", "NewReplicaSetAvailable"));
        assert_eq!(condition(status, "Available"), ("True", "MinimumReplicasAvailable"));
    }
}

#[test]
fn a_new_deployment_gets_a_replica_set_of_its_whole_size() {
    let plan = planned(&deployment(3, &json!({})), &[]);
    let [new] = &plan.sets[..] else { panic!("{plan:?}") };
    assert!(new.object.is_none() && new.replicas == 3 && new.name.starts_with("web-"), "{new:?}");
    let annotation = |name: &str| new.annotations.get(name).map(String::as_str);
    assert_eq!(annotation(revision::REVISION), Some("1"));
    assert_eq!((annotation(revision::DESIRED_REPLICAS), annotation(revision::MAX_REPLICAS)), (Some("3"), Some("4")));
    assert_eq!(plan.revision.as_deref(), Some("1"));
    assert_eq!(condition(&plan.status, "Progressing"), ("True", "NewReplicaSetCreated"));
    assert_eq!(condition(&plan.status, "Available"), ("False", "MinimumReplicasUnavailable"));
    assert_eq!(plan.deadline, Some(Duration::from_mins(10)));
}

#[test]
fn a_template_that_was_used_before_becomes_the_newest_revision() {
    let revision = |number: &str| json!({revision::REVISION: number});
    let sets = [sized("v2", 30, 0, &revision("1")), sized("v3", 20, 4, &revision("2"))];
    let plan = planned(&deployment(4, &json!({})), &sets);
    assert_eq!(plan.revision.as_deref(), Some("3"));
    assert_eq!(sizes(&plan)[0], ("web-v2", 1));
}

#[test]
fn old_pods_that_are_not_available_go_first() {
    let mut broken = set("v1", 20, 4);
    broken.status.available_replicas = 1;
    let mut healthy = set("v0", 30, 2);
    healthy.status.available_replicas = 2;
    let mut new = set("v2", 10, 1);
    new.status.available_replicas = 0;
    // At least 3 Pods have to be available, which are all that are: only those that are not may go. The new ReplicaSet only gets
    // its revision.
    let change = strategy(&json!(3), &json!(1));
    let plan = planned(&deployment(4, &change), &[healthy, broken, new]);
    assert_eq!(sizes(&plan), [("web-v1", 1), ("web-v2", 1)]);
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let deployment = deployment(3, &json!({"strategy": {"type": "Recreate"}}));
    assert_eq!(sizes(&planned(&deployment, &[set("v1", 20, 3)])), [("web-v1", 0)]);
    let ended = Arc::new(set("v1", 20, 0));
    let plan_with = |running: bool| plan(&deployment, vec![ended.clone()], |uid| running && uid == "web-v1", now());
    assert!(plan_with(true).sets.is_empty(), "a Pod is still terminating");
    let sizes: Vec<i32> = plan_with(false).sets.iter().map(|set| set.replicas).collect();
    assert_eq!(sizes, [3]);
}

#[test]
fn a_change_of_the_size_in_a_rollout_is_shared_in_proportion() {
    let sized = |version: &str, age: u8, replicas: i32| {
        let annotations = json!({revision::DESIRED_REPLICAS: "10", revision::MAX_REPLICAS: "10"});
        sized(version, age, replicas, &annotations)
    };
    let change = strategy(&json!(0), &json!(1));
    // The cases of TestScale (pkg/controller/deployment/sync_test.go) without surge.
    for (replicas, new, old, expected) in [
        (12, 5, 5, [("web-v1", 6), ("web-v2", 6)]),
        (6, 5, 5, [("web-v1", 3), ("web-v2", 3)]),
        (20, 2, 8, [("web-v1", 16), ("web-v2", 4)]),
        // Rounding leaves a rest for the largest.
        (5, 7, 3, [("web-v1", 2), ("web-v2", 3)]),
        (0, 7, 3, [("web-v1", 0), ("web-v2", 0)]),
    ] {
        let plan = planned(&deployment(replicas, &change), &[sized("v2", 10, new), sized("v1", 20, old)]);
        assert_eq!(sizes(&plan), expected, "{replicas} from {new} and {old}");
        let annotation = |set: &PlannedSet| set.annotations[revision::DESIRED_REPLICAS].clone();
        assert!(plan.sets.iter().all(|set| annotation(set) == replicas.to_string()));
    }
}

#[test]
fn one_replica_set_alone_gets_the_whole_size() {
    let annotations = json!({revision::DESIRED_REPLICAS: "3", revision::MAX_REPLICAS: "4", revision::REVISION: "1"});
    let plan = planned(&deployment(5, &json!({})), &[sized("v2", 10, 3, &annotations), set("v1", 20, 0)]);
    assert_eq!(sizes(&plan), [("web-v2", 5)]);
}

#[test]
fn a_paused_deployment_is_scaled_and_not_rolled_out() {
    let annotations = json!({revision::DESIRED_REPLICAS: "3", revision::MAX_REPLICAS: "4", revision::REVISION: "1"});
    let mut paused = deployment(5, &json!({"paused": true}));
    let plan = planned(&paused, &[sized("v1", 20, 3, &annotations)]);
    assert_eq!(sizes(&plan), [("web-v1", 5)], "the old template is scaled, and the new one has no ReplicaSet");
    assert_eq!(condition(&plan.status, "Progressing"), ("Unknown", "DeploymentPaused"));
    assert_eq!(plan.deadline, None);
    let scaled = [sized("v1", 20, 5, &json!({revision::DESIRED_REPLICAS: "5"}))];
    paused.status = plan.status;
    paused.status = planned(&paused, &scaled).status;
    paused.spec.paused = false;
    let plan = planned(&paused, &scaled);
    assert!(plan.sets.iter().any(|set| set.object.is_none()), "the rollout goes on: {plan:?}");
    assert_eq!(condition(&plan.status, "Progressing"), ("True", "NewReplicaSetCreated"));
}

#[test]
fn a_rollout_without_progress_fails_at_its_deadline() {
    let mut stuck = deployment(2, &json!({"progressDeadlineSeconds": 60}));
    let mut new = set("v2", 10, 2);
    new.status.available_replicas = 0;
    new.status.ready_replicas = 0;
    for (updated, expected, deadline) in [
        ("2024-01-01T11:59:30Z", ("True", "ReplicaSetUpdated"), Some(Duration::from_secs(30))),
        ("2024-01-01T11:58:59Z", ("False", "ProgressDeadlineExceeded"), None),
    ] {
        stuck.status = planned(&stuck, std::slice::from_ref(&new)).status;
        let condition_mut = |status: &mut DeploymentStatus| {
            let progressing = status.conditions.iter_mut().find(|condition| condition.kind == "Progressing");
            progressing.expect("it has one").last_update_time = updated.to_owned();
        };
        condition_mut(&mut stuck.status);
        let plan = planned(&stuck, std::slice::from_ref(&new));
        assert_eq!((condition(&plan.status, "Progressing"), plan.deadline), (expected, deadline));
    }
    // Without a deadline there is no condition.
    stuck.spec.progress_deadline_seconds = Some(i32::MAX);
    assert_eq!(condition(&planned(&stuck, &[new]).status, "Progressing"), ("", ""));
}

#[test]
fn a_failure_of_a_replica_set_is_one_of_the_deployment() {
    let mut new = set("v2", 10, 3);
    let failure = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}]);
    new.status.conditions = serde_json::from_value(failure).expect("conditions");
    let plan = planned(&deployment(3, &json!({})), std::slice::from_ref(&new));
    assert_eq!(condition(&plan.status, "ReplicaFailure"), ("True", "FailedCreate"));
    new.status.conditions.clear();
    let mut deployment = deployment(3, &json!({}));
    deployment.status = plan.status;
    assert_eq!(condition(&planned(&deployment, &[new]).status, "ReplicaFailure"), ("", ""));
}

#[test]
fn the_history_keeps_as_many_old_replica_sets_as_it_says() {
    let mut done = deployment(1, &json!({"revisionHistoryLimit": 1}));
    let numbered = |version: &str, age: u8, replicas: i32, number: &str| {
        sized(version, age, replicas, &json!({revision::REVISION: number, revision::DESIRED_REPLICAS: "1"}))
    };
    // The oldest revision goes first, whenever it was created.
    let sets = [
        numbered("v2", 10, 1, "5"),
        numbered("v3", 40, 0, "4"),
        numbered("v1", 30, 0, "2"),
        numbered("v0", 20, 0, "3"),
    ];
    done.status = planned(&done, &sets).status;
    let names: Vec<String> = planned(&done, &sets).delete.iter().map(|set| set.metadata.name.clone()).collect();
    assert_eq!(names, ["web-v1", "web-v0"]);
    done.spec.revision_history_limit = None;
    assert!(planned(&done, &sets).delete.is_empty());
}

#[test]
fn a_deployment_that_is_being_deleted_only_has_its_status_updated() {
    let mut deleted = deployment(3, &json!({}));
    deleted.metadata.deletion_timestamp = Some(NOW.to_owned());
    let plan = planned(&deleted, &[set("v1", 20, 3)]);
    assert!(plan.sets.is_empty() && plan.status.replicas == 3, "{plan:?}");
}

#[test]
fn pods_that_are_about_to_be_deleted_are_not_counted_on() {
    // The old ReplicaSet was just made smaller, and its status still counts the Pods that go: 2 of
    // it and 2 of the new one stay available, of which 3 have to.
    let mut old = set("v1", 20, 2);
    old.status.available_replicas = 4;
    let mut new = set("v2", 10, 3);
    new.status.available_replicas = 2;
    let plan = planned(&deployment(4, &strategy(&json!(1), &json!(1))), &[old, new]);
    assert_eq!(sizes(&plan)[0], ("web-v1", 1), "{plan:?}");
}

#[test]
fn great_numbers_do_not_overflow() {
    let max = i32::MAX;
    let revision = json!({revision::REVISION: i64::MAX.to_string()});
    let huge = ["9223372036854775807%", "99999999999999999999%", "100%"].map(|percent| json!(percent));
    for surge in huge.iter().chain([&json!(max), &json!(i64::MAX)]) {
        for replicas in [0, 1, 4, max] {
            let change = strategy(surge, &json!(max));
            let rolled = planned(&deployment(replicas, &change), &[sized("v1", 20, max, &revision)]);
            assert_eq!(rolled.revision.as_deref(), Some("9223372036854775807"), "{surge} {replicas}");
            let annotations = json!({revision::DESIRED_REPLICAS: "3", revision::MAX_REPLICAS: "1"});
            let sets = [sized("v1", 20, max, &annotations), sized("v2", 10, max, &annotations)];
            let scaled = planned(&deployment(replicas, &change), &sets);
            assert_eq!(scaled.status.replicas, max, "{surge} {replicas}");
            let recreate = json!({"strategy": {"type": "Recreate"}});
            planned(&deployment(replicas, &recreate), &sets);
        }
    }
    assert_eq!(int_or_percent(&huge[1], 4, true), max);
    assert_eq!(int_or_percent(&json!("0%"), max, true), 0);
}
