//! How Pods begin, answer, end and begin again.

use std::net::SocketAddr;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::Patch;
use serde_json::json;

use crate::house::{KEPT, addresses, condition, get, in_house};

#[test]
fn a_pod_starts_has_addresses_and_answers() {
    in_house("a_pod_starts_has_addresses_and_answers", |house| async move {
        let probe = json!({"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1});
        let container = json!({"readinessProbe": probe, "ports": [{"name": "http", "containerPort": 80}]});
        // Also on a port that only root may take elsewhere.
        let serve = ["python3", "-m", "http.server", "80", "--bind", "::"];
        house.pod("web", &serve, json!({"container": container})).await;
        let pod = house.ready("web").await;
        assert_eq!(pod.at("status").text("phase"), "Running");
        assert_eq!(pod.at("status").text("hostIP"), "192.168.77.1");
        let ips = addresses(&pod);
        assert_eq!(ips, ["10.244.7.2".parse::<std::net::IpAddr>().unwrap(), "fd00:244:0:7::2".parse().unwrap()]);
        for ip in ips {
            let (head, _) = get(SocketAddr::new(ip, 80)).unwrap();
            assert_eq!(head, "HTTP/1.0 200 OK", "{ip}");
        }
        for kind in ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"] {
            assert_eq!(condition(&pod, kind).0, "True", "{kind}");
        }
        house.delete("web", 5).await;
        house.until_gone("web").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!house.data().join("state").read_dir().unwrap().any(|_| true), "the state of a Pod is still there");
    });
}

#[test]
fn a_container_that_dies_is_started_again_and_then_waits() {
    in_house("a_container_that_dies_is_started_again_and_then_waits", |house| async move {
        house.pod("crash", &["sh", "-c", "echo run; exit 3"], json!({})).await;
        let held = |pod: &serde_json::Value| {
            pod.at("status")
                .list("containerStatuses")
                .first()
                .is_some_and(|status| status.at("state").at("waiting").text("reason") == "CrashLoopBackOff")
        };
        let pod = house.until("crash", held).await;
        let status = &pod.at("status").list("containerStatuses")[0];
        assert_eq!(status.int("restartCount"), 1);
        assert_eq!(status.at("lastState").at("terminated").int("exitCode"), 3);
        assert_eq!(status.at("lastState").at("terminated").text("reason"), "Error");
        assert_eq!(pod.at("status").text("phase"), "Running");
        assert!(
            house.event("crash", "BackOff").await.starts_with("Back-off restarting failed container c in pod crash_")
        );
    });
}

#[test]
fn a_pod_that_is_done_has_succeeded_or_failed() {
    in_house("a_pod_that_is_done_has_succeeded_or_failed", |house| async move {
        let never = json!({"spec": {"restartPolicy": "Never"}});
        house.pod("well", &["true"], never.clone()).await;
        house.pod("badly", &["sh", "-c", "kill -9 $$$$"], never.clone()).await;
        house.pod("nowhere", &["no-such-program"], never).await;
        let pod = house.until("well", |pod| pod.at("status").text("phase") == "Succeeded").await;
        assert_eq!(condition(&pod, "Ready"), ("False", "PodCompleted"));
        let pod = house.until("badly", |pod| pod.at("status").text("phase") == "Failed").await;
        let ended = pod.at("status").list("containerStatuses")[0].at("state").at("terminated").clone();
        assert_eq!((ended.int("exitCode"), ended.int("signal")), (137, 9));
        let pod = house.until("nowhere", |pod| pod.at("status").text("phase") == "Failed").await;
        let ended = pod.at("status").list("containerStatuses")[0].at("state").at("terminated").clone();
        assert_eq!((ended.text("reason"), ended.int("exitCode")), ("StartError", 128));
        assert_eq!(ended.text("message"), "exec: \"no-such-program\": executable file not found in $PATH");
    });
}

