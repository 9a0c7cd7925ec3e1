//! Bodies of every kind, both ways.

use std::io::{Read, Write};
use std::thread;

use crate::lab::{Client, Server, Wish, in_lab, status};

/// Sends back what it gets, in chunks or by its length.
fn echo(chunked: bool) -> Server {
    Server::talking(move |_, body| {
        let mut answer = match chunked {
            true => format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len()),
            false => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()),
        }
        .into_bytes();
        answer.extend_from_slice(body);
        if chunked {
            answer.extend_from_slice(b"\r\n0\r\nX-Sum: 1\r\n\r\n");
        }
        Some(answer)
    })
}

fn pattern(length: usize) -> String {
    (0..length).map(|index| char::from(b'a' + (index / 7 % 26) as u8)).collect()
}

/// Sends to an echo and hears the same back.
fn check(wish: &Wish, length: usize, chunked: bool) {
    let mut client = Client::to(wish.at());
    let body = pattern(length);
    let sender = client.stream.try_clone().unwrap();
    thread::scope(|scope| {
        let sent = &body;
        scope.spawn(move || {
            let mut sender = sender;
            if chunked {
                write!(sender, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
                for piece in sent.as_bytes().chunks(10_000) {
                    write!(sender, "{:x};x=y\r\n", piece.len()).unwrap();
                    sender.write_all(piece).unwrap();
                    sender.write_all(b"\r\n").unwrap();
                }
                sender.write_all(b"0\r\n\r\n").unwrap();
            } else {
                write!(sender, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{sent}", sent.len()).unwrap();
            }
        });
        let (head, heard) = client.hear().unwrap();
        assert_eq!(status(&head), 200);
        assert!(heard == body, "{length} bytes: {} came back", heard.len());
    });
    assert_eq!(status(&client.get("/").unwrap().0), 200, "the connection goes on");
}

#[test]
fn bodies_of_all_sizes_arrive_whole_both_ways() {
    in_lab("bodies_of_all_sizes_arrive_whole_both_ways", || {
        for (index, server) in [echo(false), echo(true)].into_iter().enumerate() {
            let wish = Wish::to(&[server.at]).beside(index);
            let _engine = wish.start();
            for length in [1, 1000, 1025, 16_000, 17_000, 64 << 10, 200_000, 5 << 20] {
                check(&wish, length, false);
                check(&wish, length, true);
            }
        }
    });
}

#[test]
fn trailers_arrive() {
    in_lab("trailers_arrive", || {
        let server = echo(true);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
        let all = client.rest();
        assert!(all.ends_with("\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n"), "{all}");
    });
}

#[test]
fn an_old_client_gets_a_body_without_chunks() {
    in_lab("an_old_client_gets_a_body_without_chunks", || {
        let server = echo(true);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        let body = pattern(40_000);
        client.send(&format!("POST / HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let all = client.rest();
        let (head, heard) = all.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Connection: close") && !head.contains("chunked"), "{head}");
        assert!(heard == body);
    });
}

#[test]
fn answers_without_a_body_have_none() {
    in_lab("answers_without_a_body_have_none", || {
        let server = Server::talking(|head, _| {
            let path = head.split(' ').nth(1).unwrap();
            let answer = match path {
                "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
                "/103" => "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            };
            Some(answer.into())
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\n");
        let heads: Vec<u16> = (0..3).map(|_| status(&client.hear_head().unwrap())).collect();
        assert_eq!(heads, [200, 204, 304]);
        client.send("GET /103 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.hear_head().unwrap(), "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
        assert_eq!(client.hear().unwrap().1, "hi");
    });
}

#[test]
fn a_body_that_ends_with_its_connection_is_passed_on_so() {
    in_lab("a_body_that_ends_with_its_connection_is_passed_on_so", || {
        let server = Server::start(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            let _ = stream.write_all(pattern(300_000).as_bytes());
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let (head, body) = Client::to(wish.at()).get("/").unwrap();
        assert!(head.contains("Connection: close"), "{head}");
        assert!(body == pattern(300_000));
    });
}

#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    in_lab("an_answer_that_breaks_off_does_not_look_whole", || {
        let answers = ["Content-Length: 100\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"];
        for (index, answer) in answers.into_iter().enumerate() {
            let server = Server::start(move |mut stream| {
                let _ = stream.read(&mut [0; 4096]);
                let _ = write!(stream, "HTTP/1.1 200 OK\r\n{answer}");
            });
            let wish = Wish::to(&[server.at]).beside(index);
            let _engine = wish.start();
            assert!(Client::to(wish.at()).get("/").is_none(), "{answer}");
        }
    });
}

#[test]
fn a_client_that_asks_first_is_answered_by_the_backend() {
    in_lab("a_client_that_asks_first_is_answered_by_the_backend", || {
        let server = echo(false);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
        assert_eq!(status(&client.hear_head().unwrap()), 100);
        client.send("abc");
        assert_eq!(client.hear().unwrap().1, "abc");
        assert_eq!(status(&client.get("/").unwrap().0), 200);
    });
}

#[test]
fn an_answer_before_the_request_is_whole_gets_through() {
    in_lab("an_answer_before_the_request_is_whole_gets_through", || {
        let server = Server::start(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\nabc");
        let (head, body) = client.hear().unwrap();
        assert_eq!((status(&head), body.as_str()), (413, "no"));
        assert_eq!(client.rest(), "");
    });
}
