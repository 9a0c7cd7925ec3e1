use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use proptest::prelude::*;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::*;
use crate::api::spdy::tests::frames;
use crate::host::{Host, Logs, Refusal, Session, Streams, Target};

/// A Pod that has one port, or none.
struct Port(Option<u16>);

impl Host for Port {
    fn pods(&self) -> Vec<Arc<Value>> {
        Vec::new()
    }
    fn logs(&self, _: &Target, _: bool) -> Result<Logs, Refusal> {
        Err(Refusal::NotFound("no log".to_owned()))
    }
    fn exec(&self, _: &Target, _: Vec<String>, _: Streams) -> BoxFuture<'static, Result<Session, Refusal>> {
        std::future::ready(Err(Refusal::NotFound("no command".to_owned()))).boxed()
    }
    fn attach(&self, _: &Target, _: Streams) -> BoxFuture<'static, Result<Session, Refusal>> {
        std::future::ready(Err(Refusal::NotFound("no process".to_owned()))).boxed()
    }
    fn dial(&self, _: &Target, _: u16) -> BoxFuture<'static, Result<TcpStream, Refusal>> {
        let port = self.0;
        Box::pin(async move {
            let port = port.ok_or_else(|| Refusal::Failed("connection refused".to_owned()))?;
            TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| Refusal::Failed(error.to_string()))
        })
    }
}

fn pod(port: Option<u16>) -> Destination {
    let target = Target { namespace: "ns".to_owned(), pod: "p".to_owned(), container: None };
    Destination { host: Arc::new(Port(port)), target }
}

fn open(stream: u32, kind: &str, request: u32) -> Frame {
    let headers = [("streamtype", kind), ("port", "80"), ("requestid", &request.to_string())];
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Frame::Open { stream, headers, fin: false }
}

fn bytes(sent: &[Frame]) -> Bytes {
    let (mut writer, mut out) = (Writer::new(), BytesMut::new());
    sent.iter().for_each(|frame| writer.write(frame, &mut out));
    out.freeze()
}

/// A place to send to, and what was sent there.
fn sink() -> (impl Sink<Bytes, Error = ()> + Unpin + Send + 'static, mpsc::UnboundedReceiver<Bytes>) {
    let (out, queue) = mpsc::unbounded_channel();
    let sink = futures_util::sink::unfold(out, |out, bytes: Bytes| async {
        out.send(bytes).map_err(drop)?;
        Ok(out)
    });
    (Box::pin(sink), queue)
}

/// What comes back until it has been quiet for a while.
async fn answers(to: Destination, sent: &[Frame]) -> Vec<Frame> {
    let (out, mut queue) = sink();
    let input = stream::once(std::future::ready(bytes(sent))).chain(stream::pending()).boxed();
    let tunnel = tokio::spawn(serve(to, input, out));
    let (mut reader, mut all) = (Reader::new(), Vec::new());
    while let Ok(Some(bytes)) = timeout(Duration::from_millis(300), queue.recv()).await {
        all.extend(frames(&mut reader, &bytes, 1 << 20).expect("frames"));
    }
    tunnel.abort();
    all
}

#[tokio::test]
async fn a_port_that_refuses_is_told_on_the_stream_of_errors() {
    let got = answers(pod(None), &[open(1, "error", 0), open(3, "data", 0), Frame::Ping(1), Frame::Ping(2)]).await;
    let why = "error forwarding port 80 to pod p: connection refused";
    for want in [
        Frame::Reply { stream: 1 },
        Frame::Reply { stream: 3 },
        Frame::Ping(1),
        Frame::Data { stream: 1, data: why.into(), fin: true },
        Frame::Reset { stream: 3, status: reset::CANCEL },
    ] {
        assert!(got.contains(&want), "{want:?} is not in {got:?}");
    }
    assert!(!got.contains(&Frame::Ping(2)), "only the client's own pings are answered");
}

#[tokio::test]
async fn streams_that_make_no_sense_are_refused() {
    let nothing = Frame::Open { stream: 1, headers: Vec::new(), fin: false };
    let sent = [nothing, open(3, "error", 0), open(5, "error", 0), open(7, "other", 1), open(9, "data", 2)];
    let early = (0..20).map(|_| Frame::Data { stream: 9, data: "x".into(), fin: false });
    let got = answers(pod(None), &sent.into_iter().chain(early).collect::<Vec<_>>()).await;
    let reset = |stream, status| Frame::Reset { stream, status };
    for want in [
        reset(1, reset::PROTOCOL_ERROR),
        Frame::Reply { stream: 3 },
        reset(5, reset::PROTOCOL_ERROR),
        reset(7, reset::PROTOCOL_ERROR),
        // It sends before its other half is there, and more than is kept.
        reset(9, reset::REFUSED),
    ] {
        assert!(got.contains(&want), "{want:?} is not in {got:?}");
    }
}