#[test]
fn init_containers_and_sidecars_come_first() {
    in_house("init_containers_and_sidecars_come_first", |house| async move {
        let mounts = json!([{"name": "shared", "mountPath": "/fairlead-shared"}]);
        let container = |name: &str, script: &str, more: serde_json::Value| {
            let mut container = json!({
                "name": name, "image": "host", "command": ["sh", "-c", script], "volumeMounts": mounts,
            });
            more.as_object().into_iter().flatten().for_each(|(key, value)| container.set(key.clone(), value.clone()));
            container
        };
        let startup = json!({"exec": {"command": ["test", "-e", "/fairlead-shared/side"]}, "periodSeconds": 1});
        let init = json!([
            container("first", "sleep 0.3; echo first >> /fairlead-shared/order", json!({})),
            container(
                "side",
                "echo side >> /fairlead-shared/order; sleep 0.3; touch /fairlead-shared/side; sleep 100",
                json!({"restartPolicy": "Always", "startupProbe": startup})
            ),
            container("second", "test -e /fairlead-shared/side && echo second >> /fairlead-shared/order", json!({})),
        ]);
        let main =
            container("main", "echo main >> /fairlead-shared/order; cat /fairlead-shared/order; sleep 100", json!({}));
        let spec = json!({"initContainers": init, "volumes": [{"name": "shared", "emptyDir": {}}]});
        house.pod_of("steps", &[main], json!({"spec": spec})).await;
        let pod = house.ready("steps").await;
        assert_eq!(house.says(&pod, "main", "main").await, "first\nside\nsecond\nmain\n");
        assert_eq!(pod.at("status").list("initContainerStatuses").len(), 3);
    });
}

