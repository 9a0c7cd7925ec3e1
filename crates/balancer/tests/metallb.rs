//! MetalLB's objects, read from a server that has such kinds: listed, watched, changed.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fairlead_balancer::metallb::{Found, follow};
use fairlead_cluster::Cluster;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a server with MetalLB's kinds answers. Watches of pools are fed by a channel.
struct Server {
    served: bool,
    changes: Mutex<Option<mpsc::UnboundedReceiver<Value>>>,
}

impl Server {
    fn answer(&self, request: &Request<Full<Bytes>>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if query.contains("watch=true") {
            let fed = path
                .ends_with("ipaddresspools")
                .then(|| self.changes.lock().expect("no panic while it is held").take())
                .flatten();
            return Response::new(endless(fed));
        }
        let list = |items: Value| json!({"metadata": {"resourceVersion": "7"}, "items": items});
        let body = match path {
            "/apis/metallb.io/v1beta1" if self.served => {
                json!({"resources": [{"name": "ipaddresspools"}, {"name": "l2advertisements"}]})
            }
            "/apis/metallb.io/v1beta1/ipaddresspools" => list(json!([pool("first", "192.0.2.0/28", 5)])),
            "/apis/metallb.io/v1beta1/l2advertisements" => list(json!([{
                "metadata": {"name": "l2", "namespace": "metallb-system", "resourceVersion": "6"},
                "spec": {"interfaces": ["eth1"]},
            }])),
            "/api/v1/namespaces" => list(json!([])),
            _ => {
                let mut missing = Response::new(Full::from("{}").boxed_unsync());
                *missing.status_mut() = StatusCode::NOT_FOUND;
                return missing;
            }
        };
        Response::new(Full::from(body.to_string()).boxed_unsync())
    }
}

fn pool(name: &str, range: &str, version: u64) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "metallb-system", "resourceVersion": version.to_string()},
        "spec": {"addresses": [range]},
    })
}

/// An answer that goes on as long as somebody may feed it.
fn endless(fed: Option<mpsc::UnboundedReceiver<Value>>) -> Body {
    let lines = futures_util::stream::unfold(fed, |fed| async move {
        let mut fed = fed?;
        let line = match fed.recv().await {
            Some(event) => format!("{event}\n"),
            None => std::future::pending().await,
        };
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), Some(fed)))
    });
    let never = futures_util::stream::pending();
    StreamBody::new(futures_util::StreamExt::chain(lines, never)).boxed_unsync()
}

/// What is found, as it comes.
fn found(served: bool) -> (watch::Receiver<Arc<Found>>, mpsc::UnboundedSender<Value>, CancellationToken) {
    let (feed, changes) = mpsc::unbounded_channel();
    let server = Arc::new(Server { served, changes: Mutex::new(Some(changes)) });
    let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.answer(&request)) }
    });
    let (tell, found) = watch::channel(Arc::new(Found::default()));
    let stop = CancellationToken::new();
    tokio::spawn(follow(Cluster::over(service), tell, stop.clone()));
    (found, feed, stop)
}

#[tokio::test]
async fn pools_are_listed_and_followed() {
    let (mut found, feed, stop) = found(true);
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, found.changed()).await.unwrap().unwrap();
    let first = found.borrow_and_update().clone();
    assert_eq!(first.pools.iter().map(|pool| pool.name.as_str()).collect::<Vec<_>>(), ["first"]);
    assert_eq!(
        (&first.advertisements[0].pools[..], &first.advertisements[0].interfaces[..]),
        (&["first".to_owned()][..], &["eth1".to_owned()][..])
    );
    feed.send(json!({"type": "ADDED", "object": pool("second", "198.51.100.1-198.51.100.9", 8)})).unwrap();
    feed.send(json!({"type": "DELETED", "object": pool("first", "192.0.2.0/28", 9)})).unwrap();
    let only_second = |found: &Arc<Found>| found.pools.len() == 1 && found.pools[0].name == "second";
    tokio::time::timeout(limit, found.wait_for(only_second)).await.unwrap().unwrap();
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_such_kinds_has_no_pools() {
    let (found, _feed, stop) = found(false);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(**found.borrow(), Found::default());
    stop.cancel();
}
