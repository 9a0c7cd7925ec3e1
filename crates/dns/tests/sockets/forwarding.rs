//! Names that are not ours: upstreams that are dead or slow, answers that do not fit, answers that are kept.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use fairlead_zone::message::{Head, Rcode, Record};

use super::lab::{SERVER, Server, Upstream, ask, ask_within, in_network, one, short, until};

#[test]
fn a_dead_upstream_costs_no_answer_and_is_left_alone_after_a_while() {
    in_network("a_dead_upstream_costs_no_answer_and_is_left_alone_after_a_while", || {
        let dead = Upstream::start("127.0.0.2:53", |_, _| None);
        let well = Upstream::start("127.0.0.3:53", |query, _| Some(one(query, 3)));
        let text = ".:1053 {
  forward . 127.0.0.2 127.0.0.3 127.0.0.4 {
    policy sequential
    read_timeout 200ms
    health_check 50ms
  }
}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("one.example")), (0, vec![3]));
        // Checks by `. NS` go on; questions do not.
        until("checks have failed", || {
            dead.names.lock().expect("no test failed").iter().filter(|name| *name == ".").count() > 3
        });
        let before = Instant::now();
        assert_eq!(short(&ask("two.example")), (0, vec![3]));
        assert!(before.elapsed() < Duration::from_millis(150), "{:?}", before.elapsed());
        let asked = dead.names.lock().expect("no test failed").iter().filter(|name| name.ends_with("example.")).count();
        assert_eq!((asked, well.count().0), (1, 2));
    });
}

#[test]
fn an_upstream_that_comes_back_is_asked_again() {
    in_network("an_upstream_that_comes_back_is_asked_again", || {
        let text = ".:1053 {
  forward . 127.0.0.2 {
    read_timeout 100ms
    health_check 20ms
    max_fails 1
  }
}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("one.example")), (2, vec![]), "nobody is there");
        let _back = Upstream::start("127.0.0.2:53", |query, _| Some(one(query, 2)));
        until("it answers", || short(&ask("one.example")) == (0, vec![2]));
    });
}

#[test]
fn without_any_upstream_the_answer_is_a_failure_in_time() {
    in_network("without_any_upstream_the_answer_is_a_failure_in_time", || {
        let _silent = Upstream::start("127.0.0.2:53", |_, _| None);
        let _server = Server::ready(".:1053 {\n errors\n forward . 127.0.0.2\n}", None);
        let before = Instant::now();
        assert_eq!(short(&ask("one.example")), (2, vec![]));
        assert!(before.elapsed() < Duration::from_secs(6), "{:?}", before.elapsed());
    });
}

#[test]
fn an_answer_that_does_not_fit_is_fetched_by_tcp_and_cut_for_the_client() {
    in_network("an_answer_that_does_not_fit_is_fetched_by_tcp_and_cut_for_the_client", || {
        let many = |query: &fairlead_zone::message::Query<'_>, tcp: bool| {
            let head = Head { truncated: !tcp, ..Head::default() };
            let count: u8 = if tcp { 200 } else { 1 };
            let record = |last| Record::address(query.name(), 60, IpAddr::from([192, 0, 2, last]));
            Some((head, (0..count).map(record).collect()))
        };
        let upstream = Upstream::start("127.0.0.2:53", many);
        let _server = Server::ready(".:1053 {\n forward . 127.0.0.2\n cache 30\n}", None);
        let answer = ask("many.example");
        assert!(answer.is_truncated() && answer.answer.len() > 10, "{}", answer.answer.len());
        assert_eq!(upstream.count(), (1, 1));
        // The whole of it is in the cache now.
        let whole = super::lab::ask_pipelined(&["many.example".to_owned()]);
        assert_eq!((whole[0].answer.len(), upstream.count()), (200, (1, 1)));
    });
}

