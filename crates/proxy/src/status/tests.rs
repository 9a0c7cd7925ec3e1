use fairlead_api::view::Family;

use super::*;
use fairlead_testkit::http::get;

fn status() -> Status {
    let pages = Pages {
        configuration: json!({"kind": "KubeProxyConfiguration", "mode": "", "nodePortAddresses": null}),
        flags: vec![("bind-address".to_owned(), "0.0.0.0".to_owned()), ("config".to_owned(), String::new())],
    };
    Status::new(Mode::Nftables, pages, Metrics::new(Mode::Nftables, &[Family::V4]))
}

/// A server on a free port of loopback.
async fn running() -> (Status, SocketAddr, CancellationToken) {
    let (status, stop) = (status(), CancellationToken::new());
    let listener = server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = listener.local_addr().expect("its address");
    let shown = status.clone();
    let reply = move |question: Question| {
        let status = shown.clone();
        async move { status.answer(question).await }
    };
    tokio::spawn(server::serve(listener, stop.clone(), reply));
    (status, address, stop)
}

#[tokio::test]
async fn every_page_is_served_and_nothing_else() {
    let (_, address, _stop) = running().await;
    let check = async |path: &str, status: u16, media: &str, body: &str| {
        let (found, head, text) = get(address, path).await;
        assert_eq!(found, status, "{path}");
        assert!(head.contains(&format!("content-type: {media}\r\n")), "{path}: {head}");
        assert!(text.contains(body), "{path}: {text}");
    };
    check("/proxyMode", 200, "text/plain; charset=utf-8", "nftables").await;
    check("/healthz", 200, "text/plain; charset=utf-8", "ok").await;
    check("/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "# TYPE process_cpu_seconds_total counter\n")
        .await;
    check("/flagz", 200, "text/plain; charset=utf-8", "\nfairlead-proxy flagz\nWarning: ").await;
    check("/flagz", 200, "text/plain; charset=utf-8", "\nbind-address: 0.0.0.0\nconfig: \n").await;
    check("/statusz", 200, "text/plain; charset=utf-8", "\nPaths:  /configz /flagz /healthz /metrics /proxyMode\n")
        .await;
    check("/nope", 404, "text/plain; charset=utf-8", "404 page not found\n").await;
    check("/", 404, "text/plain; charset=utf-8", "404 page not found\n").await;
    let (_, _, text) = get(address, "/configz").await;
    let shown: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(shown["kubeproxy.config.k8s.io"]["mode"], "nftables");
    assert_eq!(shown["kubeproxy.config.k8s.io"]["nodePortAddresses"], json!(["primary"]));
}

#[tokio::test]
async fn what_was_changed_in_the_kernel_is_shown() {
    let (status, address, _stop) = running().await;
    assert!(!get(address, "/statusz").await.2.contains("Kernel parameters"));
    status.parameters(vec![
        Change { name: "net.a".to_owned(), before: Some("1".to_owned()), after: Ok("2".to_owned()) },
        Change { name: "net.b".to_owned(), before: None, after: Err("not there".to_owned()) },
    ]);
    let page = get(address, "/statusz").await.2;
    assert!(page.ends_with("\nKernel parameters:\nnet.a: 2 (was 1)\nnet.b: not there\n"), "{page}");
}

#[tokio::test]
async fn an_address_that_must_be_had_and_cannot_is_the_end() {
    let taken = server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let address = taken.local_addr().expect("its address");
    let error = serve(status(), address, true, CancellationToken::new()).await.expect_err("the port is taken");
    assert!(error.to_string().starts_with("listening for metrics at 127.0.0.1:"), "{error}");
}

#[test]
fn how_long_it_runs_is_written_as_kube_proxy_writes_it() {
    let page = status().status();
    assert!(page.contains("\nUp:  0 hr 00 min 00 sec\n"), "{page}");
    let started = page.lines().find_map(|line| line.strip_prefix("Started:  ")).expect("a line");
    assert_eq!(started.split_whitespace().count(), 6, "{started}");
}
