use super::arp::{Arp, Operation};
use super::ndp::{Advertisement, Ndp, Solicitation, group_hardware, solicited_node};
use super::*;

const OURS: Hardware = [2, 0, 0, 0, 0, 1];
const THEIRS: Hardware = [2, 0, 0, 0, 0, 2];

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[test]
fn arp_is_read_and_written() {
    let check = |arp: Arp, to: Hardware, frame: &str| {
        let frame = bytes(&frame.replace("ARP", "0806 0001 0800 06 04"));
        assert_eq!(arp.frame(to), frame, "{arp:?}");
        assert_eq!(Arp::read(&frame), Some(arp));
    };
    let asked = Arp {
        operation: Operation::Request,
        hardware: THEIRS,
        sender: [192, 0, 2, 9].into(),
        target_hardware: [0; 6],
        target: [192, 0, 2, 100].into(),
    };
    check(asked, BROADCAST, "ffffffffffff 020000000002 ARP 0001 020000000002 c0000209 000000000000 c0000264");
    let answer = asked.answer(OURS);
    check(answer, THEIRS, "020000000002 020000000001 ARP 0002 020000000001 c0000264 020000000002 c0000209");
    let probe = Arp::probe(OURS, [192, 0, 2, 100].into());
    check(probe, BROADCAST, "ffffffffffff 020000000001 ARP 0001 020000000001 00000000 000000000000 c0000264");
    let announced = Arp::announcement(Operation::Reply, OURS, [192, 0, 2, 100].into());
    check(announced, BROADCAST, "ffffffffffff 020000000001 ARP 0002 020000000001 c0000264 020000000001 c0000264");
}

#[test]
fn neighbour_discovery_is_read_and_written() {
    let target = "fd00::64".parse().unwrap();
    let asked = Solicitation { hardware: THEIRS, source: "fd00::9".parse().unwrap(), target };
    let probe = Solicitation::probe(OURS, target);
    for one in [asked, probe] {
        assert_eq!(Ndp::read(&one.frame()), Some(Ndp::Solicitation(one)));
    }
    let (answer, to) = asked.answer(OURS);
    assert_eq!((to, answer.solicited, answer.destination), (THEIRS, true, asked.source));
    assert_eq!(Ndp::read(&answer.frame(to)), Some(Ndp::Advertisement(answer)));
    let (heard, to) = probe.answer(OURS);
    assert_eq!((to, heard.solicited), ([0x33, 0x33, 0, 0, 0, 1], false));
    assert_eq!(Advertisement::announcement(OURS, target), (heard, to));
    let expected = "020000000002 020000000001 86dd 60000000 0020 3a ff \
                    fd000000000000000000000000000064 fd000000000000000000000000000009 \
                    88 00 1bcf 60000000 fd000000000000000000000000000064 0201 020000000001";
    assert_eq!(answer.frame(THEIRS), bytes(expected));
}

#[test]
fn groups_are_made_of_the_end_of_an_address() {
    let group = solicited_node("fd00::1:2:3456:789a".parse().unwrap());
    assert_eq!(group, "ff02::1:ff56:789a".parse::<Ipv6Addr>().unwrap());
    assert_eq!(group_hardware(group), [0x33, 0x33, 0xff, 0x56, 0x78, 0x9a]);
}

#[test]
fn what_is_not_believable_is_not_read() {
    let target = "fd00::64".parse().unwrap();
    let (answer, to) = Advertisement::announcement(OURS, target);
    let good = answer.frame(to);
    // A wrong checksum; a packet that came through a router.
    for at in [57, 21] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(Ndp::read(&bad), None, "{at}");
    }
    let arp = Arp::probe(OURS, [192, 0, 2, 1].into()).frame(BROADCAST);
    assert!(Arp::read(&arp[..41]).is_none() && Arp::read(&good).is_none() && Ndp::read(&arp).is_none());
}

#[test]
fn no_frame_does_harm() {
    let (source, target) = ("fd00::9".parse().unwrap(), "fd00::64".parse().unwrap());
    let asked = Solicitation { hardware: THEIRS, source, target };
    let probe = Arp::probe(OURS, [1, 2, 3, 4].into()).frame(BROADCAST);
    let good = [asked.frame(), asked.answer(OURS).0.frame(THEIRS), probe];
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50_000 {
        let mut frame = good[random.usize(..good.len())].clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..frame.len());
            frame[at] = random.u8(..);
        }
        frame.truncate(random.usize(..=frame.len()));
        if let Some(arp) = Arp::read(&frame) {
            assert_eq!(Arp::read(&arp.frame(OURS)), Some(arp));
        }
        if let Some(Ndp::Advertisement(said)) = Ndp::read(&frame) {
            assert_eq!(Ndp::read(&said.frame(OURS)), Some(Ndp::Advertisement(said)));
        }
    }
}
