//! Clients and backends that try to use up memory, connections and descriptors, with well-behaved
//! clients beside them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::spec::Speaks;
use fairlead_runtime::budget::{Account, BudgetReport};
use fairlead_runtime::machine::MachineLimits;
use socket2::{Domain, Socket, Type};

use crate::client2::{ask, block_on, connect, get};
use crate::lab::{self, Client, Server, Wish, read_head, status, until};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Runs a test while no other runs: they measure what the process uses.
fn in_lab(test: &str, work: impl FnOnce() + Send) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    lab::in_lab(test, work);
}

/// A client of HTTP/2 that writes frames and reads nothing unless told to.
struct Attacker(TcpStream);

impl Attacker {
    /// Connects from an address, with this window for each stream.
    fn from(source: [u8; 4], to: SocketAddr, window: u32) -> Attacker {
        let mut attacker = Attacker(connect_from(source, to).unwrap());
        let mut settings = vec![0, 4];
        settings.extend_from_slice(&window.to_be_bytes());
        attacker.0.write_all(PREFACE).unwrap();
        attacker.frame(SETTINGS, 0, 0, &settings);
        attacker.frame(WINDOW_UPDATE, 0, 0, &((1u32 << 31) - 1 - 65_535).to_be_bytes());
        attacker
    }

    /// Writes a frame. A connection that was cut takes none, which is what is wanted.
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        let _ = self.0.write_all(&frame);
    }

    /// Asks for `/` with these fields, encoded.
    fn get(&mut self, stream: u32, fields: &[u8]) {
        let mut block = vec![0x82, 0x86, 0x84, 0x41, 1, b'a'];
        block.extend_from_slice(fields);
        let mut parts = block.chunks(16 << 10).peekable();
        let mut kind = HEADERS;
        while let Some(part) = parts.next() {
            let end = if parts.peek().is_none() { END_HEADERS } else { 0 };
            let flags = if kind == HEADERS { END_STREAM | end } else { end };
            self.frame(kind, flags, stream, part);
            kind = CONTINUATION;
        }
    }
}

fn connect_from(source: [u8; 4], to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::from(source), 0)).into())?;
    // What is not read fills little of the kernel.
    socket.set_recv_buffer_size(4096)?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// An engine on a machine with so many descriptors, that may hold so many bytes, and its account.
fn engine(descriptors: u64, buffers: u64) -> (Engine, Account) {
    fairlead_kernel::relay::raise_descriptor_limit().unwrap();
    let account = Account::new(MachineLimits { descriptors, memory: 8 << 30 });
    let connections = usize::try_from(descriptors / 6).unwrap();
    let options = Options { threads: 1, connections, buffers, account: account.clone(), ..Options::default() };
    (Engine::start(options).unwrap(), account)
}

fn report(account: &Account, name: &str) -> BudgetReport {
    account.report().into_iter().find(|report| report.name == name).unwrap()
}

/// Asks so many times from this address, over kept and new connections and in streams of HTTP/2:
/// all must be answered.
fn polite(source: [u8; 4], to: SocketAddr, count: usize) {
    let mut kept = None;
    for index in 0..count {
        let mut client = kept.take().unwrap_or_else(|| Client::of(connect_from(source, to).unwrap()));
        let (head, _) = client.get("/").unwrap_or_else(|| panic!("request {index} was not answered"));
        assert_eq!(status(&head), 200, "request {index} from {source:?}: {head}");
        kept = (index % 4 != 3).then_some(client);
    }
    block_on(async {
        let send = connect(to).await;
        for index in 0..count / 4 {
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 200, "stream {index}");
        }
    });
}

/// Resident memory of this process in bytes: balancer, backends and clients together.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Answers `length` bytes to requests for the host `a`, and a few to others.
fn large_for_attackers(length: usize) -> Server {
    large_and_open(length).0
}

/// Like [`large_for_attackers`], with the number of open connections.
fn large_and_open(length: usize) -> (Server, Arc<AtomicUsize>) {
    let open = Arc::new(AtomicUsize::new(0));
    let counted = open.clone();
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length));
    let server = Server::start(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut rest = Vec::new();
        while let Some(head) = read_head(&mut stream, &mut rest) {
            let answer = match head.contains("Host: a\r\n") {
                true => &large,
                false => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
        counted.fetch_sub(1, Ordering::SeqCst);
    });
    (server, open)
}

