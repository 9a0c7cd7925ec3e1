//! The shares of users: one with hundreds of requests, watches or slow bodies leaves room for
//! everyone else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::Settings;
use fairlead_runtime::Account;
use fairlead_server::auth::Authenticator;
use fairlead_server::auth::token_file::TokenFile;
use fairlead_server::serve::in_flight::Bounds;
use fairlead_server::{Admission, Authorization, Body, Options, Server, WatchBounds};
use fairlead_store::Memory;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use tokio_util::sync::CancellationToken;

const SERVICES: &str = "/api/v1/services";
/// A list of a version that is not there yet: the server waits some seconds for it.
const HANGS: &str = "/api/v1/services?resourceVersion=999999";
const TOKENS: &str = "greedy,greedy,1\npolite,polite,2\nadmin,admin,3,system:masters\n";

async fn server(bounds: Bounds, watches: WatchBounds) -> Server {
    let options = Options {
        settings: Settings {
            service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        },
        extra_kinds: Vec::new(),
        admission: Admission::default(),
        advertise: SocketAddr::from(([192, 0, 2, 1], 6443)),
        authorization: Authorization::AlwaysAllow,
        request_timeout: Duration::from_secs(60),
        backup: None,
    };
    let tokens = TokenFile::parse(TOKENS).expect("tokens");
    let authenticator = Authenticator { tokens, ..Authenticator::default() };
    let store = Arc::new(Memory::new());
    let server = Server::new(store, options, authenticator, None, CancellationToken::new()).await.expect("a server");
    server.bound(bounds, watches, &Account::default());
    server
}

async fn get(server: &Server, token: &str, path: &str) -> Response<Body> {
    let request = Request::builder().uri(path).header("authorization", format!("Bearer {token}"));
    server.handle(request.body(Full::new(Bytes::new())).expect("a request")).await
}

#[tokio::test]
async fn a_greedy_user_does_not_delay_a_polite_one() {
    let server = server(Bounds::default(), WatchBounds::default()).await;
    let greedy: Vec<_> = (0..600)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move { get(&server, "greedy", HANGS).await })
        })
        .collect();
    // All of them have begun before the polite user asks: those that are refused have their answer.
    while greedy.iter().filter(|task| task.is_finished()).count() < 200 {
        tokio::task::yield_now().await;
    }
    for _ in 0..50 {
        assert_eq!(get(&server, "polite", SERVICES).await.status(), 200);
        assert_eq!(get(&server, "admin", SERVICES).await.status(), 200);
    }
    let unfinished = greedy.iter().filter(|task| !task.is_finished()).count();
    assert!(unfinished > 100, "the polite user waited until the greedy one was done");
    let mut refused = 0;
    for task in greedy {
        let answer = task.await.expect("no panic");
        if answer.status() == 429 {
            refused += 1;
            let after = answer.headers()["retry-after"].to_str().expect("text").parse::<u64>().expect("seconds");
            assert!((1..=15).contains(&after), "{after}");
        }
    }
    assert!(refused >= 200, "{refused}");
}

#[tokio::test]
async fn a_seat_is_free_once_the_answer_is_made() {
    let server = server(Bounds { reading: 1, writing: 1 }, WatchBounds::default()).await;
    let mut untaken = Vec::new();
    for _ in 0..50 {
        untaken.push(get(&server, "greedy", SERVICES).await);
    }
    assert!(untaken.iter().all(|answer| answer.status() == 200));
    assert_eq!(get(&server, "polite", SERVICES).await.status(), 200);
}

#[tokio::test]
async fn a_body_that_comes_slowly_holds_no_seat() {
    let server = server(Bounds { reading: 1, writing: 1 }, WatchBounds::default()).await;
    let slow = tokio::spawn({
        let server = server.clone();
        async move {
            let body =
                StreamBody::new(futures_util::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>());
            let request = Request::post("/api/v1/namespaces/default/services").header("authorization", "Bearer greedy");
            server.handle(request.body(body).expect("a request")).await
        }
    });
    tokio::task::yield_now().await;
    let service = r#"{"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}"#;
    let request = Request::post("/api/v1/namespaces/default/services").header("authorization", "Bearer polite");
    let answer =
        server.handle(request.body(Full::new(Bytes::from_static(service.as_bytes()))).expect("a request")).await;
    assert_eq!(answer.status(), 201);
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test(start_paused = true)]
async fn a_body_below_the_least_rate_is_given_up() {
    let server = server(Bounds::default(), WatchBounds::default()).await;
    let drops = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from_static(b" "))), ()))
    });
    let request = Request::post("/api/v1/namespaces/default/services").header("authorization", "Bearer greedy");
    let body = StreamBody::new(Box::pin(drops));
    let answer = server.handle(request.body(body).expect("a request")).await;
    assert_eq!(answer.status(), 408);
}

#[tokio::test]
async fn watches_are_bounded_per_user_and_in_all() {
    let server = server(Bounds::default(), WatchBounds { total: 15, per_user: 10 }).await;
    let watch = "/api/v1/services?watch=1";
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(get(&server, "greedy", watch).await);
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    let refused = get(&server, "greedy", watch).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().ok()), (429, Some("10")));
    for _ in 0..5 {
        let answer = get(&server, "polite", watch).await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    assert_eq!(get(&server, "polite", watch).await.status(), 429);
    // Administrators have others.
    assert_eq!(get(&server, "admin", watch).await.status(), 200);
    drop(open);
    assert_eq!(get(&server, "polite", watch).await.status(), 200);
}

#[tokio::test]
async fn metrics_show_what_is_used_and_what_was_refused() {
    let server = server(Bounds::default(), WatchBounds { total: 1, per_user: 1 }).await;
    let watch = get(&server, "greedy", "/api/v1/services?watch=1").await;
    assert_eq!(get(&server, "greedy", "/api/v1/services?watch=1").await.status(), 429);
    let text = get(&server, "admin", "/metrics").await.into_body().collect().await.expect("text").to_bytes();
    let text = String::from_utf8_lossy(&text);
    for line in [
        "fairlead_budget_in_use{budget=\"api watches\"} 1",
        "fairlead_budget_refused_total{budget=\"api watches\",limit=\"client\"} 1",
        "apiserver_flowcontrol_rejected_requests_total{priority_level=\"users\"} 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    drop(watch);
}
