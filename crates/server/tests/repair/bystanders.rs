//! What is well stays as it is, also while it changes; and endpoints that no proxy can serve are told about.

use serde_json::{Value, json};

use super::house::{House, SERVICES, SLICES};

fn wish(number: u64) -> Value {
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]);
    match number % 5 {
        0 => json!({"ports": ports}),
        1 => json!({"type": "NodePort", "ports": ports}),
        2 => json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": ports}),
        3 => json!({"clusterIP": "None", "ports": ports}),
        _ => json!({"type": "ExternalName", "externalName": "a.example"}),
    }
}

#[tokio::test]
async fn a_store_that_is_well_is_left_alone() {
    for house in House::each().await {
        for number in 0..40 {
            house.service(&format!("s{number}"), wish(number)).await;
        }
        for number in (0..40).step_by(3) {
            house.send("DELETE", &format!("{SERVICES}/s{number}"), Value::Null).await;
        }
        for second in [0, 100, 200, 300] {
            house.idle_pass(second).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passes_among_writes_find_nothing_and_free_nothing() {
    for house in House::each().await {
        let churn = async {
            for round in 0..30 {
                let name = format!("s{round}");
                house.service(&name, wish(round)).await;
                let body = json!({"spec": {"type": "NodePort", "ports": [{"name": "c", "port": 1}]}, "metadata": {"name": name}});
                // Some types cannot become this one.
                let _ = house.try_send("PUT", &format!("{SERVICES}/{name}"), body).await;
                if round % 2 == 0 {
                    house.send("DELETE", &format!("{SERVICES}/{name}"), Value::Null).await;
                }
            }
        };
        let passes = async {
            for number in 0..30 {
                // An hour between passes: whatever looked leaked would be freed at once.
                assert_eq!(house.pass(number * 3600).await, (0, 0, 0));
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(churn, passes);
        house.idle_pass(1_000_000).await;
    }
}

#[tokio::test]
async fn two_servers_on_one_store_repair_once() {
    let house = House::memory().await;
    let second = house.neighbour().await;
    let (_, ip) = house.service("web", json!({"type": "NodePort", "ports": [{"port": 80}]})).await;
    let before = house.world().await;
    house.delete(&format!("/registry/ipaddresses/{ip}")).await;
    house.delete(super::house::MAP).await;
    let (first, other) = tokio::join!(house.pass(0), second.pass(0));
    assert_eq!(house.world().await, before);
    assert_eq!((first.1 + other.1, first.2 + other.2, house.events().await.len()), (2, 2, 2));
    house.idle_pass(1).await;
    second.idle_pass(1).await;
}

#[tokio::test]
async fn an_endpoint_made_by_hand_that_is_a_cluster_ip_is_told_about_once() {
    for house in House::each().await {
        let (_, ip) = house.service("web", json!({"ports": [{"port": 80}]})).await;
        let slice = json!({"metadata": {"name": "mine"}, "addressType": "IPv4", "endpoints": [{"addresses": [ip]}]});
        house.send("POST", SLICES, slice).await;
        assert_eq!(house.pass(0).await, (1, 0, 1));
        let told = format!(
            "EndpointSlice/mine EndpointIsServiceIP: Endpoint {ip} is the cluster IP of Service default/web; the endpoints of a \
             Service cannot be cluster IPs"
        );
        assert_eq!(house.events().await, [told]);
        assert_eq!(house.pass(1).await, (1, 0, 0));
    }
}
