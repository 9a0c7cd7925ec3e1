//! Looks at real listeners on loopback: those that answer, and those that hang, dribble, break off or never end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fairlead_probe::{Check, Http, Outcome, Scheme, look};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATIENCE: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(300);

/// Serves every connection on a port of its own. The number is that of the connection, from 0.
async fn serve<F>(answer: impl Fn(TcpStream, usize) -> F + Send + Sync + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let count = AtomicUsize::new(0);
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, count.fetch_add(1, Ordering::Relaxed)));
        }
    });
    port
}

/// Reads the head of a request, as text.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Answers every request with these bytes and closes.
async fn says(answer: impl Into<Vec<u8>>) -> u16 {
    let answer: Arc<[u8]> = answer.into().into();
    serve(move |mut stream, _| {
        let answer = answer.clone();
        async move {
            head(&mut stream).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
            let _ = stream.read(&mut [0]).await;
        }
    })
    .await
}

fn get(port: u16) -> Check {
    let (scheme, host, path) = (Scheme::Http, "127.0.0.1".to_owned(), "/healthz?a=b c".to_owned());
    Check::Http(Http { scheme, host, port, path, headers: Vec::new() })
}

fn tcp(port: u16) -> Check {
    Check::Tcp { host: "127.0.0.1".to_owned(), port }
}

fn grpc(port: u16, service: &str) -> Check {
    Check::Grpc { host: "127.0.0.1".to_owned(), port, service: service.to_owned() }
}

/// A port nobody listens on.
async fn closed() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    listener.local_addr().expect("an address").port()
}

#[track_caller]
fn failed(outcome: &Outcome, expect: &str) {
    let Outcome::Failure(message) = outcome else { panic!("{outcome:?}") };
    assert!(message.contains(expect), "{message}");
}

/// A look that must end by its time-out and not later.
async fn late(check: Check, expect: &str) {
    let began = Instant::now();
    let outcome = look(&check, SHORT).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    failed(&outcome, expect);
}

