use std::net::{TcpListener, TcpStream, UdpSocket};

use super::*;

#[test]
fn lines_of_the_kernel_are_read() {
    let cases = [
        ("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000", "0A", Some("127.0.0.1:8080")),
        ("   0: 00000000:0050 00000000:0000 0A 00000000:00000000", "0A", Some("0.0.0.0:80")),
        ("   1: 0100007F:1F90 0100007F:A2C4 01 00000000:00000000", "0A", None),
        (
            "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A",
            "0A",
            Some("[::]:8080"),
        ),
        (
            "   0: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07",
            "07",
            Some("[::1]:53"),
        ),
        (
            "   0: 0000000000000000FFFF00000100007F:0035 00000000000000000000000000000000:0000 07",
            "07",
            Some("127.0.0.1:53"),
        ),
        ("", "0A", None),
        ("   0: 01:1F90 00:0000 0A", "0A", None),
        ("   0: ÄÄÄÄ:1F90 00:0000 0A", "0A", None),
        ("   0: 0100007F:1F90F 00:0000 0A", "0A", None),
    ];
    for (line, state, expected) in cases {
        assert_eq!(socket(line, state).map(|(at, _)| at.to_string()).as_deref(), expected, "{line}");
    }
}

#[test]
fn sockets_of_this_thread_are_found_and_connections_are_not() {
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (at, datagrams) = (tcp.local_addr().unwrap(), udp.local_addr().unwrap());
    let stream = TcpStream::connect(at).unwrap();
    let found = listening().unwrap();
    let find = |transport, at| found.iter().find(|socket| (socket.transport, socket.at) == (transport, at));
    let has = |transport, at| find(transport, at).is_some();
    assert!(has(Transport::Tcp, at) && has(Transport::Udp, datagrams), "{found:?}");
    assert!(!has(Transport::Udp, at) && !has(Transport::Tcp, stream.local_addr().unwrap()), "{found:?}");
}

#[test]
fn the_program_behind_a_socket_is_named() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = tcp.local_addr().unwrap();
    let inode = listening().unwrap().into_iter().find(|socket| socket.at == at).unwrap().inode;
    let own = std::fs::read_to_string("/proc/self/comm").unwrap();
    let processes = crate::netns::Namespace::current().unwrap().processes().unwrap();
    assert!(processes.contains(&std::process::id()), "{processes:?}");
    assert_eq!(programs(&[std::process::id()]).get(&inode).map(String::as_str), Some(own.trim_end()));
    assert_eq!(programs(&[u32::MAX]).get(&inode), None);
}
