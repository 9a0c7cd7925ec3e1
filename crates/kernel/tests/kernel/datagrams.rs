//! Datagrams in batches, which know where they were sent to and are answered from there.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fairlead_kernel::datagrams::{Inbox, Options, Outbox, bind, send};

use crate::lab::{in_namespace, tool};

const WAIT: Duration = Duration::from_millis(100);

/// A client that hears only from the address it asks.
fn client(to: &str) -> UdpSocket {
    let to: SocketAddr = to.parse().unwrap();
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let client = UdpSocket::bind(any).unwrap();
    client.connect(to).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client
}

#[test]
fn answers_leave_from_the_address_that_was_asked() {
    in_namespace("answers_leave_from_the_address_that_was_asked", || {
        tool("ip", &["link", "set", "lo", "up"]);
        for (at, to) in [("0.0.0.0:53", "127.1.2.3:53"), ("[::]:53", "[::1]:53"), ("127.0.0.1:54", "127.0.0.1:54")] {
            let server = bind(at.parse().unwrap(), Options { shared: true, wait: WAIT }).unwrap();
            let (mut inbox, mut outbox, mut buffer) = (Inbox::default(), Outbox::default(), [0; 16]);
            let client = client(to);
            client.send(b"question").unwrap();
            inbox.receive(&server).unwrap();
            let (bytes, peer) = inbox.iter().next().unwrap();
            assert_eq!((bytes, peer.from), (&b"question"[..], client.local_addr().unwrap()));
            assert_eq!(peer.to, Some(to.parse::<SocketAddr>().unwrap().ip()));
            outbox.push(peer, b"answer");
            outbox.send(&server);
            assert_eq!(client.recv(&mut buffer).unwrap(), 6, "{to}");
            send(&server, peer, b"another").unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), 7, "{to}");
        }
    });
}

#[test]
fn a_batch_takes_what_is_there_and_sends_all_of_it() {
    in_namespace("a_batch_takes_what_is_there_and_sends_all_of_it", || {
        tool("ip", &["link", "set", "lo", "up"]);
        let server = bind("127.0.0.1:53".parse().unwrap(), Options { shared: false, wait: WAIT }).unwrap();
        let client = client("127.0.0.1:53");
        let (mut inbox, mut outbox, mut taken) = (Inbox::default(), Outbox::default(), 0);
        for number in 0..150_u8 {
            client.send(&[number; 3]).unwrap();
        }
        let mut batches = 0;
        while taken < 150 {
            inbox.receive(&server).unwrap();
            for (bytes, peer) in inbox.iter() {
                assert_eq!(bytes, [taken; 3]);
                outbox.push(peer, bytes);
                taken += 1;
            }
            batches += 1;
        }
        assert!(batches < 10, "{batches}");
        outbox.send(&server);
        for number in 0..150 {
            let mut buffer = [0; 8];
            assert_eq!((client.recv(&mut buffer).unwrap(), buffer[0]), (3, number));
        }
    });
}

#[test]
fn nothing_is_waited_for_no_longer_than_asked_and_too_long_a_datagram_is_not_heard() {
    in_namespace("nothing_is_waited_for_no_longer_than_asked_and_too_long_a_datagram_is_not_heard", || {
        tool("ip", &["link", "set", "lo", "up"]);
        let server = bind("127.0.0.1:53".parse().unwrap(), Options { shared: false, wait: WAIT }).unwrap();
        let (mut inbox, before) = (Inbox::default(), Instant::now());
        inbox.receive(&server).unwrap();
        assert!(inbox.iter().next().is_none() && before.elapsed() < Duration::from_secs(2));
        let client = client("127.0.0.1:53");
        client.send(&[0; 5000]).unwrap();
        client.send(&[1; 4096]).unwrap();
        inbox.receive(&server).unwrap();
        let lengths: Vec<usize> = inbox.iter().map(|(bytes, _)| bytes.len()).collect();
        assert_eq!(lengths, [4096]);
        let _: IpAddr = inbox.iter().next().unwrap().1.to.unwrap();
    });
}
