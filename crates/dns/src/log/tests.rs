use std::net::SocketAddr;
use std::time::Instant;

use fairlead_zone::message::{Edns, Head, Reading};

use super::*;
use crate::ask::Transport;

#[test]
fn a_question_is_told_as_coredns_tells_it() {
    let edns = Edns { size: 4096, dnssec_ok: false };
    let bytes = message::query(29008, &"example.org.".parse().expect("a name"), words::A, Some(edns));
    let Reading::Query(query) = message::read(&bytes) else { panic!("it is a query") };
    let from: SocketAddr = "[::1]:50759".parse().expect("an address");
    let came = Came { bytes: &bytes, from, local: from, transport: Transport::Udp, at: Instant::now() };
    let head = Head { recursion_available: true, ..Head::default() };
    let (reply, mut out) = (Reply { head, ..Reply::default() }, Vec::new());
    reply.write(&query, 512, &mut out);
    let told = Told { came: &came, query: &query, reply: &reply, bytes: &out, took: Duration::from_nanos(37_990_251) };
    let common = line(crate::corefile::COMMON, &told);
    assert_eq!(common, "[::1]:50759 - 29008 \"A IN example.org. udp 40 false 4096\" NOERROR qr,rd,ra 40 0.037990251s");
    assert_eq!(line("{remote} {unknown} {", &told), "[::1] - {");
    assert_eq!(classify(&reply), Class::Denial);
}
