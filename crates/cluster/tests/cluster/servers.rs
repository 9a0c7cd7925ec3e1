//! Requests and watches when an API server is gone, or does not answer any more.

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::{Event, Selection};
use fairlead_cluster::{Cluster, Step};
use fairlead_testkit::{Relay, free_port};
use futures_util::StreamExt;

use crate::house::{make, on_the_network};

/// Sooner than a silent watch is given up by itself.
const PATIENCE: Duration = Duration::from_secs(90);

fn address(cluster: &Cluster) -> std::net::SocketAddr {
    let url = cluster.url().expect("it is elsewhere").trim_end_matches('/');
    url.strip_prefix("https://").expect("TLS").parse().expect("an address")
}

#[tokio::test]
async fn a_server_that_is_gone_is_passed_over() {
    let (_house, direct, dir) = on_the_network().await;
    let gone = format!("https://127.0.0.1:{}", free_port());
    let urls = [gone, format!("https://{}", address(&direct))];
    let cluster = Cluster::connect_to_all(Some(&dir.path().join("kubeconfig")), &urls).await.expect("a way in");
    let kind = &kinds::CONFIG_MAP;
    // A write, too: it never left this machine.
    make(&cluster, "default", "a", "x").await;
    assert!(cluster.get(kind, "default", "a").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_moves_along_when_its_server_falls_silent() {
    let (_house, direct, dir) = on_the_network().await;
    let relay = Relay::start(address(&direct));
    let urls = [relay.address(), address(&direct)].map(|address| format!("https://{address}"));
    let cluster = Cluster::connect_to_all(Some(&dir.path().join("kubeconfig")), &urls).await.expect("a way in");
    let mut steps = cluster.follow(Selection::all(&kinds::CONFIG_MAP).in_namespace("default"));
    while !matches!(steps.next().await, Some(Step::Listed(_))) {}
    make(&direct, "default", "before", "x").await;
    let shown = async |name: &str, steps: &mut futures_util::stream::BoxStream<'static, Step>| {
        let found = async {
            while let Some(step) = steps.next().await {
                let Step::Changed(events, _) = step else { continue };
                if events.iter().any(|event| matches!(event, Event::Put(object) if &*object.key.name == name)) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{name} is not shown"));
    };
    shown("before", &mut steps).await;
    relay.mute();
    make(&direct, "default", "after", "x").await;
    shown("after", &mut steps).await;
    assert!(cluster.get(&kinds::CONFIG_MAP, "default", "after").await.is_ok());
}
