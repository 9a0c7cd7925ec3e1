//! How Pods go: in order, without a lost request, and leaving nothing behind.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fairlead_api::{Look, kinds};
use fairlead_cluster::Patch;
use fairlead_cluster::programmed::{self, Component, Progress};
use serde_json::json;

use crate::house::{KEPT, NODE, addresses, get, in_house};

#[test]
fn a_pod_is_told_to_end_only_after_every_proxy_knows() {
    in_house("a_pod_is_told_to_end_only_after_every_proxy_knows", |house| async move {
        house.control("endpointslice-controller");
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]});
        house.make(&kinds::SERVICE, json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec})).await;
        // A proxy that takes its time.
        let progress = Progress::new();
        let component = Component { name: "proxy", node: NODE.to_owned(), uid: None };
        let stop = tokio_util::sync::CancellationToken::new();
        tokio::spawn(programmed::announce(house.cluster.clone(), component, progress.follow(), stop.clone()));
        progress.reached(1);
        let script = "trap 'echo told; test -e /fairlead-order/hook && exit 10; exit 11' TERM; \
                      python3 -m http.server 8000 & while :; do sleep 0.05; done";
        let command = ["touch", "/fairlead-order/hook"];
        let hook = json!({"preStop": {"exec": {"command": command}}});
        let mounts = json!([{"name": "order", "mountPath": "/fairlead-order"}]);
        let more = json!({
            "metadata": {"labels": {"app": "web"}, "finalizers": [KEPT]},
            "container": {
                "lifecycle": hook,
                "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
                "volumeMounts": mounts,
            },
            "spec": {"terminationGracePeriodSeconds": 20, "volumes": [{"name": "order", "emptyDir": {}}]},
        });
        house.pod("web", &["sh", "-c", script], more).await;
        let pod = house.ready("web").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        house.delete("web", 20).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!house.said(&pod, "c", 0).contains("told"), "it was told before the proxy knew");
        let address = SocketAddr::new(addresses(&pod)[0], 8000);
        assert!(tokio::task::spawn_blocking(move || get(address)).await.unwrap().is_ok(), "it no longer answers");
        // Somebody is still served.
        let served = std::net::TcpStream::connect(address).unwrap();
        progress.reached(u64::MAX / 2);
        tokio::time::sleep(Duration::from_millis(1000)).await;
        assert!(!house.said(&pod, "c", 0).contains("told"), "it was told while it served somebody");
        drop(served);
        assert_eq!(house.end_of("web").await.int("exitCode"), 10, "its hook did not run first");
        stop.cancel();
    });
}

#[test]
fn a_pod_that_does_not_listen_is_killed_in_time() {
    in_house("a_pod_that_does_not_listen_is_killed_in_time", |house| async move {
        // Neither the process nor one that left it behind may stay.
        let left_behind = format!("sleep 4711.{}", std::process::id());
        let script = format!("trap '' TERM; (trap '' TERM; setsid {left_behind}) & while :; do sleep 0.1; done");
        house.pod("deaf", &["sh", "-c", &script], json!({})).await;
        house.ready("deaf").await;
        let began = Instant::now();
        house.delete("deaf", 1).await;
        house.until_gone("deaf").await;
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(6), "{took:?}");
        let left = Command::new("pgrep").args(["-f", &format!("^{left_behind}")]).output().unwrap();
        assert!(left.stdout.is_empty(), "a process was left behind");
    });
}

