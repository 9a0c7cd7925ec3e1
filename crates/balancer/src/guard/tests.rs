#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;

use super::*;

fn frontend(address: &str, port: u16) -> Frontend {
    Frontend { address: address.parse().unwrap(), protocol: Protocol::Tcp, port }
}

fn rule(to: Target, from: &[&str]) -> Rule {
    let from = from.iter().map(|net| net.parse().unwrap()).collect();
    Rule { to, from, description: "kubernetes.io/rule/nlb/client=web".to_owned() }
}

/// Two addresses: 80 is for everybody, 443 for some.
fn guard() -> Guard {
    let mut guard = Guard { pods: vec!["10.244.0.0/16".parse().unwrap()], ..Guard::default() };
    for address in ["192.0.2.100", "fd00::64"] {
        guard.addresses.insert(address.parse().unwrap());
        guard.listeners.extend([frontend(address, 80), frontend(address, 443)]);
        let closed = ["192.0.2.8/29", "192.0.2.8/31", "fd00::8/125"];
        guard.rules.push(rule(Target::Frontend(frontend(address, 443)), &closed));
    }
    guard.rules.push(rule(Target::NodePort(Protocol::Tcp, 30443), &["192.0.2.9/32", "fd00::9/128"]));
    guard.rules.push(rule(Target::NodePort(Protocol::Tcp, 30443), &["198.51.100.0/24"]));
    guard.rules.push(rule(Target::TooLong(30443), &["192.0.2.9/32"]));
    guard
}

fn run(program: &str, words: &str) -> String {
    let output = Command::new(program).args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{program} {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs `work` on a machine that has a link to a client, and the client.
fn in_lab(test: &str, work: impl FnOnce(&Namespace) + Send) {
    if !["ip", "nft"].iter().all(|program| fairlead_testkit::need(test, program)) {
        return;
    }
    let (Ok(machine), Ok(client)) = (Namespace::unnamed(), Namespace::unnamed()) else {
        fairlead_testkit::need::skip(test, "root");
        return;
    };
    let there = format!("/proc/{}/fd/{}", std::process::id(), client.as_fd().as_raw_fd());
    // Addresses work at once, without asking around for a second.
    let at_once = || std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap();
    client.run(at_once).unwrap();
    machine
        .run(|| {
            at_once();
            run("ip", "link set lo up");
            run("ip", &format!("link add fla type veth peer name flb netns {there}"));
            run("ip", "addr add 192.0.2.1/24 dev fla");
            run("ip", "addr add fd00::1/64 dev fla nodad");
            run("ip", "link set fla up");
            client
                .run(|| {
                    run("ip", "link set flb up");
                    for last in [9, 20] {
                        run("ip", &format!("addr add 192.0.2.{last}/24 dev flb"));
                        run("ip", &format!("addr add fd00::{last}/64 dev flb nodad"));
                    }
                    run("ip", "addr add 10.244.7.7/32 dev flb");
                    // The machine answers for what it holds; who announces is another question.
                    run("ip", "route add 192.0.2.100 via 192.0.2.1");
                    run("ip", "route add fd00::64 via fd00::1");
                })
                .unwrap();
            run("ip", "route add 10.244.7.7 dev fla");
            let mut links = Links::open().unwrap();
            let lo = links.index("lo").unwrap();
            for address in guard().addresses {
                links.add_local(208, lo, address).unwrap();
            }
            work(&client);
        })
        .unwrap();
}

/// Something that answers at every address of the machine.
fn serve(port: u16) {
    let listener = TcpListener::bind(("::", port)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"hello");
        }
    });
}

#[derive(Debug, PartialEq)]
enum Got {
    Served,
    Refused,
    Nothing,
}