#[test]
fn a_pod_outlives_its_runner() {
    in_house("a_pod_outlives_its_runner", |house| async move {
        let script = "trap 'echo stopped; exit 7' TERM; echo up; while :; do sleep 0.1; done";
        house.pod("lives", &["sh", "-c", script], json!({"metadata": {"finalizers": [KEPT]}})).await;
        house.pod("leaves", &["sleep", "100"], json!({})).await;
        let before = house.ready("lives").await;
        house.ready("leaves").await;
        house.stop_runner().await;
        // Deleted by force while nobody looks: the next runner must find it.
        house.delete("leaves", 0).await;
        let host = house.start_runner();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let after = house.ready("lives").await;
        let id = |pod: &serde_json::Value| pod.at("status").list("containerStatuses")[0].text("containerID").to_owned();
        assert_eq!(id(&before), id(&after));
        assert_eq!(addresses(&before), addresses(&after));
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while host.pods().len() != 1 {
            assert!(std::time::Instant::now() < end, "a Pod that was deleted is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        house.delete("lives", 5).await;
        assert_eq!(house.end_of("lives").await.int("exitCode"), 7);
    });
}

#[test]
fn probes_start_containers_again_and_hold_back_readiness() {
    in_house("probes_start_containers_again_and_hold_back_readiness", |house| async move {
        let often = |command: &[&str], failures: u32| json!({"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": failures});
        let container = json!({"livenessProbe": often(&["sh", "-c", "echo I am ill; exit 1"], 1)});
        house
            .pod(
                "ill",
                &["sleep", "100"],
                json!({"container": container, "spec": {"terminationGracePeriodSeconds": 0}}),
            )
            .await;
        let again = |pod: &serde_json::Value| {
            pod.at("status").list("containerStatuses").first().is_some_and(|status| status.int("restartCount") > 0)
        };
        house.until("ill", again).await;
        assert_eq!(house.event("ill", "Unhealthy").await, "Liveness probe failed: I am ill\n");
        assert_eq!(house.event("ill", "Killing").await, "Container c failed liveness probe, will be restarted");
        let container = json!({"readinessProbe": often(&["false"], 1)});
        house.pod("never", &["sleep", "100"], json!({"container": container})).await;
        let pod = house.until("never", |pod| pod.at("status").text("phase") == "Running").await;
        assert_eq!(condition(&pod, "Ready"), ("False", "ContainersNotReady"));
    });
}

#[test]
fn a_pod_that_runs_too_long_has_failed() {
    in_house("a_pod_that_runs_too_long_has_failed", |house| async move {
        house.pod("late", &["sleep", "100"], json!({"spec": {"activeDeadlineSeconds": 1}})).await;
        let pod = house.until("late", |pod| pod.at("status").text("phase") == "Failed").await;
        assert_eq!(pod.at("status").text("reason"), "DeadlineExceeded");
        house
            .until("late", |pod| {
                pod.at("status")
                    .list("containerStatuses")
                    .iter()
                    .all(|status| status.at("state").map("terminated").is_some())
            })
            .await;
    });
}

#[test]
fn what_cannot_run_here_says_so() {
    in_house("what_cannot_run_here_says_so", |house| async move {
        house.pod("image", &["true"], json!({"container": {"image": "nginx"}})).await;
        let waits = |reason: &'static str| {
            move |pod: &serde_json::Value| {
                let statuses = pod.at("status").list("containerStatuses");
                statuses.first().is_some_and(|status| status.at("state").at("waiting").text("reason") == reason)
            }
        };
        let pod = house.until("image", waits("ImageNotSupported")).await;
        assert_eq!(pod.at("status").text("phase"), "Pending");
        assert!(house.event("image", "Failed").await.contains("\"nginx\""));
        house.delete("image", 0).await;
        let volume = json!({"name": "v", "nfs": {"server": "192.0.2.1", "path": "/"}});
        house.pod("volume", &["true"], json!({"spec": {"volumes": [volume]}})).await;
        assert!(
            house.event("volume", "FailedMount").await.contains("volume \"v\" : volumes of type nfs are not supported")
        );
        let long = json!({"hostname": "h".repeat(40), "subdomain": "s".repeat(40), "setHostnameAsFQDN": true});
        house.pod("long", &["true"], json!({"spec": long})).await;
        assert!(house.event("long", "FailedCreatePodSandBox").await.contains("is too long (64 characters is the max"));
        house.pod_without_right("root", 0).await;
        house.until("root", waits("HostPrivilegesNotGranted")).await;
        assert!(house.event("root", "HostPrivilegesNotGranted").await.contains("hostprivileges.fairlead.dev"));
    });
}

#[test]
fn a_machine_that_was_started_again_starts_its_pods_again() {
    in_house("a_machine_that_was_started_again_starts_its_pods_again", |house| async move {
        let init = json!([{"name": "i", "image": "host", "command": ["true"]}]);
        house.pod("back", &["sleep", "100"], json!({"spec": {"initContainers": init}})).await;
        house.pod("over", &["sleep", "100"], json!({"spec": {"restartPolicy": "Never"}})).await;
        let before = house.ready("back").await;
        house.ready("over").await;
        house.stop_runner().await;
        house.pretend_to_restart_the_machine().await;
        house.start_runner();
        let again = |pod: &serde_json::Value| {
            let status = pod.at("status").list("containerStatuses").first().cloned().unwrap_or_default();
            status.int("restartCount") == 1 && status.flag("ready")
        };
        let after = house.until("back", again).await;
        assert_eq!(addresses(&before), addresses(&after));
        let ended = after.at("status").list("containerStatuses")[0].at("lastState").at("terminated").clone();
        assert_eq!(ended.text("reason"), "ContainerStatusUnknown");
        let first = &after.at("status").list("initContainerStatuses")[0];
        assert_eq!((first.int("restartCount"), first.flag("ready")), (1, true));
        house.until("over", |pod| pod.at("status").text("phase") == "Failed").await;
    });
}

#[test]
fn a_container_can_leave_last_words() {
    in_house("a_container_can_leave_last_words", |house| async move {
        let never = |container: serde_json::Value| json!({"container": container, "spec": {"restartPolicy": "Never"}});
        let own = never(json!({"terminationMessagePath": "/tmp/fairlead-last-words"}));
        house.pod("file", &["sh", "-c", "echo sorry > /tmp/fairlead-last-words; exit 1"], own).await;
        let log = never(json!({"terminationMessagePolicy": "FallbackToLogsOnError"}));
        house.pod("log", &["sh", "-c", "echo one; echo two; exit 1"], log.clone()).await;
        house.pod("unended", &["sh", "-c", "echo one; printf two; exit 1"], log).await;
        // The place for them that every container has.
        let usual =
            "cat /dev/null && python3 -c 'import os; os.openpty()' && printf usual > /dev/termination-log; exit 1";
        house.pod("usual", &["sh", "-c", usual], never(json!({}))).await;
        let root = json!({"securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": true}});
        house.pod("root", &["sh", "-c", usual], never(root)).await;
        let expected = [
            ("file", "sorry\n"),
            ("log", "one\ntwo\n"),
            ("unended", "one\ntwo"),
            ("usual", "usual"),
            ("root", "usual"),
        ];
        for (name, words) in expected {
            let pod = house.until(name, |pod| pod.at("status").text("phase") == "Failed").await;
            let ended = pod.at("status").list("containerStatuses")[0].at("state").at("terminated").clone();
            assert_eq!(ended.text("message"), words, "{name}");
        }
        assert!(!std::path::Path::new("/tmp/fairlead-last-words").exists());
        let written = std::fs::read_to_string("/dev/termination-log").unwrap_or_default();
        assert!(!written.contains("usual"), "a container wrote into the machine's own file");
    });
}

