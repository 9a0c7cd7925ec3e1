//! What happens to TCP connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use fairlead_proxy::userspace::Options;

use crate::lab::{ENDPOINTS, LIMIT, Lab, VIP, VIP6, connect, lab, lab_with, serve, who};

#[test]
fn endpoints_take_turns() {
    let Some(mut lab) = lab("endpoints_take_turns") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    assert_eq!(lab.who(VIP, 6), [11, 12, 13, 11, 12, 13]);
    assert_eq!(lab.who(VIP6, 4), [11, 12, 13, 11]);
}

#[test]
fn a_client_that_stays_goes_where_it_was() {
    let Some(mut lab) = lab("a_client_that_stays_goes_where_it_was") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({"sessionAffinity": "ClientIP"}), &ENDPOINTS);
    for vip in [VIP, VIP6] {
        let first = lab.who(vip, 1)[0];
        for _ in 0..3 {
            assert_eq!(lab.who(vip, 3), [first; 3]);
            // Another client takes a turn.
            who(connect(&lab.outside, vip).unwrap());
        }
    }
    let gone = lab.who(VIP, 1)[0];
    let left: Vec<u8> = ENDPOINTS.into_iter().filter(|last| *last != gone).collect();
    lab.endpoints(&left);
    let next = lab.who(VIP, 1)[0];
    assert!(left.contains(&next), "{next}");
    assert_eq!(lab.who(VIP, 3), [next; 3]);
}

/// Addresses and from where they work: for Pods, for others, and for processes of the Node, of both families.
#[test]
fn the_service_is_reached_from_everywhere() {
    let Some(mut lab) = lab("the_service_is_reached_from_everywhere") else { return };
    serve(&lab, &[11]);
    lab.web(json!({"externalIPs": ["203.0.113.7", "fd99::7"]}), &[11]);
    let all = [VIP, VIP6, "172.30.0.11:30080", "[fd30::11]:30080", "203.0.113.7:80", "[fd99::7]:80"];
    for to in all {
        for from in [&lab.client, &lab.outside, &lab.node] {
            assert_eq!(who(connect(from, to).unwrap()), 11, "{to}");
        }
    }
    assert_eq!(who(connect(&lab.node, "127.0.0.1:30080").unwrap()), 11);
    // A Pod that is its own endpoint.
    assert_eq!(who(connect(&lab.backends, VIP).unwrap()), 11);
}

#[test]
fn an_endpoint_that_refuses_is_passed_over() {
    let Some(mut lab) = lab("an_endpoint_that_refuses_is_passed_over") else { return };
    serve(&lab, &[12]);
    lab.web(json!({}), &ENDPOINTS);
    assert_eq!(lab.who(VIP, 4), [12, 12, 12, 12]);
}

#[test]
fn an_endpoint_that_is_silent_is_passed_over() {
    let Some(mut lab) = lab("an_endpoint_that_is_silent_is_passed_over") else { return };
    serve(&lab, &[12]);
    // Nobody has it, and nobody says so.
    crate::lab::ip(&lab.backends, "address del 10.50.1.11/32 dev eth0");
    lab.web(json!({}), &[11, 12]);
    let began = Instant::now();
    assert_eq!(lab.who(VIP, 1), [12]);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn when_nobody_answers_the_client_is_told() {
    let Some(mut lab) = lab("when_nobody_answers_the_client_is_told") else { return };
    lab.web(json!({}), &ENDPOINTS);
    check_reset(&lab, VIP);
    lab.endpoints(&[]);
    assert_eq!(connect(&lab.client, VIP).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

/// A reset may come before the client even knows that it is connected.
fn check_reset(lab: &Lab, to: &str) {
    let heard = connect(&lab.client, to).and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(heard.map_err(|error| error.kind()), Err(ErrorKind::ConnectionReset));
}

#[test]
fn each_side_may_end_first_and_still_be_heard() {
    let Some(mut lab) = lab("each_side_may_end_first_and_still_be_heard") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let mut stream = lab.connect(VIP);
    stream.write_all(b"to be repeated").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"\x0bto be repeated");

    let (mut client, mut backend) = pair(&mut lab);
    backend.write_all(b"bye").unwrap();
    backend.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"bye");
    client.write_all(b"still here").unwrap();
    drop(client);
    let mut heard = String::new();
    backend.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "still here");
    lab.wait("connections end", |mode| mode.carried().0 == 0);
}

