//! Each kind of damage is mended or told about, nothing else changes, and the next pass has nothing to do.

use serde_json::{Value, json};

use super::house::{ADDRESSES, House, MAP, SERVICES};

fn address_key(ip: &str) -> String {
    format!("/registry/ipaddresses/{ip}")
}

fn ports() -> Value {
    json!({"type": "NodePort", "ports": [{"port": 80}]})
}

/// Mended in one pass, and everything is as it was before.
async fn check_mended(house: &House, before: std::collections::BTreeMap<String, Value>, events: &[String]) {
    assert_eq!(house.pass(0).await, (events.len(), events.len(), events.len()));
    assert_eq!(house.world().await, before);
    assert_eq!(house.events().await, events);
    house.idle_pass(1).await;
}

#[tokio::test]
async fn a_deleted_address_is_made_again() {
    for house in House::each().await {
        let (_, ip) = house.service("web", json!({"ports": [{"port": 80}]})).await;
        let before = house.world().await;
        house.send("DELETE", &format!("{ADDRESSES}/{ip}"), Value::Null).await;
        let told = format!("Service/web ClusterIPNotAllocated: Cluster IP [IPv4]: {ip} is not allocated; repairing");
        check_mended(&house, before, &[told]).await;
    }
}

#[tokio::test]
async fn an_address_that_names_something_else_names_its_service_again() {
    for house in House::each().await {
        let (_, ip) = house.service("web", json!({"ports": [{"port": 80}]})).await;
        let before = house.world().await;
        let mut address = house.get(&address_key(&ip)).await.expect("an address");
        address["spec"]["parentRef"]["name"] = json!("another");
        address["metadata"]["labels"] = json!({});
        house.put(&address_key(&ip), &address).await;
        let told = format!(
            "Service/web ClusterIPNotAllocated: the ClusterIP [IPv4]: {ip} for Service default/web has a wrong reference; repairing"
        );
        check_mended(&house, before, &[told]).await;
        let uid = |address: &Value| address["metadata"]["uid"].clone();
        assert_eq!(
            uid(&house.get(&address_key(&ip)).await.expect("an address")),
            uid(&address),
            "it is the same object"
        );
    }
}

#[tokio::test]
async fn a_lost_node_port_map_is_made_again() {
    for house in House::each().await {
        let (service, _) = house.service("web", ports()).await;
        let port = &service["spec"]["ports"][0]["nodePort"];
        let before = house.world().await;
        house.delete(MAP).await;
        let told = format!("Service/web PortNotAllocated: Port {port} is not allocated; repairing");
        check_mended(&house, before, &[told]).await;
    }
}

#[tokio::test]
async fn a_damaged_node_port_map_no_longer_stands_in_the_way() {
    for house in House::each().await {
        house.service("web", ports()).await;
        let mut map = house.get(MAP).await.expect("a map");
        map["data"] = json!("not base64!");
        house.put(MAP, &map).await;
        let (code, _) = house.try_send("POST", SERVICES, json!({"metadata": {"name": "b"}, "spec": ports()})).await;
        assert_eq!(code, 500);
        assert_eq!(house.pass(0).await, (2, 2, 1));
        house.service("b", ports()).await;
        house.idle_pass(1).await;
    }
}

#[tokio::test]
async fn a_leaked_address_is_freed_after_a_minute() {
    for house in House::each().await {
        let before = house.world().await;
        let labels = json!({"ipaddress.kubernetes.io/ip-family": "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
        let spec = json!({"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}});
        let address = json!({"metadata": {"name": "10.0.9.9", "labels": labels}, "spec": spec});
        house.send("POST", ADDRESSES, address).await;
        house.idle_pass(0).await;
        house.idle_pass(59).await;
        assert_eq!(house.pass(60).await, (1, 1, 1));
        assert_eq!(house.world().await, before);
        let told = "IPAddress/10.0.9.9 IPAddressNotAllocated: IPAddress: 10.0.9.9 for Service default/gone appears to have \
                    leaked: cleaning up";
        assert_eq!(house.events().await, [told]);
        house.idle_pass(61).await;
    }
}

#[tokio::test]
async fn a_leaked_node_port_is_freed_after_three_passes() {
    for house in House::each().await {
        house.service("web", ports()).await;
        let before = house.world().await;
        let (kept, _) =
            house.service("leaks", json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30055}]})).await;
        assert_eq!(kept["spec"]["ports"][0]["nodePort"], 30055);
        let map = house.get(MAP).await.expect("a map");
        house.send("DELETE", &format!("{SERVICES}/leaks"), Value::Null).await;
        house.put(MAP, &map).await;
        house.idle_pass(0).await;
        house.idle_pass(100).await;
        assert_eq!(house.pass(200).await, (1, 1, 0));
        assert_eq!(house.world().await, before);
        house.idle_pass(300).await;
    }
}

#[tokio::test]
async fn what_only_people_can_mend_is_told_once() {
    for house in House::each().await {
        let (mut web, ip) = house.service("web", ports()).await;
        let port = web["spec"]["ports"][0]["nodePort"].clone();
        web["metadata"]["name"] = json!("twin");
        web["metadata"]["uid"] = json!("twin");
        web["metadata"]["creationTimestamp"] = json!("2100-01-01T00:00:00Z");
        house.put("/registry/services/specs/default/twin", &web).await;
        let mut far = house.service("far", json!({"ports": [{"port": 1}]})).await.0;
        far["spec"]["clusterIP"] = json!("198.51.100.1");
        far["spec"]["clusterIPs"] = json!(["198.51.100.1"]);
        house.put("/registry/services/specs/default/far", &far).await;
        let before = house.world().await;
        assert_eq!(house.pass(0).await, (3, 0, 3));
        let told = [
            "Service/far ClusterIPOutOfRange: Cluster IP [IPv4]: 198.51.100.1 is not within any configured Service CIDR; \
             please recreate service"
                .to_owned(),
            format!(
                "Service/twin ClusterIPAlreadyAllocated: Cluster IP [IPv4]:{ip} was assigned to multiple services; please \
                 recreate service"
            ),
            format!("Service/twin PortAlreadyAllocated: Port {port} was assigned to multiple services; please recreate service"),
        ];
        assert_eq!(house.events().await, told);
        assert_eq!(house.world().await, before);
        let revision = house.store.revision().await.expect("a revision");
        assert_eq!(house.pass(1).await, (3, 0, 0));
        assert_eq!(house.store.revision().await.expect("a revision"), revision, "nothing is written");
    }
}

#[tokio::test]
async fn what_is_found_is_counted() {
    let house = House::memory().await;
    let (_, ip) = house.service("web", ports()).await;
    house.send("DELETE", &format!("{ADDRESSES}/{ip}"), Value::Null).await;
    house.delete(MAP).await;
    house.pass(0).await;
    let request = http::Request::get("/metrics").body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
    let groups = vec!["system:masters".to_owned()];
    let mut local = house.server.local(fairlead_server::auth::User { groups, ..Default::default() });
    let answer = tower::Service::call(&mut local, request).await.expect("an answer");
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
    let text = String::from_utf8(body.to_vec()).expect("text");
    for line in [
        "apiserver_clusterip_repair_ip_errors_total{type=\"repair\"} 1",
        "apiserver_nodeport_repair_port_errors_total{type=\"repair\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}