#[tokio::test]
async fn statuses_are_judged() {
    for (status, expect) in [
        ("200 OK", Outcome::Success),
        ("204 No Content", Outcome::Success),
        ("304 Not Modified", Outcome::Warning("Probe terminated redirects, Response body: ".to_owned())),
        ("404 Not Found", Outcome::Failure("HTTP probe failed with statuscode: 404".to_owned())),
        ("503 Busy", Outcome::Failure("HTTP probe failed with statuscode: 503".to_owned())),
        ("302 Nowhere", Outcome::Warning("Probe terminated redirects, Response body: ".to_owned())),
    ] {
        let port = says(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(look(&get(port), PATIENCE).await, expect, "{status}");
    }
}

#[tokio::test]
async fn requests_are_what_the_kubelet_sends() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let port = serve(move |mut stream, _| {
        let sender = sender.clone();
        async move {
            let _ = sender.send(head(&mut stream).await);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        }
    })
    .await;
    let Check::Http(plain) = get(port) else { unreachable!() };
    assert_eq!(look(&Check::Http(plain.clone()), PATIENCE).await, Outcome::Success);
    let text = seen.recv().await.expect("a request").to_lowercase();
    assert!(text.starts_with("get /healthz?a=b%20c http/1.1\r\n"), "{text}");
    for line in ["user-agent: kube-probe/fairlead", "accept: */*", "connection: close"] {
        assert!(text.contains(&format!("\r\n{line}\r\n")), "{line}: {text}");
    }
    assert!(text.contains(&format!("\r\nhost: 127.0.0.1:{port}\r\n")), "{text}");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers =
        vec![pair("Host", "web.example"), pair("Accept", ""), pair("User-Agent", "me"), pair("bad name", "\r\n")];
    look(&Check::Http(Http { headers, ..plain }), PATIENCE).await;
    let text = seen.recv().await.expect("a request").to_lowercase();
    assert!(text.contains("\r\nhost: web.example\r\n") && text.contains("\r\nuser-agent: me\r\n"), "{text}");
    assert!(!text.contains("accept") && !text.contains("bad"), "{text}");
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_host_only() {
    let redirect = |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 4\r\n\r\nbody");
    let good = says("HTTP/1.1 200 OK\r\n\r\n").await;
    let bad = says("HTTP/1.1 500 Oops\r\n\r\n").await;
    let elsewhere = Outcome::Warning("Probe terminated redirects, Response body: body".to_owned());
    for (location, expect) in [
        (format!("http://127.0.0.1:{good}/x"), Outcome::Success),
        (format!("http://127.0.0.1:{bad}/x"), Outcome::Failure("HTTP probe failed with statuscode: 500".to_owned())),
        (format!("http://localhost:{bad}/x"), elsewhere.clone()),
        ("//example.invalid/x".to_owned(), elsewhere),
    ] {
        let port = says(redirect(&location)).await;
        assert_eq!(look(&get(port), PATIENCE).await, expect, "{location}");
    }
    let port = says(redirect("ftp://127.0.0.1/")).await;
    failed(&look(&get(port), PATIENCE).await, "failed to parse Location header");
    let port = says(redirect("/again")).await;
    failed(&look(&get(port), PATIENCE).await, "stopped after 10 redirects");
}

#[tokio::test]
async fn who_is_not_there_is_told_in_the_kubelets_words() {
    let port = closed().await;
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    failed(&look(&tcp(port), PATIENCE).await, &refused);
    failed(&look(&get(port), PATIENCE).await, &format!("Get \"http://127.0.0.1:{port}/healthz?a=b%20c\": {refused}"));
    failed(&look(&grpc(port, ""), PATIENCE).await, "error: failed to connect service at \"127.0.0.1:");
    assert_eq!(look(&tcp(says("").await), PATIENCE).await, Outcome::Success);
}

#[tokio::test]
async fn who_answers_nonsense_fails() {
    for (answer, expect) in [
        ("", "EOF"),
        ("SSH-2.0-OpenSSH_9.2p1\r\n\r\n", "malformed HTTP response"),
        ("HTTP/1.1 ", "EOF"),
        ("HTTP/1.1 xyz OK\r\n\r\n", "malformed HTTP response"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "EOF"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "malformed HTTP response"),
    ] {
        failed(&look(&get(says(answer).await), PATIENCE).await, expect);
    }
    // Neither is HTTP/2 that is none.
    failed(&look(&grpc(says("HTTP/1.1 200 OK\r\n\r\n").await, ""), PATIENCE).await, "error: health rpc probe failed: ");
}

#[tokio::test]
async fn who_hangs_or_dribbles_is_given_up_in_time() {
    let silent = serve(|stream, _| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    late(get(silent), "context deadline exceeded (Client.Timeout exceeded while awaiting headers)").await;
    late(grpc(silent, ""), "timeout: health rpc did not complete within 300ms").await;
    let dribble = |begin: &'static str| {
        serve(move |mut stream, _| async move {
            let _ = stream.write_all(begin.as_bytes()).await;
            while stream.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    };
    late(get(dribble("HTTP/1.1 200 OK\r\nA: ").await), "deadline exceeded").await;
    late(get(dribble("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n").await), "deadline exceeded").await;
}

#[tokio::test]
async fn what_never_ends_is_not_read_to_the_end() {
    let endless = |begin: &'static str, part: &'static [u8]| {
        serve(move |mut stream, _| async move {
            let _ = stream.write_all(begin.as_bytes()).await;
            while stream.write_all(part).await.is_ok() {}
        })
    };
    // A body that is long enough is good enough.
    let port = endless("HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 4096]).await;
    assert_eq!(look(&get(port), PATIENCE).await, Outcome::Success);
    let port = endless("HTTP/1.1 200 OK\r\nA: ", &[b'x'; 4096]).await;
    failed(&look(&get(port), PATIENCE).await, "malformed HTTP response");
    let port = endless("HTTP/1.1 200 OK\r\n", b"A: b\r\n").await;
    failed(&look(&get(port), PATIENCE).await, "malformed HTTP response");
}

#[tokio::test]
async fn any_certificate_is_good_enough() {
    for alpn in [vec![], vec![b"http/1.1".to_vec()]] {
        let acceptor = acceptor(alpn);
        let port = serve(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                head(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        let Check::Http(plain) = get(port) else { unreachable!() };
        let secure = Check::Http(Http { scheme: Scheme::Https, ..plain });
        assert_eq!(look(&secure, PATIENCE).await, Outcome::Success);
        failed(&look(&get(port), PATIENCE).await, "Get \"http://127.0.0.1");
    }
    let plain = says("HTTP/1.1 200 OK\r\n\r\n").await;
    let Check::Http(request) = get(plain) else { unreachable!() };
    let outcome = look(&Check::Http(Http { scheme: Scheme::Https, ..request }), SHORT).await;
    failed(&outcome, "Get \"https://127.0.0.1");
}

fn acceptor(alpn: Vec<Vec<u8>>) -> tokio_rustls::TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["nobody.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).expect("a configuration");
    config.alpn_protocols = alpn;
    Arc::new(config).into()
}

mod h2 {
    //! A gRPC health server of the test's own.

    use std::convert::Infallible;

    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Request, Response};
    use http_body_util::{BodyExt, Full};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    use super::{AsyncRead, AsyncWrite};

    static HUGE: [u8; 1 << 20] = [0; 1 << 20];

    /// Knows the services `""` and `good` as serving, `bad` as not serving, says too much of `huge`, and knows no other.
    async fn health(
        request: Request<Incoming>,
    ) -> Result<Response<http_body_util::combinators::BoxBody<Bytes, Infallible>>, Infallible> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let service = body.get(7..).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
        let mut trailers = HeaderMap::new();
        let (status, data): (_, &[u8]) = match (path.as_str(), service.as_str()) {
            ("/grpc.health.v1.Health/Check", "" | "good") => ("0", &[0, 0, 0, 0, 2, 8, 1]),
            ("/grpc.health.v1.Health/Check", "bad") => ("0", &[0, 0, 0, 0, 2, 8, 2]),
            ("/grpc.health.v1.Health/Check", "huge") => ("0", &HUGE),
            ("/grpc.health.v1.Health/Check", "none") => ("12", &[]),
            _ => ("5", &[]),
        };
        trailers.insert("grpc-status", HeaderValue::from_static(status));
        trailers.insert("grpc-message", HeaderValue::from_static("unknown service"));
        let body = Full::new(Bytes::from_static(data)).with_trailers(async { Some(Ok(trailers)) });
        let response = Response::builder().header("content-type", "application/grpc").body(body.boxed());
        Ok(response.expect("an answer"))
    }

    pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service_fn(health)).await;
    }
}

#[tokio::test]
async fn grpc_health_is_asked_for() {
    let port = serve(|stream, _| h2::serve(stream)).await;
    for service in ["", "good"] {
        assert_eq!(look(&grpc(port, service), PATIENCE).await, Outcome::Success);
    }
    for (service, expect) in [
        ("bad", "service unhealthy (responded with \"NOT_SERVING\")"),
        ("huge", "error: health rpc probe failed: rpc error: code = Internal desc = the answer is far too long"),
        ("else", "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"),
        (
            "none",
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service",
        ),
    ] {
        assert_eq!(look(&grpc(port, service), PATIENCE).await, Outcome::Failure(expect.to_owned()));
    }
}

#[tokio::test]
async fn https_may_be_http_2() {
    let acceptor = acceptor(vec![b"h2".to_vec()]);
    let port = serve(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                h2::serve(stream).await;
            }
        }
    })
    .await;
    let Check::Http(plain) = get(port) else { unreachable!() };
    assert_eq!(look(&Check::Http(Http { scheme: Scheme::Https, ..plain }), PATIENCE).await, Outcome::Success);
}

