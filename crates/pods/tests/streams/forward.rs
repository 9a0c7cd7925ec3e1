//! Connections into a Pod.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::{House, Way};

/// A server that answers when its client has said all: so many bytes, then the same bytes.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all).await;
                let _ = stream.write_all(format!("{} bytes\n", all.len()).as_bytes()).await;
                let _ = stream.write_all(&all).await;
            });
        }
    });
    port
}

/// kubectl, and the port it listens on.
async fn forward(house: &House, port: u16) -> (Child, u16) {
    let arguments = ["port-forward", "--address", "127.0.0.1", "pod/p", &format!(":{port}")];
    let mut child = house.command(&arguments).spawn().expect("kubectl");
    let mut lines = BufReader::new(child.stdout.take().expect("out")).lines();
    let line = lines.next_line().await.expect("a line").expect("a line");
    // It writes a line for every connection; somebody has to read them.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let local = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port");
    (child, local.parse().expect("a port"))
}

async fn exchange(port: u16, bytes: Vec<u8>) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let (mut read, mut write) = stream.split();
    let send = async {
        write.write_all(&bytes).await.expect("sent");
        write.shutdown().await.expect("ended");
    };
    let mut answer = Vec::new();
    let receive = async { read.read_to_end(&mut answer).await.expect("received") };
    futures_util::future::join(send, receive).await;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_connections_at_once_each_get_their_own_answer() {
    for way in [Way::Memory, Way::Tls, Way::Spdy] {
        let Some(house) = House::new("fifty", way).await else { return };
        let (_child, port) = forward(&house, server().await).await;
        let mut all = JoinSet::new();
        for at in 0..50usize {
            all.spawn(async move {
                let bytes = format!("connection {at};").repeat(2_000 + 400 * at).into_bytes();
                let want = [format!("{} bytes\n", bytes.len()).as_bytes(), &bytes].concat();
                let got = timeout(Duration::from_secs(60), exchange(port, bytes)).await.expect("in time");
                assert!(got == want, "connection {at}: {} of {} bytes", got.len(), want.len());
            });
        }
        while let Some(ended) = all.join_next().await {
            ended.expect("an exchange");
        }
        // And it goes on after.
        assert_eq!(exchange(port, b"again".to_vec()).await, b"5 bytes\nagain");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_nobody_listens_on_is_told() {
    let Some(house) = House::new("a_port", Way::Memory).await else { return };
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = closed.local_addr().expect("an address").port();
    drop(closed);
    let (mut child, local) = forward(&house, port).await;
    assert_eq!(exchange(local, Vec::new()).await, b"");
    let mut complaints = BufReader::new(child.stderr.take().expect("err")).lines();
    let line = timeout(Duration::from_secs(20), complaints.next_line()).await.expect("in time").expect("a line");
    let line = line.expect("a line");
    assert!(line.contains(&format!("error forwarding port {port} to pod p")), "{line}");
}