#[tokio::test]
async fn more_streams_than_there_are_places_are_refused() {
    let most = u32::try_from(2 * CONNECTIONS).expect("a number");
    let sent: Vec<Frame> = (0..most + 5).map(|at| open(2 * at + 1, "error", at)).collect();
    let got = answers(pod(None), &sent).await;
    let refused = got.iter().filter(|frame| matches!(frame, Frame::Reset { status: reset::REFUSED, .. })).count();
    assert_eq!((got.len(), refused), (sent.len(), 5));
}

#[tokio::test]
async fn a_pod_that_does_not_read_holds_its_client_up_instead_of_filling_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let (mut writer, mut first) = (Writer::new(), BytesMut::new());
    [open(1, "error", 0), open(3, "data", 0)].iter().for_each(|frame| writer.write(frame, &mut first));
    let chunk = Frame::Data { stream: 3, data: vec![0; 32 << 10].into(), fin: false };
    let more = stream::repeat(bytes(&[chunk])).inspect(move |bytes| {
        counted.fetch_add(bytes.len(), Ordering::Relaxed);
    });
    let (out, _queue) = sink();
    let tunnel = tokio::spawn(serve(pod(Some(port)), stream::iter([first.freeze()]).chain(more).boxed(), out));
    let (stream, _) = listener.accept().await.expect("a connection");
    let mut before = 0;
    loop {
        sleep(Duration::from_millis(200)).await;
        let now = taken.load(Ordering::Relaxed);
        assert!(now < 64 << 20, "{now} bytes were taken");
        if now == before && now > 0 {
            break;
        }
        before = now;
    }
    drop(stream);
    tunnel.abort();
}

#[tokio::test]
async fn a_client_that_gives_up_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let sent = [open(1, "error", 0), open(3, "data", 0), Frame::Data { stream: 3, data: "hello".into(), fin: false }];
    let (input, frames) = mpsc::channel::<Bytes>(1);
    let frames = stream::unfold(frames, |mut frames| async { Some((frames.recv().await?, frames)) }).boxed();
    let (out, _queue) = sink();
    let tunnel = tokio::spawn(serve(pod(Some(port)), frames, out));
    input.send(bytes(&sent)).await.expect("sent");
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut got = [0; 5];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut got).await.expect("hello");
    let mut reset = BytesMut::new();
    Writer::new().write(&Frame::Reset { stream: 3, status: reset::CANCEL }, &mut reset);
    input.send(reset.freeze()).await.expect("sent");
    let ended = timeout(Duration::from_secs(10), tokio::io::AsyncReadExt::read(&mut stream, &mut got)).await;
    assert!(matches!(ended.expect("in time"), Ok(0) | Err(_)));
    let _ = stream.shutdown().await;
    tunnel.abort();
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let stream = 0u32..12;
    prop_oneof![
        (stream.clone(), prop_oneof![Just("error"), Just("data"), Just("x")], 0u32..4)
            .prop_map(|(stream, kind, request)| open(stream, kind, request)),
        (stream.clone(), 0usize..100, any::<bool>()).prop_map(|(stream, count, fin)| Frame::Data {
            stream,
            data: vec![7; count].into(),
            fin
        }),
        (stream.clone(), 1u32..9).prop_map(|(stream, status)| Frame::Reset { stream, status }),
        any::<u32>().prop_map(Frame::Ping),
        stream.prop_map(|last| Frame::Away { last }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_in_any_order_neither_break_nor_hang_it(sent in proptest::collection::vec(any_frame(), 0..60), noise: Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a run time");
        let ended = runtime.block_on(async {
            let (out, _queue) = sink();
            let input = stream::iter([bytes(&sent), noise.into()]).boxed();
            timeout(Duration::from_secs(10), tokio::spawn(serve(pod(None), input, out))).await
        });
        prop_assert!(ended.is_ok_and(|ended| ended.is_ok()));
    }
}