#[test]
fn large_windows_of_clients_that_do_not_read_hold_little_memory() {
    in_lab("large_windows_of_clients_that_do_not_read_hold_little_memory", || {
        let server = large_for_attackers(1 << 20);
        let wish = Wish::to(&[server.at]);
        let (engine, account) = engine(20_000, 24 << 20);
        wish.serve(&engine);
        polite([127, 0, 0, 1], wish.at(), 4);
        let before = resident();
        let attackers: Vec<Attacker> = (0..20)
            .map(|_| {
                let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), (1 << 31) - 1);
                (0..60).for_each(|index| attacker.get(2 * index + 1, &[]));
                attacker
            })
            .collect();
        polite([127, 0, 0, 1], wish.at(), 100);
        polite([127, 0, 0, 7], wish.at(), 20);
        let grown = resident().saturating_sub(before);
        let buffers = report(&account, "balancer buffers");
        assert!(buffers.in_use <= buffers.limits.total, "{buffers:?}");
        // 1,200 streams of 256 KiB would be 300 MiB.
        assert!(grown < 160 << 20, "{} MiB more", grown >> 20);
        drop(attackers);
        until("everything is given back", || report(&account, "balancer buffers").in_use < 2 << 20);
    });
}

/// Returns fields in HPACK: one name with a value of so many bytes, put into the table, and then
/// named by its index.
fn bomb(count: usize, length: usize) -> Vec<u8> {
    let mut fields = vec![0x40, 1, b'x'];
    // An integer with a prefix of 7 bits (RFC 7541, 5.1).
    if length < 127 {
        fields.push(length as u8);
    } else {
        fields.extend_from_slice(&[0x7f, ((length - 127) % 128 + 128) as u8, ((length - 127) / 128) as u8]);
    }
    fields.resize(fields.len() + length, b'v');
    fields.resize(fields.len() + count - 1, 0xbe);
    fields
}

#[test]
fn requests_of_many_small_fields_hold_little_memory() {
    in_lab("requests_of_many_small_fields_hold_little_memory", || {
        let server = large_for_attackers(200 << 10);
        let wish = Wish::to(&[server.at]);
        let (engine, account) = engine(20_000, 24 << 20);
        wish.serve(&engine);
        polite([127, 0, 0, 1], wish.at(), 4);
        let before = resident();
        let cases = [(1900, 0), (120, 60), (900, 0), (3, 3900), (1900, 1), (490, 0)];
        let attackers: Vec<Attacker> = (0..48)
            .map(|index| {
                let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), 0);
                let (count, length) = cases[index % cases.len()];
                let mut fields = bomb(count, length);
                for stream in 0..120 {
                    attacker.get(2 * stream + 1, &fields);
                    // The entry is in the table now.
                    fields = vec![0xbe; count];
                }
                attacker
            })
            .collect();
        polite([127, 0, 0, 1], wish.at(), 100);
        polite([127, 0, 0, 7], wish.at(), 20);
        let grown = resident().saturating_sub(before);
        let buffers = report(&account, "balancer buffers");
        assert!(buffers.in_use <= buffers.limits.total, "{buffers:?}");
        assert!(grown < 160 << 20, "{} MiB more", grown >> 20);
        drop(attackers);
        until("everything is given back", || report(&account, "balancer buffers").in_use < 2 << 20);
    });
}

#[test]
fn a_request_of_http_2_with_too_many_or_too_long_fields_is_answered_431() {
    in_lab("a_request_of_http_2_with_too_many_or_too_long_fields_is_answered_431", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            for (count, length, expected) in [(100, 1, 200), (129, 1, 431), (400, 1, 431), (1, 15_000, 200)] {
                let mut request = get("/");
                for index in 0..count {
                    let name: http::HeaderName = format!("x-{index}").parse().unwrap();
                    request.headers_mut().append(name, "v".repeat(length).parse().unwrap());
                }
                let heard = ask(&send, request, None).await.unwrap();
                assert_eq!(heard.status, expected, "{count} fields of {length}");
            }
            let mut request = get("/");
            request.headers_mut().append("x", "v".repeat(20_000).parse().unwrap());
            let heard = ask(&send, request, None).await;
            assert!(heard.is_err() || heard.unwrap().status == 431);
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 200);
        });
    });
}

