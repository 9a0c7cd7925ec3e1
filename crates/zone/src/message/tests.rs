use super::{Edns, Message, Outcome, QR, Rcode, Reading, query, read, reply};
use crate::name::Name;
use crate::rtype;
use crate::zone::tests::{cluster, options};

fn web() -> Name {
    "web.default.svc.cluster.local".parse().unwrap()
}

/// What is written for a message: an rcode, with `+` if the question is repeated, or nothing.
fn refusal(bytes: &[u8]) -> String {
    match read(bytes) {
        Reading::Ignored => "nothing".to_owned(),
        Reading::Query(_) => "read".to_owned(),
        Reading::Rejected(rejection) => {
            let mut out = Vec::new();
            rejection.write(&mut out);
            let message = Message::parse(&out).unwrap();
            assert_eq!(out[..2], bytes[..2]);
            assert_ne!(message.flags & QR, 0);
            format!("{}{}", message.rcode.as_str(), if message.question.is_some() { "+" } else { "" })
        }
    }
}

#[test]
fn what_is_malformed_is_refused_or_ignored() {
    let good = query(7, &web(), rtype::A, Some(Edns::default()));
    let end = good.len();
    let check = |expect: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        assert_eq!(refusal(&bytes), expect, "{bytes:?}");
    };
    check("read", &|_| {});
    check("nothing", &|bytes| bytes.truncate(11));
    check("nothing", &|bytes| bytes[2] |= 0x80);
    check("NOTIMP", &|bytes| bytes[2] |= 0x28);
    check("FORMERR", &|bytes| bytes[5] = 0);
    check("FORMERR", &|bytes| bytes[5] = 2);
    check("FORMERR", &|bytes| bytes[7] = 2);
    check("FORMERR", &|bytes| bytes[11] = 2);
    check("FORMERR", &|bytes| bytes[11] = 3);
    check("FORMERR", &|bytes| bytes.truncate(20));
    check("FORMERR", &|bytes| bytes.truncate(end - 1));
    check("FORMERR", &|bytes| bytes[12] = 0xc0);
    check("BADVERS+", &|bytes| bytes[end - 5] = 1);
    check("read", &|bytes| bytes.extend([1, 2, 3]));
    // Options must add up.
    check("FORMERR", &|bytes| {
        bytes[end - 1] = 3;
        bytes.extend([0, 1, 0]);
    });
    check("read", &|bytes| {
        bytes[end - 1] = 4;
        bytes.extend([0, 1, 0, 0]);
    });
}

#[test]
fn the_question_comes_back_to_the_byte() {
    let zone = cluster(options());
    for name in ["wEB.default.SVC.cluster.local", "NOsuch.default.svc.Cluster.local"] {
        let bytes = query(7, &name.parse().unwrap(), rtype::A, None);
        let Reading::Query(query) = read(&bytes) else { panic!("{name}") };
        let mut out = Vec::new();
        reply(&zone, &query, 0, query.limit(), &mut out);
        assert_eq!(out[12..bytes.len()], bytes[12..]);
        assert_eq!(query.name().to_string(), format!("{name}."));
    }
}

#[test]
fn a_denial_carries_the_start_of_the_zone() {
    let zone = cluster(options());
    let bytes = query(7, &"nosuch.default.svc.cluster.local".parse().unwrap(), rtype::A, None);
    let Reading::Query(query) = read(&bytes) else { panic!("it is one") };
    let mut out = Vec::new();
    let outcome = reply(&zone, &query, 0, query.limit(), &mut out);
    assert_eq!(outcome, Outcome::NameError(&"cluster.local".parse().unwrap()));
    let message = Message::parse(&out).unwrap();
    assert_eq!(message.rcode, Rcode::NX_DOMAIN);
    assert_eq!(message.authority, [zone.soa(&"cluster.local".parse().unwrap()).unwrap()]);
}
