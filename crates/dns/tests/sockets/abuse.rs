//! Clients and forgers that mean harm: others are answered beside them, and forged answers are not
//! taken.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlead_kernel::relay::raise_descriptor_limit;
use fairlead_runtime::{Account, MachineLimits};
use fairlead_zone::message::{self, Builder, Edns, Head, Message, Query, Rcode, Reading};
use socket2::{Domain, Socket, Type};

use super::lab::{SERVER, Server, Upstream, ask, in_network, one, read_frame, short, until, write_frame};

/// A client that is not the attacker.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// Answers a hosts entry itself and forwards the rest.
const COREFILE: &str =
    ".:1053 {\n errors\n hosts {\n  192.0.2.1 own.example\n  fallthrough\n }\n forward . 127.0.0.2\n}";

#[test]
fn a_client_with_many_tcp_connections_does_not_keep_others_out() {
    in_network("a_client_with_many_tcp_connections_does_not_keep_others_out", || {
        raise_descriptor_limit().expect("descriptors");
        let _server = Server::ready(COREFILE, None);
        let stop = AtomicBool::new(false);
        let mut held: Vec<TcpStream> = (0..1100).map(|_| connect_from(Ipv4Addr::LOCALHOST)).collect();
        std::thread::scope(|scope| {
            let _stopped = StopOnDrop(&stop);
            // Each connection is used again and again, and opened again when it is closed.
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    for stream in &mut held {
                        if ask_on(stream, "own.example").is_none() {
                            *stream = connect_from(Ipv4Addr::LOCALHOST);
                        }
                    }
                }
            });
            for round in 0..50 {
                let mut stream = connect_from(OTHER);
                let answer = ask_on(&mut stream, "own.example");
                assert_eq!(answer.as_ref().map(short), Some((0, vec![1])), "round {round}");
            }
        });
    });
}

#[test]
fn questions_of_one_client_that_wait_do_not_keep_out_those_of_others() {
    in_network("questions_of_one_client_that_wait_do_not_keep_out_those_of_others", || {
        raise_descriptor_limit().expect("descriptors");
        let _upstream = Upstream::start("127.0.0.2:53", |query, _| {
            query.name().to_string().ends_with("well.example.").then(|| one(query, 2))
        });
        let _server = Server::ready(COREFILE, None);
        let attack = udp_from(Ipv4Addr::LOCALHOST);
        let stop = AtomicBool::new(false);
        let sent = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let _stopped = StopOnDrop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let number = sent.fetch_add(1, Ordering::SeqCst);
                    let _ = attack.send(&question(0, &format!("n{number}.silent.example")));
                    // As fast as the server reads: a full queue of the kernel would lose packets of
                    // all clients alike.
                    if number.is_multiple_of(16) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            });
            until("the attack has filled all there is", || sent.load(Ordering::SeqCst) > 12_000);
            for round in 0..100 {
                let name = format!("n{round}.well.example");
                assert_eq!(resolve(OTHER, &name), Some((0, vec![2])), "{name}");
                assert_eq!(resolve(OTHER, "own.example"), Some((0, vec![1])));
            }
        });
    });
}