fn connect(from: &str, to: &str) -> Got {
    let to: SocketAddr = to.parse().unwrap();
    let from = SocketAddr::new(from.parse().unwrap(), 0);
    let domain = socket2::Domain::for_address(to);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).unwrap();
    socket.bind(&from.into()).unwrap();
    match socket.connect_timeout(&to.into(), Duration::from_millis(400)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Got::Refused,
        Err(_) => return Got::Nothing,
    }
    let mut text = String::new();
    TcpStream::from(socket).read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
    Got::Served
}

/// Whether an address answers an echo request.
fn ping(to: &str) -> bool {
    use socket2::{Domain, Protocol, Socket, Type};
    let to = SocketAddr::new(to.parse().unwrap(), 0);
    let (protocol, kind, answer) = match to {
        SocketAddr::V4(_) => (Protocol::ICMPV4, 8, 0),
        SocketAddr::V6(_) => (Protocol::ICMPV6, 128, 129),
    };
    std::fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647").unwrap();
    let mut socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(protocol)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send_to(&[kind, 0, 0, 0, 0, 0, 0, 1], &to.into()).unwrap();
    let mut got = [0; 8];
    socket.read(&mut got).is_ok_and(|length| length == 8 && got[0] == answer)
}

#[test]
fn packets_get_where_the_guard_lets_them() {
    in_lab("packets_get_where_the_guard_lets_them", |client| {
        [22, 80, 443, 30443, 30080].into_iter().for_each(serve);
        let mut table = Table::open().unwrap();
        table.apply(&Program::new(&guard())).unwrap();
        let check = |from: &str, to: &str, expected: Got| {
            let got = client.run(|| connect(from, to)).unwrap();
            assert_eq!(got, expected, "{from} -> {to}\n{}", run("nft", "list ruleset"));
        };
        check("192.0.2.9", "192.0.2.100:80", Got::Served);
        check("192.0.2.20", "192.0.2.100:80", Got::Served);
        // The machine's own servers are at its own address alone; node ports are, too.
        check("192.0.2.9", "192.0.2.1:22", Got::Served);
        check("192.0.2.9", "192.0.2.100:22", Got::Refused);
        check("192.0.2.9", "192.0.2.100:30080", Got::Refused);
        check("192.0.2.9", "192.0.2.100:443", Got::Served);
        check("192.0.2.20", "192.0.2.100:443", Got::Nothing);
        check("10.244.7.7", "192.0.2.100:443", Got::Served);
        check("192.0.2.9", "192.0.2.1:30443", Got::Served);
        check("192.0.2.20", "192.0.2.1:30443", Got::Nothing);
        check("10.244.7.7", "192.0.2.1:30443", Got::Served);
        check("192.0.2.20", "192.0.2.1:30080", Got::Served);
        check("fd00::20", "[fd00::64]:80", Got::Served);
        check("fd00::9", "[fd00::64]:22", Got::Refused);
        check("fd00::9", "[fd00::64]:443", Got::Served);
        check("fd00::20", "[fd00::64]:443", Got::Nothing);
        check("fd00::9", "[fd00::1]:30443", Got::Served);
        check("fd00::20", "[fd00::1]:30443", Got::Nothing);
        // The machine itself may.
        assert_eq!(connect("192.0.2.1", "192.0.2.100:443"), Got::Served);
        assert_eq!(connect("192.0.2.100", "192.0.2.100:80"), Got::Served);
        assert!(client.run(|| ping("192.0.2.100") && ping("fd00::64")).unwrap());
        assert!(ping("192.0.2.100") && ping("fd00::64"));
        // A node proxy that knows of a port which is not served translates what the machine sends
        // there in vain.
        run("nft", "add table inet proxy");
        run("nft", "add chain inet proxy output { type nat hook output priority -100 ; }");
        run("nft", "add rule inet proxy output ip daddr 192.0.2.100 tcp dport 8443 dnat ip to 192.0.2.1:22");
        run("nft", "add rule inet proxy output ip6 daddr fd00::64 tcp dport 8443 dnat ip6 to [fd00::1]:22");
        assert_eq!(connect("192.0.2.1", "192.0.2.100:8443"), Got::Refused);
        assert_eq!(connect("fd00::1", "[fd00::64]:8443"), Got::Refused);
        run("nft", "delete table inet proxy");

        // What was open is closed, and the other way round, without a rule being made.
        let mut other = guard();
        other.rules.retain(|rule| rule.to != Target::Frontend(frontend("192.0.2.100", 443)));
        other.rules.push(rule(Target::Frontend(frontend("192.0.2.100", 80)), &["203.0.113.0/24", "0.0.0.0/8"]));
        table.apply(&Program::new(&other)).unwrap();
        check("192.0.2.20", "192.0.2.100:443", Got::Served);
        check("192.0.2.20", "192.0.2.100:80", Got::Nothing);
        check("fd00::20", "[fd00::64]:443", Got::Nothing);
    });
}