#[test]
fn streams_without_a_window_leave_backend_connections_to_others() {
    in_lab("streams_without_a_window_leave_backend_connections_to_others", || {
        for (index, length) in [100, 500 << 10].into_iter().enumerate() {
            let (server, open) = large_and_open(length);
            let wish = Wish::to(&[server.at]).beside(index);
            // 100 connections of clients, and 103 to backends, half of them of one client.
            let (engine, account) = engine(600, 24 << 20);
            wish.serve(&engine);
            let attackers: Vec<Attacker> = (0..20)
                .map(|_| {
                    let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), 0);
                    (0..60).for_each(|index| attacker.get(2 * index + 1, &[]));
                    attacker
                })
                .collect();
            polite([127, 0, 0, 1], wish.at(), 60);
            let backends = report(&account, "balancer backend connections");
            assert!(backends.in_use <= backends.limits.total, "{backends:?}");
            let most = 103;
            assert_eq!(backends.limits.total, most);
            until("closed ones are seen to be", || open.load(Ordering::SeqCst) as u64 <= most);
            drop(attackers);
        }
    });
}

#[test]
fn a_short_answer_gives_its_backend_back_before_its_client_takes_it() {
    in_lab("a_short_answer_gives_its_backend_back_before_its_client_takes_it", || {
        let server = large_for_attackers(50 << 10);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), 0);
        for index in 0..20 {
            attacker.get(2 * index + 1, &[]);
            // One after the other, so that each finds the connection of the one before.
            thread::sleep(Duration::from_millis(20));
        }
        polite([127, 0, 0, 1], wish.at(), 8);
        assert!(server.count() <= 3, "{} connections", server.count());
    });
}

#[test]
fn interim_answers_without_end_are_a_502() {
    in_lab("interim_answers_without_end_are_a_502", || {
        let interims = Server::start(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            // Until the balancer hangs up.
            while stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").is_ok() {}
        });
        let few = Server::answering(&format!(
            "{}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(16)
        ));
        let wish = Wish::to(&[interims.at]);
        let (engine, account) = engine(20_000, 24 << 20);
        wish.serve(&engine);
        let mut client = Client::to(wish.at());
        client.send("GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        let mut heads: Vec<u16> = Vec::new();
        while let Some(head) = client.hear_head() {
            heads.push(status(&head));
            if heads.last() != Some(&103) {
                break;
            }
        }
        assert_eq!((heads.len(), heads.last()), (17, Some(&502)), "{heads:?}");
        block_on(async {
            let send = connect(wish.at()).await;
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 502);
        });
        // One that does not read hears of none.
        let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), 0);
        (0..100).for_each(|index| attacker.get(2 * index + 1, &[]));
        let good = Wish::to(&[few.at]).beside(1);
        good.serve(&engine);
        block_on(async {
            let send = connect(good.at()).await;
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 200, "16 are passed on");
        });
        assert!(report(&account, "balancer buffers").in_use <= 24 << 20);
    });
}

#[test]
fn interim_answers_do_not_put_the_time_limit_off() {
    in_lab("interim_answers_do_not_put_the_time_limit_off", || {
        let server = Server::start(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            while stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").is_ok() {
                thread::sleep(Duration::from_millis(150));
            }
        });
        let wish = Wish { idle: Duration::from_millis(600), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        let all = client.rest();
        assert!(all.contains("HTTP/1.1 504 "), "{all}");
    });
}

#[test]
fn half_open_handshakes_do_not_keep_others_out() {
    in_lab("half_open_handshakes_do_not_keep_others_out", || {
        let server = Server::named("one");
        let (tls, _) = crate::lab::tls();
        let secured = Wish { tls: Some(tls), ..Wish::to(&[server.at]) };
        let plain = Wish::to(&[server.at]).beside(1);
        // 200 connections of clients, 100 of one address.
        let (engine, _account) = engine(1200, 24 << 20);
        secured.serve(&engine);
        plain.serve(&engine);
        let half_open: Vec<_> = (0..300).map(|index| connect_from([127, 0, 1, index as u8], secured.at())).collect();
        let silent: Vec<_> = (0..200).map(|_| connect_from([127, 0, 0, 7], plain.at())).collect();
        polite([127, 0, 0, 1], plain.at(), 20);
        drop((half_open, silent));
    });
}