#[test]
fn forwarding_leaves_most_descriptors_of_the_process_alone() {
    in_network("forwarding_leaves_most_descriptors_of_the_process_alone", || {
        let _upstream = Upstream::start("127.0.0.2:53", |query, _| {
            query.name().to_string().ends_with("well.example.").then(|| one(query, 2))
        });
        let account = Account::new(MachineLimits { descriptors: 1024, memory: 1 << 30 });
        let _server = Server::start_within(COREFILE, None, account.clone());
        until("it listens", || TcpStream::connect(SERVER).is_ok());
        let stop = AtomicBool::new(false);
        let sent = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let _stopped = StopOnDrop(&stop);
            scope.spawn(|| {
                let attackers: Vec<UdpSocket> = (20..40).map(|last| udp_from([127, 0, 0, last].into())).collect();
                while !stop.load(Ordering::SeqCst) {
                    for attacker in &attackers {
                        let number = sent.fetch_add(1, Ordering::SeqCst);
                        let _ = attacker.send(&question(0, &format!("n{number}.silent.example")));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            until("the attack has filled all there is", || sent.load(Ordering::SeqCst) > 2000);
            for round in 0..30 {
                assert_eq!(resolve(OTHER, &format!("n{round}.well.example")), Some((0, vec![2])), "{round}");
                let sockets = account.report().into_iter().find(|budget| budget.name == "dns upstream sockets");
                let sockets = sockets.expect("a budget");
                assert!(sockets.in_use <= 192 && sockets.limits.total <= 192, "{sockets:?}");
            }
        });
    });
}

#[test]
fn a_forwarded_question_has_a_port_and_a_number_of_its_own() {
    in_network("a_forwarded_question_has_a_port_and_a_number_of_its_own", || {
        let upstream = UdpSocket::bind("127.0.0.2:53").expect("an address");
        let seen: Arc<Mutex<Vec<(u16, u16)>>> = Arc::default();
        let noted = seen.clone();
        std::thread::spawn(move || {
            respond(&upstream, move |query, from, reply| {
                noted.lock().expect("no defect").push((from.port(), query.id()));
                reply(Head::default(), query);
            });
        });
        let _server = Server::ready(COREFILE, None);
        for number in 0..200 {
            ask(&format!("n{number}.example"));
        }
        let seen = seen.lock().expect("no defect");
        let ports: BTreeSet<u16> = seen.iter().map(|(port, _)| *port).collect();
        let numbers: BTreeSet<u16> = seen.iter().map(|(_, number)| *number).collect();
        // 200 of 28,232 usual ports repeat once or twice.
        assert!(ports.len() > 180 && numbers.len() > 180, "{} ports, {} numbers", ports.len(), numbers.len());
    });
}

#[test]
fn questions_that_are_the_same_go_upstream_once() {
    in_network("questions_that_are_the_same_go_upstream_once", || {
        let upstream = UdpSocket::bind("127.0.0.2:53").expect("an address");
        let (asked, let_go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, may_answer) = (asked.clone(), let_go.clone());
        std::thread::spawn(move || {
            respond(&upstream, move |query, _, reply| {
                count.fetch_add(1, Ordering::SeqCst);
                until("answers are wanted", || may_answer.load(Ordering::SeqCst));
                reply(Head::default(), query);
            });
        });
        let _server = Server::ready(COREFILE, None);
        let socket = udp_from(Ipv4Addr::LOCALHOST);
        for id in 0..200 {
            // Capitals make no other question (RFC 4343).
            let name = if id % 2 == 0 { "same.example" } else { "SAME.example" };
            socket.send(&question(id, name)).expect("it is sent");
        }
        // Datagrams of one client are read in their order: the last answer shows that all were.
        socket.send(&question(9999, "own.example")).expect("it is sent");
        let mut ids = BTreeSet::new();
        let mut buffer = [0; 4096];
        while ids.len() < 201 {
            let length = socket.recv(&mut buffer).expect("an answer to each question");
            let id = Message::parse(&buffer[..length]).expect("a message").id;
            ids.insert(id);
            if id == 9999 {
                let_go.store(true, Ordering::SeqCst);
            }
        }
        // A birthday attack (CVE-2020-25686) needs many questions at a time.
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked <= 3, "asked {asked} times");
    });
}

#[test]
fn a_question_that_many_wrong_answers_come_to_is_asked_by_tcp() {
    in_network("a_question_that_many_wrong_answers_come_to_is_asked_by_tcp", || {
        let upstream = UdpSocket::bind("127.0.0.2:53").expect("an address");
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = upstream.recv_from(&mut buffer) {
                count.fetch_add(1, Ordering::SeqCst);
                let Reading::Query(query) = message::read(&buffer[..length]) else { continue };
                // A forger who knows the port guesses numbers; the right one would come last.
                for guess in 1..=200 {
                    let mut forged = reply_of(&query, 66);
                    let id = query.id().wrapping_add(guess % 150);
                    forged[..2].copy_from_slice(&id.to_be_bytes());
                    let _ = upstream.send_to(&forged, from);
                }
            }
        });
        let tcp = std::net::TcpListener::bind("127.0.0.2:53").expect("an address");
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                while let Some(bytes) = read_frame(&mut stream) {
                    let Reading::Query(query) = message::read(&bytes) else { continue };
                    let _ = write_frame(&mut stream, &reply_of(&query, 2));
                }
            }
        });
        let _server = Server::ready(COREFILE, None);
        assert_eq!(short(&ask("one.example")), (0, vec![2]));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_name_error_that_repeats_no_question_is_not_taken() {
    in_network("a_name_error_that_repeats_no_question_is_not_taken", || {
        let upstream = UdpSocket::bind("127.0.0.2:53").expect("an address");
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = upstream.recv_from(&mut buffer) {
                let Reading::Query(query) = message::read(&buffer[..length]) else { continue };
                let refused = query.name().to_string().starts_with("refused");
                let rcode = if refused { Rcode::REFUSED } else { Rcode::NX_DOMAIN };
                let flags = message::QR | rcode.0;
                let bytes = [query.id().to_be_bytes(), flags.to_be_bytes(), [0; 2], [0; 2], [0; 2], [0; 2]].concat();
                let _ = upstream.send_to(&bytes, from);
            }
        });
        let text = ".:1053 {\n forward . 127.0.0.2 {\n  read_timeout 100ms\n  max_fails 0\n }\n}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("one.example")), (2, vec![]), "a name error needs its question");
        assert_eq!(short(&ask("refused.example")), (5, vec![]), "some servers that refuse do not repeat it");
    });
}