#[test]
fn who_may_not_use_a_node_port_may_not_shrink_its_packets() {
    in_lab("who_may_not_use_a_node_port_may_not_shrink_its_packets", |client| {
        let mut open = guard();
        open.rules.retain(|rule| !matches!(rule.to, Target::NodePort(..)));
        let mut table = Table::open().unwrap();
        table.apply(&Program::new(&open)).unwrap();
        run("nft", "add table inet seen");
        run("nft", "add counter inet seen words");
        run("nft", "add chain inet seen later { type filter hook prerouting priority -104 ; }");
        run("nft", "add rule inet seen later icmp type destination-unreachable counter name words");
        let passed = || !run("nft", "list counters table inet seen").contains("packets 0");
        let listener = TcpListener::bind("192.0.2.1:30443").unwrap();
        for (from, believed) in [("192.0.2.9", true), ("192.0.2.20", false)] {
            // The connection is that of one who may, as is what is said of it: only who says it differs.
            let connection = client.run(|| TcpStream::connect("192.0.2.1:30443").unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            client.run(|| tell_too_long(from, peer)).unwrap();
            let start = Instant::now();
            while !passed() && start.elapsed() < Duration::from_millis(if believed { 5000 } else { 300 }) {}
            assert_eq!(passed(), believed, "{from}");
            run("nft", "reset counters table inet seen");
            drop((connection, accepted));
        }
    });
}

/// Says that a packet of the machine to `peer` was too long for the next machine, which takes 600 bytes.
fn tell_too_long(from: &str, peer: SocketAddr) {
    use socket2::{Domain, Protocol, Socket, Type};
    let (SocketAddr::V4(peer), Ok(from)) = (peer, from.parse::<std::net::Ipv4Addr>()) else { panic!("IPv4") };
    let mut quoted = vec![0x45, 0, 5, 220, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1];
    quoted.extend(peer.ip().octets());
    quoted.extend(30443u16.to_be_bytes());
    quoted.extend(peer.port().to_be_bytes());
    quoted.extend([0; 4]);
    let mut message = vec![3, 4, 0, 0, 0, 0, 2, 88];
    message.extend(quoted);
    let sum: u32 = message.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or_default();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let socket = Socket::new(Domain::IPV4, Type::from(3), Some(Protocol::ICMPV4)).unwrap();
    socket.bind(&SocketAddr::new(from.into(), 0).into()).unwrap();
    socket.send_to(&message, &"192.0.2.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
}

#[test]
fn what_others_take_away_is_made_again() {
    in_lab("what_others_take_away_is_made_again", |_| {
        let mut table = Table::open().unwrap();
        table.apply(&Program::new(&guard())).unwrap();
        let whole = || run("nft", "-s list ruleset");
        let before = whole();
        assert!(before.contains("table inet fairlead-lb") && before.contains("table arp fairlead-lb"), "{before}");
        assert!(!table.mend().unwrap());
        for damage in [
            "flush ruleset",
            "delete table arp fairlead-lb",
            "flush chain inet fairlead-lb new4",
            "flush set inet fairlead-lb allowed4",
            "add rule inet fairlead-lb prerouting drop",
            "add element inet fairlead-lb listeners4 { 192.0.2.100 . tcp . 22 }",
            "flush set inet fairlead-lb pods4",
        ] {
            run("nft", damage);
            let start = Instant::now();
            while !table.mend().unwrap() {
                assert!(start.elapsed() < Duration::from_secs(5), "not mended: {damage}");
            }
            assert_eq!(whole(), before, "{damage}");
        }
        // What is not ours is not looked at.
        run("nft", "add table inet other");
        assert!(!table.mend().unwrap());
        run("nft", "delete table inet other");
        let removed = cleanup().unwrap();
        assert_eq!(removed, ["table inet fairlead-lb of nftables", "table arp fairlead-lb of nftables"]);
        assert_eq!((whole().as_str(), cleanup().unwrap().len()), ("", 0));
    });
}

#[test]
fn ranges_of_pods_that_touch_are_taken_by_the_kernel_in_every_order_in_which_nodes_join() {
    let v4 = ["10.244.0.0/23", "10.244.2.0/24", "10.244.3.0/25", "10.244.4.0/24", "255.255.255.0/24", "0.0.0.0/24"];
    let v6 = ["fd00:10::/63", "fd00:10:0:2::/64", "fd00:10:0:3::/65", "fd00:10:0:4::/64", "ffff:ffff::/32", "::/64"];
    in_lab("ranges_of_pods_that_touch_are_taken_by_the_kernel_in_every_order_in_which_nodes_join", |_| {
        let guard_of = |ranges: &[&str]| {
            let mut guard = guard();
            guard.pods = ranges.iter().map(|range| range.parse().unwrap()).collect();
            guard
        };
        for ranges in [v4, v6] {
            for order in 0..ranges.len() {
                let mut joined = ranges.to_vec();
                joined.rotate_left(order);
                let mut table = Table::open().unwrap();
                // Nodes join one by one, then leave.
                for count in (1..=joined.len()).chain((0..joined.len()).rev()) {
                    let program = Program::new(&guard_of(&joined[..count]));
                    table.apply(&program).unwrap_or_else(|error| panic!("{:?}: {error}", &joined[..count]));
                    let listed =
                        run("nft", "list set inet fairlead-lb pods4") + &run("nft", "list set inet fairlead-lb pods6");
                    let missing = joined[..count].iter().find(|range| !listed.contains(**range));
                    assert_eq!(missing, None, "{listed}");
                    assert!(table.is_there(&program).unwrap(), "{:?}\n{listed}", &joined[..count]);
                }
                table.apply(&Program::new(&guard_of(&joined))).unwrap();
                // The whole at once, by a process that knows nothing of the one before.
                Table::open().unwrap().apply(&Program::new(&guard_of(&joined))).unwrap();
            }
        }
    });
}

#[test]
fn a_change_costs_what_changes() {
    let mut many = guard();
    for last in 0..200 {
        let one = frontend(&format!("198.51.100.{last}"), 80);
        many.addresses.insert(one.address);
        many.listeners.insert(one);
        many.rules.push(rule(Target::Frontend(one), &["203.0.113.0/24"]));
    }
    let mut more = many.clone();
    more.rules.push(rule(Target::Frontend(frontend("198.51.100.7", 80)), &["192.0.2.0/24"]));
    let size = |from: &Guard, to: &Guard| {
        let mut batch = fairlead_kernel::nft::Batch::new();
        let table = fairlead_kernel::nft::Table::new(fairlead_kernel::nft::Family::Inet, "fairlead-lb");
        Program::new(to).change(&Program::new(from), &table, &mut batch);
        batch.len()
    };
    assert!(size(&many, &more) < 600, "{}", size(&many, &more));
    assert_eq!(size(&many, &many), fairlead_kernel::nft::Batch::new().len());
}
