//! Sockets and Corefiles: replies leave from where they were asked, connections carry many questions, files change.

use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use fairlead_zone::message::{self, Message};

use super::lab::{
    SERVER, Server, Upstream, ask, ask_pipelined, ask_within, in_network, one, read_frame, short, until, write_frame,
};

const HOSTS: &str = "hosts {\n  192.0.2.1 one.example\n  2001:db8::1 one.example\n  fallthrough\n }";

#[test]
fn replies_leave_from_the_address_that_was_asked() {
    in_network("replies_leave_from_the_address_that_was_asked", || {
        let text = format!(".:1053 {{\n bind 0.0.0.0 ::\n {HOSTS}\n}}");
        let _server = Server::ready(&text, None);
        for server in ["127.0.0.1:1053", "127.0.0.2:1053", "127.1.2.3:1053", "[::1]:1053"] {
            // A connected socket hears nobody else.
            let answer = ask_within(server, "one.example", 1, Duration::from_secs(5));
            assert_eq!(answer.as_ref().map(short), Some((0, vec![1])), "{server}");
        }
    });
}

#[test]
fn a_connection_carries_many_questions_at_once() {
    in_network("a_connection_carries_many_questions_at_once", || {
        let _slow = Upstream::start("127.0.0.2:53", |query, _| {
            let slow = query.name().to_string().starts_with("slow");
            std::thread::sleep(Duration::from_millis(if slow { 300 } else { 0 }));
            Some(one(query, 2))
        });
        let text = format!(".:1053 {{\n {HOSTS}\n forward . 127.0.0.2 {{\n  prefer_udp\n }}\n}}");
        let _server = Server::ready(&text, None);
        let mut names = vec!["one.example".to_owned(); 151];
        names[0] = "slow.example".to_owned();
        let answers = ask_pipelined(&names);
        let mut ids: Vec<u16> = answers.iter().map(|answer| answer.id).collect();
        assert_ne!(ids[0], 0, "one that takes longer does not stop the others");
        ids.sort_unstable();
        assert_eq!(ids, (0..151).collect::<Vec<u16>>());
    });
}

#[test]
fn a_connection_that_talks_nonsense_ends_and_others_go_on() {
    in_network("a_connection_that_talks_nonsense_ends_and_others_go_on", || {
        let text = format!(".:1053 {{\n {HOSTS}\n}}");
        let _server = Server::ready(&text, None);
        let mut bad = TcpStream::connect(SERVER).expect("a connection");
        bad.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        write_frame(&mut bad, &[1, 2, 3]).expect("it is taken");
        assert_eq!(read_frame(&mut bad), None);
        let _idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(SERVER).expect("a connection")).collect();
        assert_eq!(short(&ask_pipelined(&["one.example".to_owned()])[0]), (0, vec![1]));
    });
}

#[test]
fn a_corefile_that_changes_is_taken_over_and_a_bad_one_is_not() {
    in_network("a_corefile_that_changes_is_taken_over_and_a_bad_one_is_not", || {
        let text = |last: u8, more: &str| {
            format!(".:1053 {{\n reload 2s 1s\n hosts {{\n  192.0.2.{last} one.example\n }}\n {more}\n}}\n")
        };
        let server = Server::ready(&text(1, ""), None);
        assert_eq!(short(&ask("one.example")), (0, vec![1]));
        server.change(&text(2, "nonsense"));
        std::thread::sleep(Duration::from_millis(3500));
        assert_eq!(short(&ask("one.example")), (0, vec![1]), "the one before counts");
        server.change(&(text(3, "") + ".:1054 {\n hosts {\n  192.0.2.4 one.example\n }\n}\n"));
        until("it is taken over", || short(&ask("one.example")) == (0, vec![3]));
        let other = ask_within("127.0.0.1:1054", "one.example", 1, Duration::from_secs(5)).expect("an answer");
        assert_eq!(short(&other), (0, vec![4]));
        server.change(&text(5, ""));
        until("the port is closed", || TcpStream::connect("127.0.0.1:1054").is_err());
    });
}

#[test]
fn questions_are_answered_while_leaving() {
    in_network("questions_are_answered_while_leaving", || {
        let text = format!(".:1053 {{\n health 127.0.0.1:8080 {{\n  lameduck 1s\n }}\n {HOSTS}\n}}");
        let server = Server::ready(&text, None);
        let stopping = std::thread::scope(|scope| {
            let stopping = scope.spawn(move || server.stop());
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(short(&ask("one.example")), (0, vec![1]));
            stopping.join().expect("no defect")
        });
        stopping.expect("a good end");
        assert!(TcpStream::connect(SERVER).is_err());
    });
}

#[test]
fn rewrites_templates_and_the_log_work_together() {
    in_network("rewrites_templates_and_the_log_work_together", || {
        let text = ".:1053 {
  log
  rewrite name suffix .alias.example .example answer auto
  template IN A ip.example {
    match ^a-(?P<last>[0-9]+)[.]ip[.]example[.]$
    answer \"{{ .Name }} 60 IN A 192.0.2.{{ .Group.last }}\"
    fallthrough
  }
  hosts {
    192.0.2.1 one.example
  }
}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("a-9.ip.example")), (0, vec![9]));
        let answer = ask("one.alias.example");
        assert_eq!(short(&answer), (0, vec![1]));
        assert_eq!(answer.answer[0].name.to_string(), "one.alias.example.");
        assert_eq!(short(&ask("none.example")).0, 2);
    });
}

#[test]
fn what_is_no_question_gets_no_answer_and_a_zone_of_nobody_is_refused() {
    in_network("what_is_no_question_gets_no_answer_and_a_zone_of_nobody_is_refused", || {
        let _server = Server::ready("example:1053 {\n hosts {\n  192.0.2.1 one.example\n }\n}", None);
        assert_eq!(short(&ask("one.example")), (0, vec![1]));
        assert_eq!(short(&ask("one.test")), (5, vec![]));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
        let mut reply = message::query(1, &"one.example".parse().expect("a name"), 1, None);
        reply[2] |= 0x80;
        for bytes in [&[][..], &[0; 11], &reply] {
            socket.send_to(bytes, SERVER).expect("it is sent");
        }
        let mut buffer = [0; 512];
        assert!(socket.recv(&mut buffer).is_err());
        let length = {
            socket.send_to(&[0, 9, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0], SERVER).expect("it is sent");
            socket.recv(&mut buffer).expect("an answer")
        };
        assert_eq!(Message::parse(&buffer[..length]).expect("a message").rcode.0, 1, "two questions are malformed");
    });
}
