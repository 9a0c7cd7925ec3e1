//! Where streams of HTTP/2 end: bodies that become too long, connections that are old, listeners that stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::spec::Speaks;
use h2::client::SendRequest;

use crate::lab::{Client, Server, Wish, in_lab, status, until};
use crate::streams::{Grpc, Heard, ask, block_on, connect, eventually, get, post};

/// Asks with a body that has no length, and comes in pieces.
async fn stream(send: &SendRequest<Bytes>, pieces: usize, each: usize) -> Result<Heard, h2::Error> {
    let mut send = send.clone().ready().await?;
    let (response, mut to) = send.send_request(post("/"), false)?;
    for piece in 0..pieces {
        // Nobody may want the rest.
        let _ = to.send_data(Bytes::from(vec![b'x'; each]), piece + 1 == pieces);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (parts, mut from) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = from.data().await {
        body.extend_from_slice(&data?);
    }
    Ok(Heard { status: parts.status.as_u16(), headers: parts.headers, body, trailers: None })
}

#[test]
fn a_body_that_comes_in_pieces_may_not_become_longer_than_the_engine_allows() {
    in_lab("a_body_that_comes_in_pieces_may_not_become_longer_than_the_engine_allows", || {
        let (eager, patient) = (Grpc::start("a"), Server::named("b"));
        let engine = Engine::start(Options { threads: 1, body: Some(1000), ..Options::default() }).unwrap();
        // One that answers at once and hears meanwhile, and one that hears all first.
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[eager.at]) };
        let other = Wish::to(&[patient.at]).beside(1);
        wish.serve(&engine);
        other.serve(&engine);
        block_on(async {
            let send = connect(wish.at()).await;
            assert_eq!(stream(&send, 10, 100).await.unwrap().body.len(), 1002);
            let long = tokio::time::timeout(Duration::from_secs(10), stream(&send, 11, 100)).await;
            // It is answered with a refusal, or with the beginning of an answer that is broken off.
            assert!(long.unwrap().map_or(true, |heard| heard.status == 413));
            assert_eq!(stream(&send, 10, 100).await.unwrap().status, 200, "the connection goes on");
            let send = connect(other.at()).await;
            assert_eq!(stream(&send, 10, 100).await.unwrap().status, 200);
            assert_eq!(stream(&send, 11, 100).await.unwrap().status, 413);
        });
        let piece = "64\r\n".to_owned() + &"x".repeat(100) + "\r\n";
        for (count, whole) in [(10, true), (11, false)] {
            let mut client = Client::to(wish.at());
            client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            (0..count).for_each(|_| drop(std::io::Write::write_all(&mut client.stream, piece.as_bytes())));
            let _ = std::io::Write::write_all(&mut client.stream, b"0\r\n\r\n");
            let heard = client.hear();
            let ended = heard.is_some_and(|(head, body)| status(&head) == 200 && body.len() == 1002);
            assert_eq!(ended, whole, "{count} pieces");
        }
    });
}

/// Whether a connection takes no more requests.
async fn is_over(send: &SendRequest<Bytes>) -> bool {
    send.clone().ready().await.is_err()
}

#[test]
fn a_connection_of_http_2_ends_when_it_is_old_and_finishes_what_it_has_begun() {
    in_lab("a_connection_of_http_2_ends_when_it_is_old_and_finishes_what_it_has_begun", || {
        let released = Arc::new(AtomicBool::new(false));
        let may_answer = released.clone();
        let server = Server::talking(move |head, _| {
            if head.contains("/slow") {
                until("it may answer", || may_answer.load(Ordering::SeqCst));
            }
            Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec())
        });
        let wish = Wish { age: Some(Duration::from_secs(2)), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            assert_eq!(ask(&send, get("/"), None).await.unwrap().body, b"hi");
            let slow = tokio::spawn({
                let send = send.clone();
                async move { ask(&send, get("/slow"), None).await }
            });
            // It ends although nobody asks for anything, but not what is under way.
            let over = async {
                while !is_over(&send).await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), over).await.unwrap();
            assert!(!slow.is_finished());
            released.store(true, Ordering::SeqCst);
            assert_eq!(slow.await.unwrap().unwrap().body, b"hi");
            // The next one is as young as ever.
            let send = connect(wish.at()).await;
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 200);
        });
    });
}

#[test]
fn a_listener_that_stops_finishes_its_streams_and_takes_no_more() {
    in_lab("a_listener_that_stops_finishes_its_streams_and_takes_no_more", || {
        let server = Server::talking(|_, _| {
            thread::sleep(Duration::from_millis(800));
            Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec())
        });
        let wish = Wish::to(&[server.at]);
        let engine = wish.start();
        block_on(async {
            let (send, idle) = (connect(wish.at()).await, connect(wish.at()).await);
            let begun = tokio::spawn({
                let send = send.clone();
                async move { ask(&send, get("/"), None).await }
            });
            eventually(|| server.count() == 1).await;
            engine.stop(&wish.key());
            let over = async {
                while !is_over(&idle).await || !is_over(&send).await {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), over).await.unwrap();
            assert_eq!(begun.await.unwrap().unwrap().body, b"hi");
        });
    });
}