#[test]
fn connections_that_wait_for_a_request_make_room_for_new_ones() {
    in_lab("connections_that_wait_for_a_request_make_room_for_new_ones", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        // 100 connections of clients, 50 of one address.
        let (engine, _account) = engine(600, 24 << 20);
        wish.serve(&engine);
        // The one with the most connections gives way first.
        let mut held: Vec<Client> = Vec::new();
        for index in 0..120u8 {
            if let Ok(stream) = connect_from([127, 0, 0, 10 + index / 40], wish.at()) {
                let mut client = Client::of(stream);
                if index % 2 == 0 {
                    client.get("/");
                }
                held.push(client);
            }
        }
        polite([127, 0, 0, 1], wish.at(), 20);
    });
}

#[test]
fn a_client_slower_than_the_least_rate_is_ended_and_a_slow_backend_is_not() {
    if !fairlead_testkit::full() {
        return;
    }
    in_lab("a_client_slower_than_the_least_rate_is_ended_and_a_slow_backend_is_not", || {
        // Sends an event every two seconds, for longer than a rate is measured.
        let events = Server::start(|mut stream| {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or(0);
            if head[..count].starts_with(b"POST") {
                let _ = stream.read_to_end(&mut Vec::new());
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..40 {
                let _ = stream.write_all(b"2\r\n:\n\r\n");
                thread::sleep(Duration::from_secs(2));
            }
            let _ = stream.write_all(b"0\r\n\r\n");
        });
        let wish = Wish::to(&[events.at]);
        let _engine = wish.start();
        let mut listener = Client::to(wish.at());
        listener.send("GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        let mut slow = TcpStream::connect(wish.at()).unwrap();
        slow.write_all(b"POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 100000\r\n\r\n").unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(75) && slow.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_secs(2));
        }
        assert!(begun.elapsed() < Duration::from_secs(75), "a byte every two seconds is too slow");
        let (_, heard) = listener.hear().unwrap();
        assert_eq!(heard.len(), 80, "all events arrived");
    });
}

#[test]
fn partial_heads_hold_little_memory() {
    in_lab("partial_heads_hold_little_memory", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let (engine, account) = engine(20_000, 8 << 20);
        wish.serve(&engine);
        let before = resident();
        let partial = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(60_000));
        let held: Vec<TcpStream> = (0..2400)
            .filter_map(|index| {
                let mut stream = connect_from([127, 0, 0, 7], wish.at()).ok()?;
                let _ = stream.write_all(&partial.as_bytes()[..1000 + 59_000 * (index % 2)]);
                Some(stream)
            })
            .collect();
        polite([127, 0, 0, 1], wish.at(), 40);
        assert!(report(&account, "balancer buffers").in_use <= 8 << 20);
        let grown = resident().saturating_sub(before);
        // 1,200 of 64 KiB and as many of 16 KiB would be 94 MiB.
        assert!(grown < 48 << 20, "{} MiB more", grown >> 20);
        drop(held);
    });
}

/// Starts a backend of HTTP/2 that answers 1 MiB to requests for the host `a`, and a few bytes to
/// others.
fn large_of_http_2() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let large = Bytes::from(vec![b'x'; 1 << 20]);
            while let Ok((stream, _)) = listener.accept().await {
                let large = large.clone();
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        let attacked = request.uri().host() == Some("a");
                        let body = if attacked { large.clone() } else { Bytes::from_static(b"ok") };
                        let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
                        let _ = stream.send_data(body, true);
                    }
                });
            }
        });
    });
    at
}

#[test]
fn streams_to_a_backend_of_http_2_do_not_stall_each_other() {
    in_lab("streams_to_a_backend_of_http_2_do_not_stall_each_other", || {
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[large_of_http_2()]) };
        let (engine, account) = engine(20_000, 24 << 20);
        wish.serve(&engine);
        let attackers: Vec<Attacker> = (0..12)
            .map(|index| {
                let mut attacker = Attacker::from([127, 0, 0, 7], wish.at(), 0);
                (0..60).for_each(|index| attacker.get(2 * index + 1, &[]));
                if index == 0 {
                    // The connection to the backend is the one that the next streams share.
                    polite([127, 0, 0, 1], wish.at(), 8);
                }
                attacker
            })
            .collect();
        polite([127, 0, 0, 1], wish.at(), 60);
        let buffers = report(&account, "balancer buffers");
        assert!(buffers.in_use <= buffers.limits.total, "{buffers:?}");
        drop(attackers);
    });
}
