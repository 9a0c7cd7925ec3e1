//! Deployments as users of kubectl handle them: created, rolled out, scaled, undone and deleted, with real processes in the Pods.

use super::machine::{Machine, machine};

/// The environment of the first container of each Pod, by Pod.
const MODES: &str = "jsonpath={range .items[*]}{.spec.containers[0].env[0].value} {end}";

fn kubectl(machine: &Machine, line: &str) -> String {
    machine.kubectl(&line.split(' ').collect::<Vec<_>>()).fine()
}

/// Waits until the rollout is complete, as kubectl understands it.
fn roll_out(machine: &Machine) {
    let said = kubectl(machine, "rollout status deployment/web --timeout=60s");
    assert!(said.ends_with("deployment \"web\" successfully rolled out\n"), "{said}");
}

fn count(machine: &Machine, resource: &str) -> usize {
    kubectl(machine, &format!("get {resource} -l app=web -o name")).lines().count()
}

#[test]
fn kubectl_creates_rolls_out_scales_and_undoes_a_deployment() {
    let Some(machine) = machine("kubectl_creates_rolls_out_scales_and_undoes_a_deployment", &[]) else { return };
    machine.wait_ready();
    kubectl(&machine, "create deployment web --image=host --replicas=2 -- sleep infinity");
    roll_out(&machine);
    assert_eq!((count(&machine, "pods"), count(&machine, "replicasets")), (2, 1));

    kubectl(&machine, "scale deployment/web --replicas=4");
    roll_out(&machine);
    machine.wait("four Pods", || count(&machine, "pods") == 4);

    kubectl(&machine, "set env deployment/web MODE=two");
    roll_out(&machine);
    let modes = || machine.kubectl(&["get", "pods", "-l", "app=web", "-o", MODES]).fine();
    machine.wait("only Pods of the new template", || modes() == "two two two two ");
    kubectl(&machine, "set env deployment/web MODE=three");
    roll_out(&machine);
    machine.wait("only Pods of the newest template", || modes() == "three three three three ");
    let history = kubectl(&machine, "rollout history deployment/web");
    let revisions: Vec<&str> = history.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(revisions, ["deployment.apps/web", "REVISION", "1", "2", "3"]);
    kubectl(&machine, "rollout undo deployment/web");
    roll_out(&machine);
    machine.wait("the Pods of the revision before", || modes() == "two two two two ");
    kubectl(&machine, "rollout undo deployment/web --to-revision=1");
    roll_out(&machine);
    machine.wait("the Pods of the first revision", || modes().trim().is_empty() && count(&machine, "pods") == 4);
    assert_eq!(count(&machine, "replicasets"), 3);

    let before = kubectl(&machine, "get pods -l app=web -o name");
    kubectl(&machine, "rollout restart deployment/web");
    roll_out(&machine);
    let all_new = || {
        let after = kubectl(&machine, "get pods -l app=web -o name");
        after.lines().count() == 4 && !after.lines().any(|name| before.contains(name))
    };
    machine.wait("four other Pods", all_new);

    kubectl(&machine, "rollout pause deployment/web");
    kubectl(&machine, "set env deployment/web MODE=paused");
    kubectl(&machine, "scale deployment/web --replicas=1");
    machine.wait("one Pod", || count(&machine, "pods") == 1);
    assert!(!modes().contains("paused"));
    kubectl(&machine, "rollout resume deployment/web");
    roll_out(&machine);
    machine.wait("a Pod of the template that waited", || modes() == "paused ");

    kubectl(&machine, "delete deployment web --wait");
    machine.wait("nothing is left", || count(&machine, "pods,replicasets") == 0);
}
