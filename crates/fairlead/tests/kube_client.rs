//! Does a client written by others, for Kubernetes, work as it does there? kube-rs, with its typed API and its watcher.

use std::collections::BTreeSet;
use std::time::Duration;

use fairlead_testkit::Server;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn objects_are_made_changed_and_removed() {
    let server = start();
    let services: Api<Service> = Api::namespaced(client(&server).await, "default");
    let made = services.create(&PostParams::default(), &service("web")).await.expect("created");
    let address = made.spec.as_ref().and_then(|spec| spec.cluster_ip.clone()).expect("an address");
    assert!(address.starts_with("10.96."), "{address}");

    let again = services.create(&PostParams::default(), &service("web")).await.expect_err("it is there");
    assert!(
        matches!(&again, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists"),
        "{again}"
    );

    let labels = json!({"metadata": {"labels": {"team": "blue"}}});
    let patched = services.patch("web", &PatchParams::default(), &Patch::Merge(&labels)).await.expect("patched");
    assert_eq!(patched.labels().get("team").map(String::as_str), Some("blue"));
    let stale = services.replace("web", &PostParams::default(), &made).await.expect_err("it has changed since");
    assert!(matches!(&stale, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"), "{stale}");

    services.delete("web", &DeleteParams::default()).await.expect("deleted");
    assert!(services.get_opt("web").await.expect("an answer").is_none());
}

#[tokio::test]
async fn appliers_own_fields_and_conflicts_name_them() {
    let server = start();
    let services: Api<Service> = Api::namespaced(client(&server).await, "default");
    let with = |port: i32| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": port}]},
        }))
    };
    services.patch("web", &PatchParams::apply("ann"), &with(8080)).await.expect("applied");
    let conflict = services.patch("web", &PatchParams::apply("bob"), &with(9090)).await.expect_err("ann owns the port");
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409), "{conflict}");
    assert!(conflict.to_string().contains("conflict with \"ann\""), "{conflict}");
    let forced = services.patch("web", &PatchParams::apply("bob").force(), &with(9090)).await.expect("forced");
    let owners: BTreeSet<&str> = forced.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(owners, BTreeSet::from(["ann", "bob"]));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let server = start();
    let slices: Api<EndpointSlice> = Api::namespaced(client(&server).await, "default");
    for number in 0..25 {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [],
            "metadata": {"name": format!("slice-{number:02}"), "labels": {"made-by": "test"}},
        });
        let slice = serde_json::from_value(slice).expect("a slice");
        slices.create(&PostParams::default(), &slice).await.expect("created");
    }
    let (mut names, mut pages, mut next) = (Vec::new(), 0, None);
    loop {
        let mut wanted = ListParams::default().labels("made-by=test").limit(10);
        wanted.continue_token = next.take();
        let page = slices.list(&wanted).await.expect("a page");
        pages += 1;
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = Some(token),
            None => break,
        }
    }
    let expected: Vec<String> = (0..25).map(|number| format!("slice-{number:02}")).collect();
    assert_eq!((pages, names), (3, expected));
}

#[tokio::test]
async fn the_watcher_lists_and_then_hears_of_every_change() {
    follow(watcher::Config::default()).await;
}

#[tokio::test]
async fn the_watcher_can_have_its_list_as_a_stream() {
    follow(watcher::Config::default().streaming_lists()).await;
}

async fn follow(config: watcher::Config) {
    let server = start();
    let services: Api<Service> = Api::namespaced(client(&server).await, "default");
    services.create(&PostParams::default(), &service("first")).await.expect("created");
    let mut events = std::pin::pin!(watcher::watcher(services.clone(), config));
    let mut listed = BTreeSet::new();
    loop {
        match next(&mut events).await {
            Event::Init => {}
            Event::InitApply(service) => drop(listed.insert(service.name_any())),
            Event::InitDone => break,
            other => panic!("the list comes first: {other:?}"),
        }
    }
    assert_eq!(listed, BTreeSet::from(["first".to_owned(), "kubernetes".to_owned()]));

    services.create(&PostParams::default(), &service("second")).await.expect("created");
    assert!(matches!(next(&mut events).await, Event::Apply(service) if service.name_any() == "second"));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    services.patch("first", &PatchParams::default(), &Patch::Merge(&labels)).await.expect("patched");
    assert!(matches!(next(&mut events).await, Event::Apply(service) if service.labels().contains_key("a")));
    services.delete("first", &DeleteParams::default()).await.expect("deleted");
    assert!(matches!(next(&mut events).await, Event::Delete(service) if service.name_any() == "first"));
}

async fn next(events: &mut (impl Stream<Item = watcher::Result<Event<Service>>> + Unpin)) -> Event<Service> {
    let event = timeout(PATIENCE, events.next()).await.expect("something happens");
    event.expect("a watch never ends").expect("no error")
}

fn start() -> Server {
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &[])
}

async fn client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

fn service(name: &str) -> Service {
    let service: Value = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    serde_json::from_value(service).expect("a Service")
}
