//! Bytes carried by sockets that never wait.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_kernel::relay::{
    Datagrams, Events, Pipe, Poller, Waker, accept, bind_datagram, connect, connect_datagram, listen, reset,
};

use crate::lab::{in_namespace, tool};

const LIMIT: Duration = Duration::from_secs(5);

fn up() {
    tool("ip", &["link", "set", "lo", "up"]);
}

/// Waits for events with that token, and says whether they satisfy.
fn wait(poller: &Poller, satisfies: impl Fn(fairlead_kernel::relay::Ready) -> bool) {
    let (mut events, end) = (Events::with_capacity(4), Instant::now() + LIMIT);
    while Instant::now() < end {
        poller.wait(&mut events, Some(LIMIT)).unwrap();
        if events.iter().any(&satisfies) {
            return;
        }
    }
    panic!("nothing happened");
}

/// Both ends of a connection over loopback.
fn pair(at: &str) -> (TcpStream, TcpStream) {
    let listener = listen(at.parse().unwrap()).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, from) = accept(&listener).unwrap().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    assert!(accept(&listener).unwrap().is_none());
    (client, server)
}

#[test]
fn bytes_pass_through_a_pipe_and_their_end_is_seen() {
    in_namespace("bytes_pass_through_a_pipe_and_their_end_is_seen", || {
        up();
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let ((mut sender, from), (to, mut receiver)) = (pair(at), pair(at));
            let mut pipe = Pipe::new().unwrap();
            // What is accepted never waits; `from` is such a one.
            assert_eq!(pipe.fill(&from, 100).unwrap_err().kind(), ErrorKind::WouldBlock);
            sender.write_all(b"seven bytes").unwrap();
            assert_eq!((pipe.fill(&from, 5).unwrap(), pipe.held()), (5, 5));
            assert_eq!(pipe.fill(&from, 100).unwrap(), 6);
            assert_eq!((pipe.drain(&to).unwrap(), pipe.held()), (11, 0));
            drop(sender);
            assert_eq!(pipe.fill(&from, 100).unwrap(), 0);
            drop(to);
            receiver.set_nonblocking(false).unwrap();
            let mut heard = String::new();
            receiver.read_to_string(&mut heard).unwrap();
            assert_eq!(heard, "seven bytes");
        }
    });
}

#[test]
fn a_connection_is_there_or_has_failed_when_it_can_be_written() {
    in_namespace("a_connection_is_there_or_has_failed_when_it_can_be_written", || {
        up();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        let poller = Poller::new().unwrap();
        let there = connect(at).unwrap();
        poller.watch_all(there.as_fd(), 7).unwrap();
        wait(&poller, |ready| ready.token == 7 && ready.writable() && !ready.failed());
        drop(listener);
        let refused = connect(at).unwrap();
        poller.watch_all(refused.as_fd(), 8).unwrap();
        wait(&poller, |ready| ready.token == 8 && ready.failed());
    });
}

#[test]
fn a_reset_is_seen_as_one() {
    in_namespace("a_reset_is_seen_as_one", || {
        up();
        let (mut client, server) = pair("127.0.0.1:0");
        reset(server);
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_poller_tells_what_was_asked_for() {
    in_namespace("a_poller_tells_what_was_asked_for", || {
        up();
        let (mut client, server) = pair("127.0.0.1:0");
        let poller = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        poller.watch_reads(server.as_fd(), 1).unwrap();
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.iter().count(), 0);
        client.write_all(b"x").unwrap();
        wait(&poller, |ready| ready.token == 1 && ready.readable() && !ready.ends());
        // It was said, and is not said again.
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.iter().count(), 0);
        poller.watch_writes_too(server.as_fd(), 2).unwrap();
        wait(&poller, |ready| ready.token == 2 && ready.writable());
        drop(client);
        wait(&poller, |ready| ready.token == 2 && ready.ends());
        poller.forget(server.as_fd()).unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        poller.watch(waker.as_fd(), 3).unwrap();
        let other = waker.clone();
        std::thread::spawn(move || other.wake()).join().unwrap();
        wait(&poller, |ready| ready.token == 3);
        waker.woken();
        poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.iter().count(), 0);
    });
}

#[test]
fn datagrams_are_taken_many_at_a_time_with_their_senders() {
    in_namespace("datagrams_are_taken_many_at_a_time_with_their_senders", || {
        up();
        for ip in ["127.0.0.1:0", "[::1]:0"] {
            let at: SocketAddr = ip.parse().unwrap();
            let socket = bind_datagram(at).unwrap();
            let to = socket.local_addr().unwrap();
            let mut datagrams = Datagrams::default();
            assert!(!datagrams.receive(&socket).unwrap());
            let senders = [UdpSocket::bind(at).unwrap(), connect_datagram(to).unwrap()];
            for turn in 0..20u8 {
                senders[usize::from(turn % 2)].send_to(&vec![turn; usize::from(turn) * 100], to).unwrap();
            }
            let mut seen = Vec::new();
            while datagrams.receive(&socket).unwrap() {
                assert!(datagrams.is_full() || seen.len() == 16);
                seen.extend(datagrams.iter().map(|(bytes, from)| (bytes.to_vec(), from)));
            }
            let sent = (0..20u8).map(|turn| {
                (vec![turn; usize::from(turn) * 100], senders[usize::from(turn % 2)].local_addr().unwrap())
            });
            assert!(seen == sent.collect::<Vec<_>>());
        }
    });
}

#[test]
fn who_does_not_listen_is_heard_of() {
    in_namespace("who_does_not_listen_is_heard_of", || {
        up();
        let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = connect_datagram(nobody).unwrap();
        socket.send(b"x").unwrap();
        let error = Datagrams::default().receive(&socket).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}