#[test]
fn answers_are_kept_for_as_long_as_the_cache_says() {
    in_network("answers_are_kept_for_as_long_as_the_cache_says", || {
        let upstream = Upstream::start("127.0.0.2:53", |query, _| {
            let missing = query.name().to_string().starts_with("missing");
            let head = Head { rcode: Rcode::NX_DOMAIN, ..Head::default() };
            Some(if missing { (head, Vec::new()) } else { one(query, 2) })
        });
        let text =
            ".:1053 {\n forward . 127.0.0.2\n cache 2 {\n  success 2000 2 1\n  disable success other.example\n }\n}";
        let _server = Server::ready(text, None);
        let first = ask("One.Example");
        assert_eq!((short(&first), first.answer[0].ttl), ((0, vec![2]), 2), "times to live are cut");
        assert_eq!(short(&ask("oNE.eXAMPLE")), (0, vec![2]));
        assert_eq!(upstream.count().0, 1, "case does not count");
        ask("other.example");
        ask("other.example");
        assert_eq!(upstream.count().0, 3, "a zone may be left out");
        ask("missing.example");
        ask("missing.example");
        assert_eq!(upstream.count().0, 5, "a name error without the start of its zone says not for how long");
        std::thread::sleep(Duration::from_millis(2100));
        ask("one.example");
        assert_eq!(upstream.count().0, 6, "what has expired is fetched again");
    });
}

#[test]
fn expired_answers_are_given_when_upstreams_are_away() {
    in_network("expired_answers_are_given_when_upstreams_are_away", || {
        let away = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = away.clone();
        let _upstream = Upstream::start("127.0.0.2:53", move |query, _| {
            (!seen.load(std::sync::atomic::Ordering::SeqCst)).then(|| one(query, 2))
        });
        let text = ".:1053 {\n forward . 127.0.0.2 {\n  read_timeout 100ms\n }\n cache {\n  success 2000 1 1\n  serve_stale 1h verify\n }\n}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("one.example")), (0, vec![2]));
        away.store(true, std::sync::atomic::Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1100));
        let stale = ask("one.example");
        assert_eq!((short(&stale), stale.answer[0].ttl), ((0, vec![2]), 0));
        assert_eq!(short(&ask("two.example")), (2, vec![]));
    });
}

#[test]
fn stub_domains_go_to_their_own_servers() {
    in_network("stub_domains_go_to_their_own_servers", || {
        let _two = Upstream::start("127.0.0.2:53", |query, _| Some(one(query, 2)));
        let _three = Upstream::start("127.0.0.3:53", |query, _| Some(one(query, 3)));
        let text = ".:1053 {\n forward . 127.0.0.2 {\n  except nobody.example\n }\n}\ncorp.example:1053 {\n forward . 127.0.0.3\n}\n";
        let _server = Server::ready(text, None);
        for (name, expected) in [
            ("a.example", (0, vec![2])),
            ("corp.example", (0, vec![3])),
            ("a.b.corp.example", (0, vec![3])),
            ("xcorp.example", (0, vec![2])),
            ("x.nobody.example", (2, vec![])),
        ] {
            assert_eq!(short(&ask(name)), expected, "{name}");
        }
    });
}

#[test]
fn more_questions_at_once_than_allowed_are_refused() {
    in_network("more_questions_at_once_than_allowed_are_refused", || {
        let _slow = Upstream::start("127.0.0.2:53", |query, _| {
            std::thread::sleep(Duration::from_millis(500));
            Some(one(query, 2))
        });
        let _server = Server::ready(".:1053 {\n forward . 127.0.0.2 {\n  max_concurrent 1\n }\n}", None);
        let first = std::thread::scope(|scope| {
            let first = scope.spawn(|| ask_within(SERVER, "one.example", 1, Duration::from_secs(5)));
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(short(&ask("two.example")), (5, vec![]));
            first.join().expect("no defect")
        });
        assert_eq!(short(&first.expect("an answer")), (0, vec![2]));
    });
}

#[test]
fn a_question_that_comes_back_ends_the_server() {
    in_network("a_question_that_comes_back_ends_the_server", || {
        let mut server = Server::start(".:1053 {\n loop\n forward . 127.0.0.1:1053\n}", None);
        let error = server.end().expect_err("a loop").to_string();
        assert!(error.contains("loop") && error.contains("127.0.0.1:1053"), "{error}");
    });
}
