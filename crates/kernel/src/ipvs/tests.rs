use super::*;
use crate::netlink::Messages;

fn message(body: impl FnOnce(&mut Writer)) -> Writer {
    let mut writer = Writer::new();
    writer.begin(30, 0, 1, &wire::header(command::NEW_SERVICE));
    body(&mut writer);
    writer.end();
    writer
}

fn service() -> Service {
    Service {
        at: At::Address { address: [10, 96, 0, 10].into(), protocol: 6, port: 80 },
        scheduler: "sh".into(),
        affinity_s: Some(10_800),
        flags: scheduler_flag::PORT,
        counted: Counted::default(),
    }
}

#[test]
fn a_service_has_the_bytes_of_the_kernel_header() {
    let written = message(|w| wire::service(w, &service()));
    #[rustfmt::skip]
    let expected = [
        // nested service
        &[84, 0, 1, 0x80][..],
        &[6, 0, 1, 0, 2, 0, 0, 0],                                  // IPv4
        &[6, 0, 2, 0, 6, 0, 0, 0],                                  // TCP
        &[20, 0, 3, 0, 10, 96, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[6, 0, 4, 0, 0, 80, 0, 0],                                 // port, network order
        &[7, 0, 6, 0, b's', b'h', 0, 0],
        &[12, 0, 7, 0, 0x11, 0, 0, 0, 0x39, 0, 0, 0],               // persistent, port; mask
        &[8, 0, 8, 0, 0x30, 0x2a, 0, 0],                            // 10800 s
        &[8, 0, 9, 0, 0xff, 0xff, 0xff, 0xff],
    ].concat();
    assert_eq!(&written.as_bytes()[20..], &expected[..]);
}

#[test]
fn services_and_destinations_survive_the_way_to_bytes_and_back() {
    for address in [IpAddr::from([10, 0, 0, 1]), "fd00::1".parse().unwrap()] {
        let v4 = address.is_ipv4();
        for at in [At::Address { address, protocol: 132, port: 80 }, At::Mark { v4, mark: 0xf600_0001 }] {
            let wanted = Service { at, ..service() };
            let written = message(|w| wire::service(w, &wanted));
            let read = Messages::new(written.as_bytes()).next().and_then(|message| wire::read_service(&message));
            assert_eq!(read, Some(wanted));
        }
        let wanted = Destination::new(address, 8080, 3);
        let written = message(|w| wire::destination(w, &wanted));
        let read = Messages::new(written.as_bytes()).next();
        assert_eq!(read.and_then(|message| wire::read_destination(&message, !v4)), Some(wanted));
    }
}

#[test]
fn a_destination_of_the_kernel_is_read_with_what_it_counted() {
    let written = message(|w| {
        w.nest(2, |w| {
            w.bytes(1, &[10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            w.u16_be(2, 8080);
            w.u32(4, 0);
            w.u32(7, 3);
            w.u32(8, 5);
            w.u32(9, 7);
            w.nest(12, |w| [(1, 11u64), (2, 22), (4, 44)].iter().for_each(|(k, v)| w.bytes(*k, &v.to_ne_bytes())));
        });
    });
    let read = Messages::new(written.as_bytes()).next().and_then(|message| wire::read_destination(&message, true));
    let counted = Counted { connections: 11, packets: 22, bytes: 44 };
    let wanted = Destination { active: 3, inactive: 5, counted, ..Destination::new([10, 0, 0, 9].into(), 8080, 0) };
    assert_eq!(read, Some(wanted));
}

#[test]
fn a_kernel_without_ipvs_is_said_to_have_none() {
    let here = std::path::Path::new("/proc/net/ip_vs").exists();
    match Ipvs::open() {
        Ok(_) => {}
        Err(error) => assert!(!here && matches!(error, Error::Absent("IPVS")), "{error}"),
    }
}

#[test]
fn no_service_or_destination_does_harm() {
    let service = message(|w| wire::service(w, &service()));
    let destination = message(|w| wire::destination(w, &Destination::new([1; 16].into(), 8080, 3)));
    crate::netlink::hostile::check(&[service.as_bytes(), destination.as_bytes()], |message| {
        let found = wire::read_destination(message, true).is_some() || wire::read_timeouts(message).is_some();
        wire::read_service(message).is_some() || found
    });
}
