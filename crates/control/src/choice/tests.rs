use super::*;

#[track_caller]
fn check(list: &str, want: Result<&[&str], &str>) {
    let got = Choice::parse(list).map(|choice| choice.0.into_iter().map(Controller::name).collect::<Vec<_>>());
    match (got, want) {
        (Ok(got), Ok(want)) => assert_eq!(got, want, "{list}"),
        (Err(got), Err(want)) => assert_eq!(got.name, want, "{list}"),
        (got, want) => panic!("{list}: got {got:?}, wanted {want:?}"),
    }
}

#[test]
fn a_list_names_the_controllers_that_run() {
    check("", Ok(&[]));
    check("endpointslice-controller", Ok(&["endpointslice-controller"]));
    check("endpointslice, endpoint", Ok(&["endpoints-controller", "endpointslice-controller"]));
    check("endpointslices", Err("endpointslices"));
    check("-endpoints", Err("endpoints"));
}

#[test]
fn a_star_means_all_that_are_not_taken_out() {
    let usual = Controller::ALL.into_iter().filter(|controller| controller.is_usual());
    let all: Vec<_> = usual.map(Controller::name).collect();
    check("*", Ok(&all));
    check("*,-endpoint", Ok(&all[1..]));
    check("-endpoints-controller,*", Ok(&all[1..]));
    check("-endpoint", Ok(&[]));
}

#[test]
fn of_a_name_that_stands_twice_the_first_counts() {
    check("endpoint,-endpoint", Ok(&["endpoints-controller"]));
    check("-endpoint,endpoint", Ok(&[]));
}

#[test]
fn a_star_leaves_what_runs_pods_to_the_cluster_that_has_it() {
    let all = Choice::parse(
        "*,daemonset,deployment,nodeipam,replicaset,replicationcontroller,root-ca-cert-publisher,scheduler,serviceaccount,statefulset",
    )
    .expect("names");
    assert_eq!(all, Choice::all());
    let some = Choice::parse("*").expect("a star");
    let left = [
        Controller::DaemonSet,
        Controller::Deployment,
        Controller::NodeIpam,
        Controller::ReplicaSet,
        Controller::ReplicationController,
        Controller::RootCaPublisher,
        Controller::Scheduler,
        Controller::ServiceAccount,
        Controller::StatefulSet,
    ];
    assert!(left.into_iter().all(|controller| !some.has(controller)), "{some}");
}