#[test]
fn containers_that_share_their_processes_see_each_other_and_end_with_their_pod() {
    in_house("containers_that_share_their_processes_see_each_other_and_end_with_their_pod", |house| async move {
        // Numbers that no other process sleeps for.
        let (main, left_behind) = (format!("4714.{}", std::process::id()), format!("4715.{}", std::process::id()));
        let deaf = format!("trap '' TERM; (setsid sleep {left_behind}) & sleep {main}; while :; do sleep 0.1; done");
        let sees = format!(
            "while ! pgrep -f 'sleep {main}' > /dev/null; do sleep 0.1; done; test $$$$ != 1 && echo sees; \
             test -e /tmp/once && sleep 100; touch /tmp/once; exit 1"
        );
        let container =
            |name: &str, script: &str| json!({"name": name, "image": "host", "command": ["sh", "-c", script]});
        let spec = json!({"shareProcessNamespace": true, "terminationGracePeriodSeconds": 1});
        house.pod_of("both", &[container("a", &deaf), container("b", &sees)], json!({"spec": spec})).await;
        // The end of one container leaves the other alone.
        let again = |pod: &serde_json::Value| {
            pod.at("status").list("containerStatuses").iter().any(|one| one.int("restartCount") == 1)
        };
        let pod = house.until("both", again).await;
        assert_eq!(house.said(&pod, "b", 0), "sees\n");
        let pod = house.ready("both").await;
        assert_eq!(pod.at("status").list("containerStatuses")[0].int("restartCount"), 0);
        // The next runner finds the namespace of processes.
        house.stop_runner().await;
        house.start_runner();
        house.ready("both").await;
        let left = |number: &str| {
            let found = Command::new("pgrep").args(["-fx", &format!("sleep {number}")]).output().unwrap();
            String::from_utf8_lossy(&found.stdout).into_owned()
        };
        assert_ne!(left(&left_behind), "");
        house.delete("both", 1).await;
        house.until_gone("both").await;
        let end = Instant::now() + Duration::from_secs(30);
        while !left(&main).is_empty() || !left(&left_behind).is_empty() {
            assert!(Instant::now() < end, "processes of the Pod are left behind");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn rolling_replacements_lose_no_request() {
    in_house("rolling_replacements_lose_no_request", |house| async move {
        // Requests go to the Pods EndpointSlices list as ready, looked up anew each time: a proxy without delay.
        house.control("endpointslice-controller");
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]});
        house.make(&kinds::SERVICE, json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec})).await;
        let more = json!({
            "metadata": {"labels": {"app": "web"}},
            "container": {"readinessProbe": {"httpGet": {"port": 8000}, "periodSeconds": 1}},
        });
        let serve = ["python3", "-m", "http.server", "8000"];
        house.pod("web-0", &serve, more.clone()).await;
        house.ready("web-0").await;
        let (over, failed, sent) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let client = {
            let (house, over, failed, sent) = (house.clone(), over.clone(), failed.clone(), sent.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let ready = ready(&house.cluster).await;
                    let Some(address) = ready.first().copied() else { continue };
                    let answered = tokio::task::spawn_blocking(move || get(address)).await.unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                    if !answered.as_ref().is_ok_and(|(head, _)| head.ends_with("200 OK")) {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        for round in 0..3 {
            let (old, new) = (format!("web-{round}"), format!("web-{}", round + 1));
            house.pod(&new, &serve, more.clone()).await;
            house.ready(&new).await;
            house.delete(&old, 10).await;
            house.until_gone(&old).await;
        }
        over.store(true, Ordering::Relaxed);
        client.await.unwrap();
        let (failed, sent) = (failed.load(Ordering::Relaxed), sent.load(Ordering::Relaxed));
        assert!(sent > 20, "only {sent} requests");
        assert_eq!(failed, 0, "of {sent}");
    });
}

/// Where the Service's ready endpoints are.
async fn ready(cluster: &fairlead_cluster::Cluster) -> Vec<SocketAddr> {
    let selection = fairlead_cluster::Selection::all(&kinds::ENDPOINT_SLICE).in_namespace("default");
    let slices = cluster.list(&selection).await.unwrap();
    let slices = slices.objects.iter().map(|object| serde_json::from_slice::<serde_json::Value>(&object.json).unwrap());
    let endpoints = slices.flat_map(|slice| slice.list("endpoints").to_vec());
    let ready = endpoints.filter(|endpoint| endpoint.at("conditions").flag("ready"));
    let first = ready.filter_map(|endpoint| endpoint.texts("addresses").first().and_then(|ip| ip.parse().ok()));
    first.map(|ip| SocketAddr::new(ip, 8000)).collect()
}

#[test]
fn cleanup_leaves_nothing() {
    in_house("cleanup_leaves_nothing", |house| async move {
        let long = format!("4712.{}", std::process::id());
        house.pod("stays", &["sleep", &long], json!({})).await;
        house.ready("stays").await;
        house.stop_runner().await;
        let removed = fairlead_pods::cleanup(&house.data()).await.unwrap();
        assert!(removed.iter().any(|what| what.starts_with("link fl")), "{removed:?}");
        assert!(removed.iter().any(|what| what.starts_with("network namespace fl-")), "{removed:?}");
        let left = Command::new("pgrep").args(["-f", &format!("^sleep {long}")]).output().unwrap();
        assert!(left.stdout.is_empty(), "a process was left behind");
        let links = Command::new("ip").args(["-o", "link"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&links.stdout).lines().count(), 1, "a link was left behind");
        assert!(!house.data().join("state").exists());
        let nothing: Vec<String> = Vec::new();
        assert_eq!(fairlead_pods::cleanup(&house.data()).await.unwrap(), nothing);
        let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        house.cluster.patch(&kinds::POD, "default", "stays", &patch).await.unwrap();
    });
}
