use super::*;
use crate::netlink::hostile;

fn message(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let mut w = Writer::new();
    w.begin(GET, 0, 1, &nft::header(2, 0));
    let tuple = Tuple { source, destination, protocol: 17, source_port: 4000, destination_port: 53 };
    put_tuple(&mut w, ORIGINAL, &tuple);
    put_tuple(&mut w, REPLY, &tuple);
    w.u32_be(STATUS, status::DESTINATION_NAT);
    w.u32_be(TIMEOUT, 30);
    w.u16_be(ZONE, 7);
    w.u32_be(ID, 9);
    for kind in [COUNTERS_ORIGINAL, COUNTERS_REPLY] {
        w.nest(kind, |w| {
            w.u64_be(1, 3);
            w.u64_be(2, u64::MAX);
        });
    }
    w.end();
    w.as_bytes().to_vec()
}

#[test]
fn no_connection_does_harm() {
    let four = message([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let six = message([1; 16].into(), [2; 16].into());
    hostile::check(&[&four, &six], |message| entry(message).is_some());
}
