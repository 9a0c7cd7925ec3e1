//! What happens to UDP.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use fairlead_kernel::netns::Namespace;
use fairlead_proxy::userspace::Options;
use serde_json::json;

use crate::lab::{ENDPOINTS, LIMIT, lab, lab_with, serve};

const DNS: &str = "10.96.0.10:53";
const DNS6: &str = "[fd00:96::10]:53";

/// A client with a socket of its own. It hears only what comes from where it sent to.
fn client(from: &Namespace, to: &str) -> UdpSocket {
    let to: SocketAddr = to.parse().unwrap();
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = from.run(|| UdpSocket::bind(any).and_then(|socket| socket.connect(to).map(|()| socket)));
    let socket = socket.unwrap().unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    socket
}

/// Who answers.
fn ask(socket: &UdpSocket) -> u8 {
    socket.send(b"who?").unwrap();
    let mut heard = [0; 16];
    let length = socket.recv(&mut heard).unwrap();
    assert_eq!(&heard[1..length], b"who?");
    heard[0]
}

#[test]
fn clients_take_turns_and_each_stays_for_its_session() {
    let Some(mut lab) = lab("clients_take_turns_and_each_stays_for_its_session") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    for to in [DNS, DNS6] {
        let clients: Vec<UdpSocket> = (0..6).map(|_| client(&lab.client, to)).collect();
        for _ in 0..2 {
            let heard: Vec<u8> = clients.iter().map(ask).collect();
            assert_eq!(heard, [11, 12, 13, 11, 12, 13], "{to}");
        }
    }
    lab.wait("sessions", |mode| mode.carried().1 == 12);
    let counters = fairlead_proxy::Dataplane::counters(&mut lab.mode, lab.planner.plan()).unwrap();
    for (endpoint, traffic) in &counters.endpoints {
        assert_eq!((traffic.connections, traffic.packets, traffic.bytes), (2, 8, 4 * 4 + 4 * 5), "{endpoint:?}");
    }
    assert_eq!(counters.endpoints.len(), 6);
}

#[test]
fn the_service_is_heard_from_everywhere_under_its_own_address() {
    let Some(mut lab) = lab("the_service_is_heard_from_everywhere_under_its_own_address") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    for to in [DNS, DNS6, "172.30.0.11:30053", "[fd30::11]:30053"] {
        for from in [&lab.client, &lab.outside, &lab.node] {
            assert_eq!(ask(&client(from, to)), 11, "{to}");
        }
    }
}

#[test]
fn a_client_that_stays_goes_where_it_was_with_every_socket() {
    let Some(mut lab) = lab("a_client_that_stays_goes_where_it_was_with_every_socket") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({"sessionAffinity": "ClientIP"}), &ENDPOINTS);
    let heard: Vec<u8> = (0..3).map(|_| ask(&client(&lab.client, DNS))).collect();
    assert!(heard.iter().all(|who| *who == heard[0]), "{heard:?}");
}

#[test]
fn a_session_with_an_endpoint_that_is_gone_ends() {
    let Some(mut lab) = lab("a_session_with_an_endpoint_that_is_gone_ends") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    let (one, other) = (client(&lab.client, DNS), client(&lab.client, DNS));
    assert_eq!((ask(&one), ask(&other)), (11, 12));
    lab.endpoints(&[12, 13]);
    lab.wait("the session ends", |mode| mode.carried().1 == 1);
    let next = ask(&one);
    assert!(next != 11, "{next}");
    assert_eq!(ask(&other), 12);
}

#[test]
fn what_an_endpoint_answers_as_it_leaves_still_arrives() {
    let Some(mut lab) = lab("what_an_endpoint_answers_as_it_leaves_still_arrives") else { return };
    serve(&lab, &[12]);
    let slow = lab.backends.run(|| UdpSocket::bind("10.50.1.11:5353")).unwrap().unwrap();
    slow.set_read_timeout(Some(LIMIT)).unwrap();
    lab.web(json!({}), &[11]);
    let client = client(&lab.client, DNS);
    client.send(b"who?").unwrap();
    let (_, asker) = slow.recv_from(&mut [0; 16]).unwrap();
    lab.endpoints(&[12]);
    slow.send_to(b"late", asker).unwrap();
    let mut heard = [0; 16];
    assert_eq!(client.recv(&mut heard).unwrap(), 4);
    assert_eq!(&heard[..4], b"late");
    assert_eq!(ask(&client), 12, "the next goes to who is there now");
    lab.wait("the old session ends", |mode| mode.carried().1 == 1);
}

#[test]
fn an_endpoint_that_refuses_is_passed_over() {
    let Some(mut lab) = lab("an_endpoint_that_refuses_is_passed_over") else { return };
    serve(&lab, &[12]);
    lab.web(json!({"sessionAffinity": "ClientIP"}), &[11, 12]);
    let client = client(&lab.client, DNS);
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    // The first datagram is lost: it is how one learns that nobody is there.
    let heard = (0..10).find_map(|_| {
        client.send(b"who?").unwrap();
        client.recv(&mut [0; 16]).ok()
    });
    assert_eq!(heard, Some(5));
}

#[test]
fn a_session_that_is_silent_ends() {
    let options = Options { udp_timeout: Duration::from_millis(100), ..Options::default() };
    let Some(mut lab) = lab_with("a_session_that_is_silent_ends", options) else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    let socket = client(&lab.client, DNS);
    assert_eq!(ask(&socket), 11);
    lab.wait("the session ends", |mode| mode.carried().1 == 0);
    assert_eq!(ask(&socket), 12);
}

#[test]
fn a_portal_is_for_those_who_are_led_there() {
    let Some(mut lab) = lab("a_portal_is_for_those_who_are_led_there") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let found = crate::lab::run(&lab.node, "ss", "-Huln");
    let portals: Vec<&str> = found.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(portals.len(), 2, "{found}");
    for portal in portals {
        for from in [&lab.client, &lab.node] {
            let socket = client(from, portal);
            // The Node's own processes are told at once.
            let refused = socket.send(b"who?").and_then(|_| socket.recv(&mut [0; 16])).unwrap_err();
            let expected = [ErrorKind::ConnectionRefused, ErrorKind::PermissionDenied];
            assert!(expected.contains(&refused.kind()), "{portal}: {refused}");
        }
    }
}

#[test]
fn large_datagrams_pass() {
    let Some(mut lab) = lab("large_datagrams_pass") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let socket = client(&lab.client, DNS);
    let bytes: Vec<u8> = (0..60_000u32).map(|at| at as u8).collect();
    socket.send(&bytes).unwrap();
    let mut heard = vec![0; 1 << 16];
    let length = socket.recv(&mut heard).unwrap();
    assert!(heard[1..length] == bytes[..]);
}
