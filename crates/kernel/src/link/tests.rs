use super::*;
use crate::netlink::hostile;

fn message(kind: u16, header: &[u8], body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    w.begin(kind, 0, 1, header);
    body(&mut w);
    w.end();
    w.as_bytes().to_vec()
}

#[test]
fn no_link_address_or_route_does_harm() {
    let prefix = Prefix { address: [10, 0, 0, 1].into(), length: 24 };
    let route_there = Route { destination: prefix, gateway: Some([1; 16].into()), link: Some(3), source: None };
    let good = [
        message(NEW_LINK, &link_header(1, UP, 0), |w| {
            w.text(IFLA_IFNAME, "eth0");
            w.u32(IFLA_MTU, 1500);
            w.nest(IFLA_LINKINFO, |w| w.text(1, "veth"));
        }),
        message(GET_ADDRESS, &address_header(1, prefix, 0), |w| put_address(w, prefix)),
        message(NEW_ROUTE, &route_header(&route_there), |w| put_route(w, &route_there)),
    ];
    hostile::check(&[&good[0], &good[1], &good[2]], |message| {
        let local = local::address(message).is_some();
        [link(message).is_some(), address(message).is_some(), route(message).is_some(), local].contains(&true)
    });
}