#[test]
fn an_answer_by_datagram_is_no_longer_than_its_client_takes() {
    in_network("an_answer_by_datagram_is_no_longer_than_its_client_takes", || {
        let lines: String = (0..200).map(|last| format!("  192.0.2.{last} many.example\n")).collect();
        let _server = Server::ready(&format!(".:1053 {{\n hosts {{\n{lines} }}\n}}"), None);
        for size in [512, 1232, 2048] {
            let socket = udp_from(OTHER);
            let edns = Edns { size, ..Edns::default() };
            let name = "many.example".parse().expect("a name");
            socket.send(&message::query(1, &name, 1, Some(edns))).expect("it is sent");
            let mut buffer = [0; 65_536];
            let length = socket.recv(&mut buffer).expect("an answer");
            let answer = Message::parse(&buffer[..length]).expect("a message");
            assert!(length <= usize::from(size) && answer.is_truncated(), "{length} bytes for {size}");
        }
        let whole = ask_on(&mut connect_from(OTHER), "many.example").expect("an answer");
        assert_eq!(whole.answer.len(), 200);
    });
}

#[test]
fn long_answers_that_are_not_read_cost_bounded_memory() {
    in_network("long_answers_that_are_not_read_cost_bounded_memory", || {
        raise_descriptor_limit().expect("descriptors");
        let lines: String = (0..=255)
            .flat_map(|third| (0..16).map(move |last| (third, last)))
            .map(|(third, last)| format!("  10.0.{third}.{last} long.example\n"))
            .collect();
        let text = format!(".:1053 {{\n hosts {{\n{lines}  192.0.2.1 own.example\n }}\n}}");
        let _server = Server::ready(&text, None);
        let whole = ask_on(&mut connect_from(OTHER), "long.example").expect("an answer");
        assert!(whole.answer.len() > 4000, "{}", whole.answer.len());
        let before = resident_memory();
        // 120 connections that would be sent 64 KiB for each of 100 questions, and read nothing.
        let mut held = Vec::new();
        for _ in 0..120 {
            let mut stream = connect_from(Ipv4Addr::LOCALHOST);
            stream.set_nonblocking(true).expect("a socket");
            for id in 0..100 {
                if write_frame(&mut stream, &question(id, "long.example")).is_none() {
                    break;
                }
            }
            held.push(stream);
        }
        for _ in 0..20 {
            let answer = ask_on(&mut connect_from(OTHER), "own.example");
            assert_eq!(answer.as_ref().map(short), Some((0, vec![1])));
        }
        let growth = resident_memory().saturating_sub(before);
        assert!(growth < 192 << 20, "memory grew by {} MiB", growth >> 20);
    });
}