#[tokio::test]
async fn connections_leave_nothing_in_time_wait() {
    let port = serve(|mut stream, _| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n").await;
        let _ = stream.read(&mut [0; 1024]).await;
    })
    .await;
    for _ in 0..5 {
        assert_eq!(look(&get(port), PATIENCE).await, Outcome::Success);
        assert_eq!(look(&tcp(port), PATIENCE).await, Outcome::Success);
    }
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let wanted = format!("0100007F:{port:04X}");
    // The fourth column is the state; 06 is TIME_WAIT.
    let waiting = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let waiting = waiting.filter(|row| row.len() > 3 && row[1..3].contains(&wanted.as_str()) && row[3] == "06").count();
    assert_eq!(waiting, 0, "{table}");
}

/// Sends a piece again and again. Returns what it is answered, which is not that the time is over.
async fn looked_at_a_server_without_end(
    begin: &'static [u8],
    piece: &'static [u8],
    check: fn(u16) -> Check,
) -> Outcome {
    let port = serve(move |mut stream, _| async move {
        let _ = stream.write_all(begin).await;
        while stream.write_all(piece).await.is_ok() {}
    })
    .await;
    let check = check(port);
    let looked = look(&check, Duration::from_secs(3600));
    tokio::time::timeout(Duration::from_secs(20), looked).await.expect("the look ends before its time-out")
}

#[tokio::test]
async fn interim_answers_and_frames_without_end_end_the_look() {
    let interim = looked_at_a_server_without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n", get).await;
    failed(&interim, "more than 1 MiB was sent");
    // SETTINGS, then PING (RFC 9113, 6.7).
    let ping = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let frames = looked_at_a_server_without_end(b"\0\0\0\x04\0\0\0\0\0", ping, |port| grpc(port, "")).await;
    assert!(matches!(frames, Outcome::Failure(_)), "{frames:?}");
}