#[test]
fn a_side_that_breaks_breaks_the_other() {
    let Some(mut lab) = lab("a_side_that_breaks_breaks_the_other") else { return };
    let (client, mut backend) = pair(&mut lab);
    fairlead_kernel::relay::reset(client);
    assert_eq!(backend.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let (mut client, backend) = pair(&mut lab);
    fairlead_kernel::relay::reset(backend);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    lab.wait("connections end", |mode| mode.carried().0 == 0);
}

/// Both ends of a connection to endpoint 12.
fn pair(lab: &mut Lab) -> (TcpStream, TcpStream) {
    lab.web(json!({}), &[12]);
    let listener = lab.backends.run(|| TcpListener::bind("10.50.1.12:8080")).unwrap().unwrap();
    let client = lab.connect(VIP);
    let backend = listener.accept().unwrap().0;
    backend.set_read_timeout(Some(LIMIT)).unwrap();
    (client, backend)
}

#[test]
fn much_arrives_as_it_was_sent() {
    let Some(mut lab) = lab("much_arrives_as_it_was_sent") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    // In pieces of every size, so that some are copied and some are not.
    let bytes: Vec<u8> = (0..48u64 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let mut stream = lab.connect(VIP);
    let mut sender = stream.try_clone().unwrap();
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || {
        let mut rest = &copy[..];
        for size in (1..).map(|turn: usize| turn * 997 % 300_000 + 1) {
            let (now, later) = rest.split_at(size.min(rest.len()));
            sender.write_all(now).unwrap();
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    writer.join().unwrap();
    assert!(heard[1..] == bytes[..], "{} of {} bytes", heard.len() - 1, bytes.len());
    let counters = fairlead_proxy::Dataplane::counters(&mut lab.mode, lab.planner.plan()).unwrap();
    let total: u64 = counters.endpoints.values().map(|traffic| traffic.bytes).sum();
    assert_eq!(total, 2 * bytes.len() as u64 + 1);
}

#[test]
fn a_reader_that_waits_makes_the_writer_wait() {
    let Some(mut lab) = lab("a_reader_that_waits_makes_the_writer_wait") else { return };
    let (mut client, mut backend) = pair(&mut lab);
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = vec![7; 1 << 20];
    let mut sent = 0;
    let limit = 512 << 20;
    while sent < limit {
        match client.write(&piece) {
            Ok(written) => sent += written,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
    }
    assert!(sent < limit, "nothing slowed it down");
    client.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    backend.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), sent);
}

#[test]
fn a_portal_is_for_those_who_are_led_there() {
    let Some(mut lab) = lab("a_portal_is_for_those_who_are_led_there") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let found = crate::lab::run(&lab.node, "ss", "-Htln");
    let portals: Vec<&str> = found.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(portals.len(), 2, "{found}");
    for portal in portals {
        for from in [&lab.client, &lab.outside, &lab.node] {
            let refused = connect(from, portal).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{portal}");
        }
    }
    assert_eq!(lab.who(VIP, 1), [11]);
}

#[test]
fn an_endpoint_that_would_lead_back_is_passed_over() {
    let Some(mut lab) = lab("an_endpoint_that_would_lead_back_is_passed_over") else { return };
    serve(&lab, &[11]);
    lab.web(json!({"externalIPs": ["10.50.1.12"], "ports": [{"name": "http", "port": 8080}]}), &[12]);
    check_reset(&lab, "10.96.0.10:8080");
    lab.endpoints(&[11, 12]);
    assert_eq!(lab.who("10.96.0.10:8080", 3), [11, 11, 11]);
}

#[test]
fn a_thousand_connections_leave_nothing_behind() {
    // Counts descriptors of the whole process, so it has a process of its own.
    let name = "tcp::a_thousand_connections_leave_nothing_behind";
    if std::env::var_os("FAIRLEAD_ALONE").is_none() {
        let program = std::env::current_exe().unwrap();
        let alone = std::process::Command::new(program).args(["--exact", name]).env("FAIRLEAD_ALONE", "1").output();
        let alone = alone.unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    let Some(mut lab) = lab(name) else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    let before = crate::lab::descriptors();
    let streams: Vec<TcpStream> = (0..1000).map(|_| lab.connect(VIP)).collect();
    lab.wait("all are carried", |mode| mode.carried().0 == 1000);
    let mut counts = [0; 3];
    for mut stream in streams {
        stream.write_all(b"x").unwrap();
        let mut heard = [0; 2];
        stream.read_exact(&mut heard).unwrap();
        counts[usize::from(heard[0]) - 11] += 1;
    }
    assert_eq!(counts, [334, 333, 333]);
    lab.wait("all have ended", |mode| mode.carried().0 == 0);
    // Pipes that wait to be used again are the only thing that may be left.
    lab.wait("descriptors are closed", |_| crate::lab::descriptors() <= before + 4);
}

#[test]
fn a_client_with_many_connections_does_not_keep_others_out() {
    let options = Options { descriptors: Some(400), ..Options::default() };
    let Some(mut lab) = lab_with("a_client_with_many_connections_does_not_keep_others_out", options) else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    let mut held = Vec::new();
    // The client has a quarter of 200 descriptors, two for each connection.
    for _ in 0..150 {
        held.extend(connect(&lab.client, VIP));
    }
    for to in [VIP, VIP6] {
        for _ in 0..10 {
            assert!(ENDPOINTS.contains(&who(connect(&lab.outside, to).unwrap())), "{to}");
        }
    }
    let mut served = 0;
    for mut stream in held.drain(..) {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        served += usize::from(matches!(stream.read(&mut [0; 1]), Ok(1)));
    }
    assert!((20..=25).contains(&served), "{served}");
    lab.wait("the share is free again", |_| {
        connect(&lab.client, VIP).is_ok_and(|mut stream| matches!(stream.read(&mut [0; 1]), Ok(1)))
    });
}