#[test]
fn few_questions_try_upstreams_that_fail_their_checks() {
    in_network("few_questions_try_upstreams_that_fail_their_checks", || {
        let upstream = Upstream::start("127.0.0.2:53", |_, _| None);
        let text = ".:1053 {\n hosts {\n  192.0.2.1 own.example\n  fallthrough\n }\n forward . 127.0.0.2 {\n  read_timeout 300ms\n  health_check 20ms\n }\n}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("first.example")), (2, vec![]));
        let checks = || upstream.names.lock().expect("no defect").iter().filter(|name| *name == ".").count();
        until("checks have failed", || checks() > 5);
        let socket = udp_from(OTHER);
        for id in 0..200 {
            socket.send(&question(id, &format!("n{id}.example"))).expect("it is sent");
        }
        let mut buffer = [0; 4096];
        for _ in 0..200 {
            let length = socket.recv(&mut buffer).expect("an answer to each question");
            assert_eq!(Message::parse(&buffer[..length]).expect("a message").rcode, Rcode::SERV_FAIL);
        }
        let names = upstream.names.lock().expect("no defect");
        let tried: BTreeSet<&String> = names.iter().filter(|name| name.starts_with('n')).collect();
        assert!(!tried.is_empty() && tried.len() <= 100, "{} questions were tried", tried.len());
    });
}

/// Returns the bytes of memory this process has.
fn resident_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}

/// Ends the attack, even if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn question(id: u16, name: &str) -> Vec<u8> {
    message::query(id, &name.parse().expect("a name"), 1, None)
}

/// Opens a socket for datagrams to the server, from an address.
fn udp_from(address: Ipv4Addr) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).expect("a port");
    socket.connect(SERVER).expect("an address");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    socket
}

/// Opens a connection to the server, from an address.
fn connect_from(address: Ipv4Addr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((address, 0)).into()).expect("a port");
    socket.connect(&SERVER.parse::<SocketAddr>().expect("an address").into()).expect("a connection");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    stream
}

/// Asks on a connection; `None`: it was closed.
fn ask_on(stream: &mut TcpStream, name: &str) -> Option<Message> {
    write_frame(stream, &question(7, name))?;
    Some(Message::parse(&read_frame(stream)?).expect("a message"))
}

/// Asks as a resolver does: by datagram, up to three times.
fn resolve(address: Ipv4Addr, name: &str) -> Option<(u16, Vec<u8>)> {
    let socket = udp_from(address);
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    let mut buffer = [0; 4096];
    for _ in 0..3 {
        socket.send(&question(7, name)).expect("it is sent");
        if let Ok(length) = socket.recv(&mut buffer) {
            return Some(short(&Message::parse(&buffer[..length]).expect("a message")));
        }
    }
    None
}

/// A reply with one address.
fn reply_of(query: &Query<'_>, last: u8) -> Vec<u8> {
    let (head, records) = one(query, last);
    let mut out = Vec::new();
    let mut builder = Builder::new(query, head, message::MAX_MESSAGE, &mut out);
    records.iter().for_each(|record| builder.answer(record));
    builder.finish();
    out
}

/// Hands each question that comes to a socket to `work`, with where it came from and what sends a
/// reply.
fn respond(socket: &UdpSocket, work: impl Fn(&Query<'_>, SocketAddr, &dyn Fn(Head, &Query<'_>))) {
    let mut buffer = [0; 4096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        let Reading::Query(query) = message::read(&buffer[..length]) else { continue };
        work(&query, from, &|head, query| {
            let mut out = Vec::new();
            Builder::new(query, head, message::MAX_MESSAGE, &mut out).finish();
            let _ = socket.send_to(&out, from);
        });
    }
}
