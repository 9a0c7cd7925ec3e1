//! Requests one by one: to whom they go, what they say, and when the connection ends.

use std::time::Duration;

use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::log::{Destination, Logs, Settings, Target};
use fairlead_balancer::spec::ProxyVersion;

use crate::lab::{Client, Server, Wish, in_lab, status, until};

#[test]
fn requests_of_one_connection_go_to_backends_in_turn_on_connections_that_are_kept() {
    in_lab("requests_of_one_connection_go_to_backends_in_turn_on_connections_that_are_kept", || {
        let (one, two) = (Server::named("one"), Server::named("two"));
        let wish = Wish::to(&[one.at, two.at]);
        let _engine = wish.start();
        let mut names = Vec::new();
        for _ in 0..3 {
            let mut client = Client::to(wish.at());
            names.extend((0..10).map(|_| client.get("/").unwrap().1));
        }
        let ones = names.iter().filter(|name| *name == "one").count();
        assert_eq!((names.len(), ones), (30, 15), "{names:?}");
        assert_eq!((one.count(), two.count()), (1, 1));
    });
}

#[test]
fn a_backend_learns_of_the_client_and_nothing_of_its_connection() {
    in_lab("a_backend_learns_of_the_client_and_nothing_of_its_connection", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send(
            "GET /a HTTP/1.1\r\nHost: web.example\r\nX-Forwarded-For: 10.0.0.1\r\nConnection: x-secret\r\nX-Secret: 1\r\n\r\n",
        );
        let (head, _) = client.hear().unwrap();
        assert_eq!(head, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
        assert_eq!(
            server.heads(),
            ["GET /a HTTP/1.1\r\nHost: web.example\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\
              X-Forwarded-Port: 7000\r\nForwarded: for=127.0.0.1;proto=http\r\n\r\n"]
        );
    });
}

#[test]
fn what_a_trusted_front_says_of_its_client_is_kept() {
    in_lab("what_a_trusted_front_says_of_its_client_is_kept", || {
        let server = Server::named("one");
        let wish = Wish { trusted: vec!["127.0.0.0/8".parse().unwrap()], ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\r\n");
        client.hear().unwrap();
        let head = &server.heads()[0];
        assert!(head.contains("\r\nX-Forwarded-For: 10.0.0.1, 127.0.0.1\r\n"), "{head}");
        assert!(head.contains("\r\nX-Forwarded-Proto: https\r\n"), "{head}");
    });
}

#[test]
fn requests_that_come_at_once_are_answered_in_their_order() {
    in_lab("requests_that_come_at_once_are_answered_in_their_order", || {
        let echo = |head: &str, body: &[u8]| {
            let said = format!("{} {}", head.split(' ').nth(1).unwrap(), String::from_utf8_lossy(body));
            Some(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len()).into_bytes())
        };
        let servers = [Server::talking(echo), Server::talking(echo)];
        let wish = Wish::to(&servers.each_ref().map(|server| server.at));
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send(
            "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
             POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n\
             GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        );
        let said: Vec<String> = (0..4).map(|_| client.hear().unwrap().1).collect();
        assert_eq!(said, ["/1 ", "/2 abc", "/3 de", "/4 "]);
        assert_eq!(client.rest(), "");
    });
}

