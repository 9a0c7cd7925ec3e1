//! How numbers of messages are written: types, classes, codes and operations.

/// Types with a name. Others are written `TYPE65280`.
const TYPES: [(u16, &str); 40] = [
    (1, "A"),
    (2, "NS"),
    (5, "CNAME"),
    (6, "SOA"),
    (12, "PTR"),
    (13, "HINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (24, "SIG"),
    (25, "KEY"),
    (28, "AAAA"),
    (29, "LOC"),
    (33, "SRV"),
    (35, "NAPTR"),
    (36, "KX"),
    (37, "CERT"),
    (39, "DNAME"),
    (41, "OPT"),
    (43, "DS"),
    (44, "SSHFP"),
    (45, "IPSECKEY"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (50, "NSEC3"),
    (51, "NSEC3PARAM"),
    (52, "TLSA"),
    (59, "CDS"),
    (60, "CDNSKEY"),
    (61, "OPENPGPKEY"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (99, "SPF"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (255, "ANY"),
    (257, "CAA"),
];
const CLASSES: [(u16, &str); 5] = [(1, "IN"), (3, "CH"), (4, "HS"), (254, "NONE"), (255, "ANY")];
const CODES: [(u16, &str); 13] = [
    (0, "NOERROR"),
    (1, "FORMERR"),
    (2, "SERVFAIL"),
    (3, "NXDOMAIN"),
    (4, "NOTIMP"),
    (5, "REFUSED"),
    (6, "YXDOMAIN"),
    (7, "YXRRSET"),
    (8, "NXRRSET"),
    (9, "NOTAUTH"),
    (10, "NOTZONE"),
    (16, "BADVERS"),
    (23, "BADCOOKIE"),
];

/// The type of addresses of version 4.
pub(crate) const A: u16 = 1;
/// The type of names of name servers.
pub(crate) const NS: u16 = 2;
/// The type of aliases.
pub(crate) const CNAME: u16 = 5;
/// The type of the head of a zone.
pub(crate) const SOA: u16 = 6;
/// The type of names of addresses.
pub(crate) const PTR: u16 = 12;
/// The type of a machine's description; `loop` asks for it.
pub(crate) const HINFO: u16 = 13;
/// The type of mail servers.
pub(crate) const MX: u16 = 15;
/// The type of texts.
pub(crate) const TXT: u16 = 16;
/// The type of addresses of version 6.
pub(crate) const AAAA: u16 = 28;
/// The type of services.
pub(crate) const SRV: u16 = 33;
/// The class of the internet.
pub(crate) const IN: u16 = 1;
/// Any type, or any class.
pub(crate) const ANY: u16 = 255;

/// All is well.
pub(crate) const NOERROR: u8 = 0;

/// The name of a type.
pub(crate) fn type_name(number: u16) -> String {
    known(&TYPES, number).map_or_else(|| format!("TYPE{number}"), str::to_owned)
}

/// A type by its name.
pub(crate) fn type_number(name: &str) -> Option<u16> {
    let other = || name.to_ascii_uppercase().strip_prefix("TYPE")?.parse().ok();
    number(&TYPES, name).or_else(other)
}

/// The name of a class.
pub(crate) fn class_name(number: u16) -> String {
    known(&CLASSES, number).map_or_else(|| format!("CLASS{number}"), str::to_owned)
}

/// A class by its name.
pub(crate) fn class_number(name: &str) -> Option<u16> {
    number(&CLASSES, name)
}

/// The name of the code of a reply.
pub(crate) fn code_name(code: u16) -> String {
    known(&CODES, code).map_or_else(|| code.to_string(), str::to_owned)
}

/// A code by its name or number.
pub(crate) fn code_number(name: &str) -> Option<u8> {
    let named = number(&CODES, name).and_then(|code| u8::try_from(code).ok());
    named.or_else(|| name.parse().ok()).filter(|code| *code < 16)
}

fn known(table: &'static [(u16, &'static str)], number: u16) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

fn number(table: &[(u16, &str)], name: &str) -> Option<u16> {
    table.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(number, _)| *number)
}