#[test]
fn a_container_that_waits_has_a_reason() {
    in_house("a_container_that_waits_has_a_reason", |house| async move {
        let container = |name: &str, command: &str| json!({"name": name, "image": "host", "command": [command]});
        let init = json!([container("first", "true"), container("second", "false")]);
        let mut seen = house.follow("fails").await;
        let spec = json!({"initContainers": init, "restartPolicy": "Never"});
        house.pod_of("fails", &[container("main", "true")], json!({"spec": spec})).await;
        let states = seen.until(|pod| pod.at("status").text("phase") == "Failed").await;
        check_reasons(&states, "PodInitializing");
        let mut seen = house.follow("plain").await;
        house.pod("plain", &["sleep", "100"], json!({})).await;
        let states = seen.until(|pod| condition(pod, "Ready").0 == "True").await;
        check_reasons(&states, "ContainerCreating");
    });
}

/// Checks that each container that waits in one of the states of a Pod does so for this reason.
fn check_reasons(states: &[serde_json::Value], reason: &str) {
    for state in states {
        let status = state.at("status");
        for container in status.list("initContainerStatuses").iter().chain(status.list("containerStatuses")) {
            if let Some(waiting) = container.at("state").map("waiting") {
                assert_eq!(waiting.get("reason").and_then(serde_json::Value::as_str), Some(reason), "{container}");
            }
        }
    }
}

#[test]
fn a_pod_without_a_readiness_probe_is_ready_when_it_listens_on_a_declared_port() {
    in_house("a_pod_without_a_readiness_probe_is_ready_when_it_listens_on_a_declared_port", |house| async move {
        // Nobody waits for the time to be over here.
        house.stop_runner().await;
        let host = house.start_runner_with(|settings| settings.listen_wait = Duration::from_secs(3600));
        let script = "while ! test -e /tmp/go; do sleep 0.05; done; exec python3 -m http.server 8000";
        let container = json!({"ports": [{"containerPort": 8000}, {"containerPort": 9, "protocol": "UDP"}]});
        let mut seen = house.follow("late").await;
        house.pod("late", &["sh", "-c", script], json!({"container": container.clone()})).await;
        let running = |pod: &serde_json::Value| pod.at("status").text("phase") == "Running";
        let states = seen.until(running).await;
        assert_eq!(condition(states.last().unwrap(), "Ready"), ("False", "ContainersNotReady"));
        let target =
            fairlead_pods::host::Target { namespace: "default".to_owned(), pod: "late".to_owned(), container: None };
        let touch = vec!["touch".to_owned(), "/tmp/go".to_owned()];
        let streams = fairlead_pods::host::Streams { stdin: false, stdout: false, stderr: false, tty: false };
        host.exec(&target, touch, streams).await.unwrap().exit.await;
        let pod = house.ready("late").await;
        get(SocketAddr::new(addresses(&pod)[0], 8000)).unwrap();
        // One that never listens is ready when the time is over, and one without ports at once.
        house.pod("plain", &["sleep", "100"], json!({})).await;
        house.ready("plain").await;
        house.stop_runner().await;
        house.start_runner_with(|settings| settings.listen_wait = Duration::from_millis(1));
        house.pod("silent", &["sleep", "100"], json!({"container": container})).await;
        house.ready("silent").await;
    });
}