#[test]
fn a_connection_ends_when_client_or_age_say_so() {
    in_lab("a_connection_ends_when_client_or_age_say_so", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let engine = wish.start();
        let ends = |request: &str, closes: bool| {
            let mut client = Client::to(wish.at());
            client.send(request);
            let (head, _) = client.hear().unwrap();
            assert_eq!(head.contains("Connection: close"), closes, "{request} {head}");
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.hear().is_none(), closes, "{request}");
        };
        ends("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
        ends("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true);
        ends("GET / HTTP/1.0\r\n\r\n", true);
        ends("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false);
        Wish { age: Some(Duration::ZERO), ..wish.clone() }.serve(&engine);
        ends("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true);
    });
}

#[test]
fn what_a_backend_says_about_connections_is_between_it_and_us() {
    in_lab("what_a_backend_says_about_connections_is_between_it_and_us", || {
        let server = Server::answering(
            "HTTP/1.1 200 OK\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nhi",
        );
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        for _ in 0..2 {
            let (head, body) = client.get("/").unwrap();
            assert_eq!((head.as_str(), body.as_str()), ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "hi"));
        }
        assert_eq!(server.count(), 2);
    });
}

#[test]
fn an_idle_connection_is_closed_and_holds_nobody_up() {
    in_lab("an_idle_connection_is_closed_and_holds_nobody_up", || {
        let server = Server::named("one");
        let wish = Wish { idle: Duration::from_millis(300), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        assert_eq!(client.get("/").unwrap().1, "one");
        assert_eq!(client.rest(), "");
        let mut client = Client::to(wish.at());
        assert_eq!(client.rest(), "");
    });
}

#[test]
fn a_backend_that_does_not_answer_costs_its_client_a_504() {
    in_lab("a_backend_that_does_not_answer_costs_its_client_a_504", || {
        let server = Server::start(|_stream| std::thread::sleep(Duration::from_secs(10)));
        let wish = Wish { idle: Duration::from_millis(300), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let (head, body) = Client::to(wish.at()).get("/").unwrap();
        assert_eq!(status(&head), 504);
        assert_eq!(body, "504 Gateway Timeout: the backend did not answer in time\n");
    });
}

#[test]
fn a_backend_that_wants_a_proxy_header_gets_one_on_a_connection_of_its_own() {
    in_lab("a_backend_that_wants_a_proxy_header_gets_one_on_a_connection_of_its_own", || {
        let server = Server::named("one");
        let wish = Wish { send_proxy: Some(ProxyVersion::V1), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        for _ in 0..2 {
            let mut client = Client::to(wish.at());
            let from = client.stream.local_addr().unwrap();
            assert_eq!(client.get("/").unwrap().1, "one");
            let head = server.heads().pop().unwrap();
            let line = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} 7000\r\nGET / HTTP/1.1\r\n", from.port());
            assert!(head.starts_with(&line), "{head}");
        }
        assert_eq!(server.count(), 2);
    });
}

#[test]
fn a_body_may_not_be_longer_than_the_engine_allows() {
    in_lab("a_body_may_not_be_longer_than_the_engine_allows", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let engine = Engine::start(Options { threads: 1, body: Some(10), ..Options::default() }).unwrap();
        wish.serve(&engine);
        let cases = [
            ("Content-Length: 10\r\n\r\n0123456789", 200),
            ("Content-Length: 11\r\n\r\n0123456789a", 413),
            ("Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", 200),
            ("Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n", 413),
        ];
        for (rest, expected) in cases {
            let mut client = Client::to(wish.at());
            client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\n{rest}"));
            assert_eq!(status(&client.hear().unwrap().0), expected, "{rest}");
        }
    });
}

#[test]
fn each_request_has_a_line_in_the_access_log() {
    in_lab("each_request_has_a_line_in_the_access_log", || {
        let dir = tempfile::tempdir().unwrap();
        let spool = dir.path().join("spool");
        let settings = Settings { account: "0".to_owned(), region: "here".to_owned(), spool, spool_limit: 1 << 20 };
        let logs = Logs::start(settings).unwrap();
        let target = dir.path().join("bucket");
        let log = logs.open(&Destination {
            name: "a0123".to_owned(),
            address: [127, 0, 0, 1].into(),
            target: Target::Directory(target.clone()),
            prefix: String::new(),
            interval: Duration::from_secs(300),
        });
        let server = Server::named("one");
        let wish = Wish { log: Some(log), ..Wish::to(&[server.at]) };
        let engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("POST /a?b HTTP/1.1\r\nHost: web.example\r\nUser-Agent: c/1\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.hear().unwrap().1, "one");
        client.send("GET / HTTP/1.1\r\n\r\n");
        assert_eq!(status(&client.hear().unwrap().0), 400);
        wish.set(&[]);
        assert_eq!(status(&Client::to(wish.at()).get("/none").unwrap().0), 503);
        until("three lines are written", || logs.written() == 3);
        drop(engine);
        drop(logs);
        let text = all_files(dir.path());
        let expected = [
            format!(" {} ", server.at),
            " 200 200 5 3 \"POST http://web.example:7000/a?b HTTP/1.1\" \"c/1\" - -".to_owned(),
            " 400 - 0 ".to_owned(),
            " - -1 -1 -1 503 - 0 ".to_owned(),
            "\"GET http://web.example:7000/none HTTP/1.1\"".to_owned(),
        ];
        for part in expected {
            assert!(text.contains(&part), "{part} in {text}");
        }
    });
}

fn all_files(dir: &std::path::Path) -> String {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { all_files(&path) } else { std::fs::read_to_string(path).unwrap() }).collect()
}
