//! Passes by themselves: soon after the start, at every interval, and when an address is lost.

use std::time::Duration;

use serde_json::{Value, json};

use super::house::{ADDRESSES, House, MAP};

/// Waits until there is an object, in the time of the test.
async fn until_there(house: &House, key: &str, most: Duration) {
    let waiting = async {
        while house.get(key).await.is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(most, waiting).await.expect("it is made again in time");
}

#[tokio::test(start_paused = true)]
async fn passes_come_soon_then_at_intervals_and_when_an_address_is_lost() {
    let house = House::memory().await;
    let (_, ip) = house.service("web", json!({"type": "NodePort", "ports": [{"port": 80}]})).await;
    let key = format!("/registry/ipaddresses/{ip}");
    house.delete(&key).await;
    tokio::spawn(house.server.clone().keep_repaired(Duration::from_secs(600)));
    until_there(&house, &key, Duration::from_secs(10)).await;
    house.send("DELETE", &format!("{ADDRESSES}/{ip}"), Value::Null).await;
    until_there(&house, &key, Duration::from_secs(10)).await;
    house.delete(MAP).await;
    until_there(&house, MAP, Duration::from_secs(700)).await;
}