#[test]
fn limits_nobody_enforces_are_told_of_and_privileges_are_had_by_grant() {
    in_house("limits_nobody_enforces_are_told_of_and_privileges_are_had_by_grant", |house| async move {
        let security = json!({"runAsUser": 0, "runAsGroup": 0, "capabilities": {"add": ["NET_ADMIN"]}});
        let more = json!({
            "container": {"securityContext": security, "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}}},
            "spec": {"hostPID": true},
        });
        let left_behind = format!("sleep 4713.{}", std::process::id());
        let script = format!(
            "id -u; grep CapBnd /proc/self/status | cut -f2; test -e /proc/1 && echo sees; ({left_behind} &); sleep 100"
        );
        house.pod("root", &["sh", "-c", &script], more).await;
        let pod = house.ready("root").await;
        assert_eq!(house.says(&pod, "c", "sees").await, "0\n0000000000001000\nsees\n");
        let enforced = std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        if !enforced {
            let told = house.event("root", "LimitsNotEnforced").await;
            assert!(told.starts_with("container c: this machine does not enforce the limits of resources"), "{told}");
        }
        house.delete("root", 0).await;
        house.until_gone("root").await;
        let end = std::time::Instant::now() + Duration::from_secs(5);
        let left =
            || std::process::Command::new("pgrep").args(["-f", &format!("^{left_behind}")]).output().unwrap().stdout;
        while !left().is_empty() {
            assert!(std::time::Instant::now() < end, "a process was left behind");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn a_probe_that_takes_too_long_leaves_no_process_behind() {
    in_house("a_probe_that_takes_too_long_leaves_no_process_behind", |house| async move {
        // A number that no other process sleeps for.
        let mark = format!("sleep {}", 100_000 + std::process::id());
        let exec = json!({"exec": {"command": ["sh", "-c", format!("{mark} & {mark}")]}, "timeoutSeconds": 1, "periodSeconds": 4});
        house.pod("slow", &["sleep", "100"], json!({"container": {"readinessProbe": exec}})).await;
        let message = house.event("slow", "Unhealthy").await;
        assert!(message.contains("timed out after 1s"), "{message}");
        let running = || {
            let output = std::process::Command::new("pgrep").args(["-fxc", &mark]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while running() != "0" {
            assert!(std::time::Instant::now() < end, "{} processes of a probe are left", running());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn a_pod_that_ends_is_not_killed_by_its_liveness_probe() {
    in_house("a_pod_that_ends_is_not_killed_by_its_liveness_probe", |house| async move {
        let command = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}});
        let mut liveness = command("test ! -e /tmp/ending");
        liveness.set("periodSeconds", 1);
        liveness.set("failureThreshold", 1);
        liveness.set("terminationGracePeriodSeconds", 1);
        let hook = command("touch /tmp/ending; sleep 4; touch /tmp/ended");
        let script = "trap 'test -e /tmp/ended && exit 7; exit 8' TERM; while :; do sleep 0.1; done";
        let more = json!({
            "container": {"livenessProbe": liveness, "lifecycle": {"preStop": hook}},
            "metadata": {"finalizers": [crate::house::KEPT]},
            "spec": {"restartPolicy": "Never"},
        });
        house.pod("ends", &["sh", "-c", script], more).await;
        house.ready("ends").await;
        house.delete("ends", 20).await;
        let end = house.end_of("ends").await;
        assert_eq!(end.int("exitCode"), 7, "it was stopped before its hook had ended: {end}");
    });
}

#[test]
fn probes_stop_when_a_pod_has_failed() {
    in_house("probes_stop_when_a_pod_has_failed", |house| async move {
        // The process lives on after the end of the Pod has begun, and would fail its probe.
        let script = "trap 'touch /tmp/ending' TERM; echo waits; n=0; while test $n -lt 40; do sleep 0.1; test -e /tmp/ending && n=$((n+1)); done; exit 7";
        let probe = json!({
            "exec": {"command": ["sh", "-c", "test ! -e /tmp/ending"]}, "periodSeconds": 1, "failureThreshold": 1,
            "timeoutSeconds": 30,
        });
        let more = json!({
            "container": {"livenessProbe": probe},
            "spec": {"activeDeadlineSeconds": 3600, "terminationGracePeriodSeconds": 30},
        });
        let pod = house.pod("late", &["sh", "-c", script], more).await;
        house.says(&pod, "c", "waits").await;
        let sooner = Patch::Merge(json!({"spec": {"activeDeadlineSeconds": 1}}));
        house.cluster.patch(&kinds::POD, "default", "late", &sooner).await.unwrap();
        let ended = |pod: &serde_json::Value| {
            let containers = pod.at("status").list("containerStatuses");
            containers.iter().any(|container| container.at("state").map("terminated").is_some())
        };
        let pod = house.until("late", ended).await;
        assert_eq!(pod.at("status").text("reason"), "DeadlineExceeded");
        let ended = pod.at("status").list("containerStatuses")[0].at("state").at("terminated").clone();
        assert_eq!(ended.int("exitCode"), 7, "{ended}");
        let unhealthy = house.events("late").await.into_iter().filter(|(reason, _)| reason == "Unhealthy");
        assert_eq!(unhealthy.count(), 0, "it was probed while it ended");
    });
}

#[test]
fn a_node_rejects_pods_it_cannot_run() {
    in_house("a_node_rejects_pods_it_cannot_run", |house| async move {
        let sysctl = |name: &str| json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}});
        let cases = [
            ("windows", json!({}), json!({"os": {"name": "windows"}}), "PodOSNotSupported"),
            ("large", json!({"resources": {"requests": {"cpu": "65"}}}), json!({}), "OutOfcpu"),
            ("unsafe", json!({}), sysctl("kernel.msgmax"), "SysctlForbidden"),
        ];
        for (name, container, spec, reason) in cases {
            house.pod(name, &["sleep", "100"], json!({"container": container, "spec": spec})).await;
            let pod = house.until(name, |pod| pod.at("status").text("phase") == "Failed").await;
            let status = pod.at("status");
            assert_eq!(status.text("reason"), reason, "{status}");
            let event = house.event(name, reason).await;
            assert_eq!(status.text("message"), format!("Pod was rejected: {event}"));
            assert!(status.at("containerStatuses").is_null() && status.at("podIP").is_null(), "{status}");
            house.delete(name, 0).await;
            house.until_gone(name).await;
        }
    });
}

#[test]
fn events_of_pods_come_from_the_kubelet_of_the_node() {
    in_house("events_of_pods_come_from_the_kubelet_of_the_node", |house| async move {
        house.pod("told", &["sleep", "100"], json!({})).await;
        house.event("told", "Started").await;
        let path = "/api/v1/namespaces/default/events?fieldSelector=source%3Dkubelet,involvedObject.name%3Dtold";
        let events = house.cluster.request(fairlead_cluster::Method::GET, path, None).await.unwrap();
        let event = events.list("items").first().expect("an Event").clone();
        assert_eq!(event.at("source"), &json!({"component": "kubelet", "host": crate::house::NODE}));
        assert_eq!(event.text("reportingComponent"), "kubelet");
        assert_eq!(event.text("reportingInstance"), crate::house::NODE);
    });
}

#[test]
fn a_pod_that_uses_more_of_the_disk_than_it_may_is_evicted() {
    in_house("a_pod_that_uses_more_of_the_disk_than_it_may_is_evicted", |house| async move {
        let write = [
            "sh",
            "-c",
            "head -c 200000 /dev/urandom > /fairlead-empty/file; trap '' TERM; while :; do sleep 0.1; done",
        ];
        let pod = |limit: serde_json::Value, resources: serde_json::Value| {
            json!({
                "container": {"volumeMounts": [{"name": "v", "mountPath": "/fairlead-empty"}], "resources": resources},
                "spec": {"volumes": [{"name": "v", "emptyDir": limit}], "terminationGracePeriodSeconds": 3600},
            })
        };
        house.pod("volume", &write, pod(json!({"sizeLimit": "100Ki"}), json!({}))).await;
        let limits = json!({"limits": {"ephemeral-storage": "100k"}});
        house.pod("whole", &write, pod(json!({}), limits)).await;
        house.pod("within", &write, pod(json!({"sizeLimit": "1Gi"}), json!({}))).await;
        let messages = [
            ("volume", "Usage of EmptyDir volume \"v\" exceeds the limit \"100Ki\". "),
            ("whole", "Pod ephemeral local storage usage exceeds the total limit of containers 100000. "),
        ];
        for (name, message) in messages {
            let ended = |pod: &serde_json::Value| {
                let containers = pod.at("status").list("containerStatuses");
                containers.iter().all(|container| container.at("state").map("terminated").is_some())
            };
            let evicted = |pod: &serde_json::Value| pod.at("status").text("phase") == "Failed" && ended(pod);
            let pod = house.until(name, evicted).await;
            assert_eq!((pod.at("status").text("reason"), pod.at("status").text("message")), ("Evicted", message));
            assert_eq!(condition(&pod, "DisruptionTarget"), ("True", "TerminationByKubelet"));
            assert_eq!(house.event(name, "Evicted").await, message);
        }
        assert_eq!(house.ready("within").await.at("status").text("phase"), "Running");
    });
}

#[test]
fn an_evicted_pod_has_a_second_even_if_it_is_being_stopped() {
    in_house("an_evicted_pod_has_a_second_even_if_it_is_being_stopped", |house| async move {
        let script = "trap 'head -c 200000 /dev/urandom > /fairlead-empty/file' TERM; touch /tmp/ready; echo waits; \
                      while :; do sleep 0.1; done";
        let pod = |container: serde_json::Value| {
            let mut container = container;
            container.set("volumeMounts", json!([{"name": "v", "mountPath": "/fairlead-empty"}]));
            json!({
                "container": container,
                "metadata": {"finalizers": [crate::house::KEPT]},
                "spec": {
                    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "100Ki"}}],
                    "terminationGracePeriodSeconds": 3600,
                },
            })
        };
        let probe = json!({
            "exec": {"command": ["sh", "-c", "test ! -e /tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1,
            "timeoutSeconds": 30,
        });
        house.pod("probed", &["sh", "-c", script], pod(json!({"livenessProbe": probe}))).await;
        let evicted = |pod: &serde_json::Value| {
            let containers = pod.at("status").list("containerStatuses");
            let ended = containers.iter().all(|container| container.at("state").map("terminated").is_some());
            pod.at("status").text("reason") == "Evicted" && ended
        };
        house.until("probed", evicted).await;
        let deleted = house.pod("deleted", &["sh", "-c", script], pod(json!({}))).await;
        house.says(&deleted, "c", "waits").await;
        house.delete("deleted", 3600).await;
        house.until("deleted", evicted).await;
        assert_eq!(house.end_of("deleted").await.int("exitCode"), 137);
        let told = house.events("deleted").await.into_iter().filter(|(reason, _)| reason == "Evicted");
        assert_eq!(told.count(), 1);
        house.delete("probed", 0).await;
        house.end_of("probed").await;
    });
}
