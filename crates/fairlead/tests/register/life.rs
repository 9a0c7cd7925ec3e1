//! A registration from beginning to end.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::house::{A, Register, Thing, eventually, in_house};

/// Looks often, and does not drain for long.
const QUICK: &str = "--interval 100ms --timeout 10s --unhealthy-threshold 2 --drain 100ms --expires-after 3s";

#[test]
fn an_endpoint_is_ready_while_it_answers_and_gone_afterwards() {
    in_house("an_endpoint_is_ready_while_it_answers_and_gone_afterwards", &[], |house| {
        let thing = Thing::at(A);
        let line = format!("web --address {A} --port {} --check http:/healthz --hostname one --weight 3", thing.port);
        let mut register = house.register(&format!("{line} {QUICK}"), &[]);
        let slice = house.until((true, true, false));
        assert_eq!(slice["endpoints"][0]["addresses"], json!([A]));
        assert_eq!(slice["endpoints"][0]["hostname"], "one");
        assert_eq!(slice["ports"], json!([{"name": "", "port": thing.port, "protocol": "TCP"}]));
        assert_eq!(slice["metadata"]["annotations"]["fairlead.dev/weight"], "3");
        let labels = &slice["metadata"]["labels"];
        assert_eq!(labels["endpointslice.kubernetes.io/managed-by"], "fairlead-register");
        assert_eq!(labels["kubernetes.io/service-name"], "web");

        thing.answers(503);
        house.until((false, false, false));
        register.says(&format!("web: {A}:{} is not ready: HTTP probe failed with statuscode: 503\n", thing.port));
        thing.answers(200);
        let slice = house.until((true, true, false));
        // Renewing costs nobody who watches slices anything.
        thread::sleep(Duration::from_millis(2500));
        assert_eq!(house.slices(), [slice]);

        register.signal("TERM");
        assert_eq!(register.ends(), Some(0), "{}", register.log());
        house.until_gone("web");
        register.says("web: the Service default/web is removed, as nobody else uses it\n");
    });
}

#[test]
fn an_endpoint_that_goes_is_terminating_first() {
    in_house("an_endpoint_that_goes_is_terminating_first", &[], |house| {
        let line = format!("web --address {A} --port 80 --drain 3s --expires-after 3s");
        let mut register = house.register(&line, &[]);
        house.until((true, true, false));
        register.signal("INT");
        house.until((false, true, true));
        assert_eq!(register.ends(), Some(0));
        house.until_gone("web");
    });
}

#[test]
fn a_service_of_somebody_elses_is_used_and_stays() {
    in_house("a_service_of_somebody_elses_is_used_and_stays", &[], |house| {
        let services = "/api/v1/namespaces/default/services";
        let ports = json!([{"name": "http", "port": 80, "targetPort": 8080, "appProtocol": "http"}]);
        house.post(services, &json!({"metadata": {"name": "web"}, "spec": {"ports": ports}}));
        let mut register = house.register(&format!("web --address {A} {QUICK}"), &[]);
        let slice = house.until((true, true, false));
        assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http"}]));
        register.signal("TERM");
        assert_eq!(register.ends(), Some(0));
        assert!(house.slices().is_empty());
        assert!(house.get(&format!("{services}/web")).is_some(), "{}", register.log());

        house.post(services, &json!({"metadata": {"name": "pods"}, "spec": {"selector": {"a": "b"}, "ports": ports}}));
        let mut register = house.register(&format!("pods --address {A} {QUICK}"), &[]);
        assert_eq!(register.ends(), Some(1));
        register.says("fairlead: the Service default/pods selects Pods (a=b); an endpoint of your own needs a Service");
        let mut register = house.register(&format!("none --address {A} {QUICK}"), &[]);
        assert_eq!(register.ends(), Some(1));
        register.says("fairlead: --port: there is no Service default/none yet; say which ports it has");
    });
}

#[test]
fn a_command_is_registered_for_its_life_time() {
    in_house("a_command_is_registered_for_its_life_time", &[], |house| {
        let line = format!("web --address {A} --port 80 {QUICK}");
        let mut register = house.register(&line, &["/bin/sh", "-c", "exit 7"]);
        assert_eq!(register.ends(), Some(7), "{}", register.log());
        house.until_gone("web");

        let mut register = house.register(&line, &["sleep", "1000"]);
        house.until((true, true, false));
        let child = child_of(&register);
        register.signal("TERM");
        assert_eq!(register.ends(), Some(0), "{}", register.log());
        assert!(!Path::new(&format!("/proc/{child}")).exists(), "the command still runs");
        house.until_gone("web");

        let mut register = house.register(&line, &["/no/such/program"]);
        assert_eq!(register.ends(), Some(1));
        register.says("fairlead: cannot start \"/no/such/program\"");
        house.until_gone("web");
    });
}

fn child_of(register: &Register) -> String {
    let path = format!("/proc/{0}/task/{0}/children", register.pid());
    let any = || {
        // A thread of it may have started the command.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", register.pid())).ok()?.flatten();
        let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next()
    };
    eventually(any).unwrap_or_else(|| panic!("no child in {path}"))
}

#[test]
fn another_process_is_registered_for_its_life_time() {
    in_house("another_process_is_registered_for_its_life_time", &[], |house| {
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let mut register = house.register(&format!("web --address {A} --port 80 --pid {} {QUICK}", other.id()), &[]);
        house.until((true, true, false));
        other.kill().expect("it is ours");
        other.wait().expect("it is ours");
        assert_eq!(register.ends(), Some(0), "{}", register.log());
        house.until_gone("web");
    });
}

#[test]
fn whoever_comes_after_a_crash_takes_over() {
    in_house("whoever_comes_after_a_crash_takes_over", &[], |house| {
        let line = format!("web --address {A} --port 80 --check exec:true {QUICK} --expires-after 1h");
        let mut first = house.register(&line, &[]);
        let slice = house.until((true, true, false));
        first.signal("KILL");
        assert_eq!(first.ends(), None);
        let second = house.register(&line, &[]);
        second.says(&format!("web: {A}:80 is ready"));
        assert_eq!(house.slices()[0]["metadata"]["uid"], slice["metadata"]["uid"]);
        // But not from one that is alive.
        let third = house.register(&line, &[]);
        third.says(&format!("web: {A}:80 is kept by "));
        drop(second);
        third.says(&format!("web: {A}:80 is ready"));
    });
}

#[test]
fn what_somebody_removes_is_made_again() {
    in_house("what_somebody_removes_is_made_again", &[], |house| {
        let register = house.register(&format!("web --address {A} --port 80 {QUICK}"), &[]);
        let slice = house.until((true, true, false));
        let name = slice["metadata"]["name"].as_str().expect("a name");
        let path = format!("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/{name}");
        assert_eq!(house.server.client().request("DELETE", &path, "").expect("an answer").status, 200);
        let service = "/api/v1/namespaces/default/services/web";
        assert_eq!(house.server.client().request("DELETE", service, "").expect("an answer").status, 200);
        house.until((true, true, false));
        assert!(house.get(service).is_some(), "{}", register.log());
    });
}
