//! How Pods begin, answer, end and begin again.

use std::net::SocketAddr;
use std::time::Duration;

use fairlead_api::Look;
use serde_json::json;

use crate::house::{addresses, condition, get, in_house};

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
        assert_eq!(ips, ["10.244.7.2".parse::<std::net::IpAddr>().unwrap(), "fd00:244:7::2".parse().unwrap()]);
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
