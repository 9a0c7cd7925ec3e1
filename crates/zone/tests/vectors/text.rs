//! Records, types and rcodes as the vectors write them.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairlead_zone::Name;
use fairlead_zone::message::{Rcode, Record};

const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("HINFO", 13),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("LOC", 29),
    ("SRV", 33),
    ("NAPTR", 35),
    ("DNAME", 39),
    ("OPT", 41),
    ("DS", 43),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("SPF", 99),
    ("IXFR", 251),
    ("AXFR", 252),
    ("ANY", 255),
    ("CAA", 257),
];

pub(crate) fn to_type(text: &str) -> u16 {
    let known = TYPES.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    known.unwrap_or_else(|| text.strip_prefix("TYPE").unwrap_or_else(|| panic!("{text}")).parse().unwrap())
}

pub(crate) fn to_class(text: &str) -> u16 {
    match text {
        "IN" => 1,
        "CH" => 3,
        "HS" => 4,
        "NONE" => 254,
        "ANY" => 255,
        other => other.strip_prefix("CLASS").unwrap().parse().unwrap(),
    }
}

pub(crate) fn to_rcode(text: &str) -> Rcode {
    (0..24).map(Rcode).find(|rcode| rcode.as_str() == text).unwrap_or_else(|| panic!("{text}"))
}

pub(crate) fn to_rdata(rtype: &str, text: &str) -> Box<[u8]> {
    let name = |text: &str| text.parse::<Name>().unwrap().wire().to_vec();
    let words: Vec<&str> = text.split(' ').collect();
    let short = |text: &&str| text.parse::<u16>().unwrap().to_be_bytes();
    let long = |text: &&str| text.parse::<u32>().unwrap().to_be_bytes();
    let bytes = match rtype {
        "A" => text.parse::<Ipv4Addr>().unwrap().octets().to_vec(),
        "AAAA" => text.parse::<Ipv6Addr>().unwrap().octets().to_vec(),
        "CNAME" | "NS" | "PTR" => name(text),
        "TXT" => [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat(),
        "MX" => [short(&words[0]).to_vec(), name(words[1])].concat(),
        "SRV" => [words[..3].iter().flat_map(short).collect(), name(words[3])].concat(),
        "SOA" => [name(words[0]), name(words[1]), words[2..].iter().flat_map(long).collect()].concat(),
        other => panic!("{other}"),
    };
    bytes.into()
}

/// Owner, TTL, class, type and data; names in lower case, and the serial number left out.
pub(crate) fn show(record: &Record) -> String {
    let known = TYPES.iter().find(|(_, number)| *number == record.rtype);
    let rtype = known.map_or_else(|| format!("TYPE{}", record.rtype), |(name, _)| (*name).to_owned());
    assert_eq!(record.class, 1);
    format!("{} {} IN {rtype} {}", record.name.to_lower(), record.ttl, show_rdata(record))
}

fn show_rdata(record: &Record) -> String {
    let data = &record.rdata;
    let number = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    match record.rtype {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(&**data).unwrap()).to_string(),
        28 => Ipv6Addr::from(<[u8; 16]>::try_from(&**data).unwrap()).to_string(),
        2 | 5 | 12 => record.target().unwrap().to_lower().to_string(),
        33 => {
            let target = Name::from_wire(&data[6..]).unwrap().to_lower();
            format!("{} {} {} {target}", number(0), number(2), number(4))
        }
        15 => format!("{} {}", number(0), Name::from_wire(&data[2..]).unwrap().to_lower()),
        16 => format!("\"{}\"", String::from_utf8_lossy(&data[1..])),
        6 => {
            let (server, at) = Name::read(data, 0).unwrap();
            let (mailbox, at) = Name::read(data, at).unwrap();
            let numbers = data[at..].chunks(4).map(|four| u32::from_be_bytes(four.try_into().unwrap()).to_string());
            let numbers: Vec<String> = numbers.skip(1).collect();
            format!("{} {} * {}", server.to_lower(), mailbox.to_lower(), numbers.join(" "))
        }
        _ => format!("{data:?}"),
    }
}

/// A record as a vector writes it, in the form [`show`] has.
pub(crate) fn canonical(text: &str) -> String {
    let words: Vec<&str> = text.splitn(5, ' ').collect();
    let data = match words[3] {
        "TXT" => words[4].to_owned(),
        "SOA" => {
            let mut parts: Vec<String> = words[4].to_lowercase().split(' ').map(str::to_owned).collect();
            parts[2] = "*".to_owned();
            parts.join(" ")
        }
        _ => words[4].to_lowercase(),
    };
    format!("{} {} {} {} {data}", words[0].to_lowercase(), words[1], words[2], words[3])
}
