use std::convert::Infallible;

use fairlead_runtime::{Account, Budget, Limits, Sender};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

/// Answers one request at a port of this machine, with these headers and a body that comes in pieces.
async fn endpoint(headers: &[(&'static str, &'static str)], pieces: UnboundedReceiver<Bytes>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let frames = futures_util::stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(piece)), pieces))
    });
    let mut answer = Response::new(StreamBody::new(frames));
    for (name, value) in headers {
        answer.headers_mut().append(*name, HeaderValue::from_static(value));
    }
    let answer = std::sync::Mutex::new(Some(answer));
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(|_: Request<Incoming>| {
            let answer = answer.lock().unwrap().take().expect("one request");
            async { Ok::<_, Infallible>(answer) }
        });
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    });
    address
}

fn parts(headers: &[(&'static str, &'static str)]) -> Parts {
    let mut request = Request::get("/api/v1/namespaces/ns/pods/p:80/proxy/page");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn streams() -> (Budget, Permit) {
    let budget = Account::default().budget("streams", Limits { total: 10, per_sender: 10 });
    let permit = budget.acquire(&Sender::User("ann".into()), 1).unwrap();
    (budget, permit)
}

const HTTP: Wanted<'_> = Wanted { https: false, name: "p", port: "80" };

#[tokio::test]
async fn a_proxied_request_is_counted_until_its_answer_ends() {
    for read in [true, false] {
        let (budget, permit) = streams();
        let (pieces, body) = unbounded_channel();
        let address = endpoint(&[], body).await;
        let mut response = forward(&HTTP, address, &parts(&[]), Bytes::new(), permit).await.unwrap();
        assert_eq!(budget.in_use(), 1);
        pieces.send(Bytes::from("one")).unwrap();
        let piece = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((piece, budget.in_use()), (Bytes::from("one"), 1));
        if read {
            drop(pieces);
            assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
        } else {
            drop(response);
        }
        assert_eq!(budget.in_use(), 0, "the answer was read to its end: {read}");
    }
}

#[tokio::test]
async fn an_answer_of_a_pod_runs_in_a_sandbox_and_sets_no_cookie_of_the_page() {
    let policies = ["sandbox allow-scripts allow-forms"];
    let both = ["default-src 'self'", policies[0]];
    for (own, want) in [(&[][..], &policies[..]), (&[("content-security-policy", both[0])], &both)] {
        let cookies = [("set-cookie", "__Host-fairlead=mine; Path=/; Secure"), ("set-cookie", "theirs=1")];
        let (pieces, body) = unbounded_channel();
        drop(pieces);
        let address = endpoint(&[own, &cookies[..]].concat(), body).await;
        let response = forward(&HTTP, address, &parts(&[]), Bytes::new(), streams().1).await.unwrap();
        let values = |name: HeaderName| -> Vec<_> {
            response.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!(values(CONTENT_SECURITY_POLICY), want);
        assert_eq!(values(http::header::SET_COOKIE), ["theirs=1"]);
    }
}

#[test]
fn credentials_stay_here() {
    let parts = parts(&[
        ("host", "server"),
        ("authorization", "Bearer secret"),
        ("cookie", "__Host-fairlead=secret; theirs=1"),
        ("x-fairlead-proof", "secret"),
        ("impersonate-user", "ann"),
        ("x-mine", "yes"),
    ]);
    let request = outgoing(SocketAddr::from(([192, 0, 2, 1], 80)), &parts, Bytes::new()).unwrap();
    let mut sent: Vec<_> = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    sent.sort();
    let want: [(&str, &[u8]); 5] = [
        ("cookie", b"theirs=1"),
        ("host", b"192.0.2.1:80"),
        ("x-forwarded-host", b"server"),
        ("x-forwarded-uri", b"/api/v1/namespaces/ns/pods/p:80/proxy/page"),
        ("x-mine", b"yes"),
    ];
    assert_eq!(sent, want);
}
