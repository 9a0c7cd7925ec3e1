//! Neighbour discovery (RFC 4861) as values: who asks for an IPv6 address, who says it has one.

use std::net::Ipv6Addr;

use super::{HEAD, Hardware, ethertype, head, sender};

pub(super) const ETHERTYPE: u16 = 0x86dd;
pub(super) const ICMPV6: u8 = 58;
pub(super) const SOLICITATION: u8 = 135;
pub(super) const ADVERTISEMENT: u8 = 136;
/// Packets that crossed a router have less left: they are not of this link.
const HOPS: u8 = 255;
const IPV6_HEAD: usize = 40;
const SOURCE_HARDWARE: u8 = 1;
const TARGET_HARDWARE: u8 = 2;
/// An answer to a question.
const SOLICITED: u8 = 0x40;
/// What was known before is to be forgotten.
const OVERRIDE: u8 = 0x20;
/// All machines of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ndp {
    /// Somebody asks who has an address.
    Solicitation(Solicitation),
    /// Somebody says that it has one.
    Advertisement(Advertisement),
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solicitation {
    /// The hardware address of who asks.
    pub hardware: Hardware,
    /// Who asks; unspecified: somebody who wants the address itself.
    pub source: Ipv6Addr,
    /// What is asked for.
    pub target: Ipv6Addr,
}

/// An answer, asked for or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertisement {
    /// The hardware address of who has the address.
    pub hardware: Hardware,
    /// Whom it is for.
    pub destination: Ipv6Addr,
    /// The address.
    pub target: Ipv6Addr,
    /// Whether somebody asked.
    pub solicited: bool,
}

/// The group of those who may have an address.
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let end = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(end[13]), u16::from_be_bytes([end[14], end[15]]))
}

/// The hardware address of a group.
pub fn group_hardware(group: Ipv6Addr) -> Hardware {
    let end = group.octets();
    [0x33, 0x33, end[12], end[13], end[14], end[15]]
}

impl Solicitation {
    /// Asks whether somebody has an address, without claiming it (RFC 4862).
    pub fn probe(ours: Hardware, target: Ipv6Addr) -> Solicitation {
        Solicitation { hardware: ours, source: Ipv6Addr::UNSPECIFIED, target }
    }

    /// The answer, and the hardware address it goes to. Who has no address yet hears it with everybody else.
    pub fn answer(&self, ours: Hardware) -> (Advertisement, Hardware) {
        let Solicitation { hardware, source, target } = *self;
        if source.is_unspecified() {
            return Advertisement::announcement(ours, target);
        }
        (Advertisement { hardware: ours, destination: source, target, solicited: true }, hardware)
    }

    /// As a frame.
    pub fn frame(&self) -> Vec<u8> {
        let group = solicited_node(self.target);
        let mut body = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(&self.target.octets());
        if !self.source.is_unspecified() {
            body.extend_from_slice(&[SOURCE_HARDWARE, 1]);
            body.extend_from_slice(&self.hardware);
        }
        frame([self.hardware, group_hardware(group)], [self.source, group], body)
    }
}

impl Advertisement {
    /// What tells everybody who has an address, without being asked, and the hardware address it goes to.
    pub fn announcement(ours: Hardware, target: Ipv6Addr) -> (Advertisement, Hardware) {
        let one = Advertisement { hardware: ours, destination: ALL_NODES, target, solicited: false };
        (one, group_hardware(ALL_NODES))
    }

    /// As a frame. It comes from the address itself, which is ours.
    pub fn frame(&self, to: Hardware) -> Vec<u8> {
        let flags = OVERRIDE | if self.solicited { SOLICITED } else { 0 };
        let mut body = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
        body.extend_from_slice(&self.target.octets());
        body.extend_from_slice(&[TARGET_HARDWARE, 1]);
        body.extend_from_slice(&self.hardware);
        frame([self.hardware, to], [self.target, self.destination], body)
    }
}

impl Ndp {
    /// What a frame says; `None`: something else, or something that must not be believed.
    pub fn read(frame: &[u8]) -> Option<Ndp> {
        let ip = frame.get(HEAD..HEAD + IPV6_HEAD).filter(|_| ethertype(frame) == Some(ETHERTYPE))?;
        let length = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        let body = frame.get(HEAD + IPV6_HEAD..)?.get(..length)?;
        let (source, destination) = (address(ip, 8)?, address(ip, 24)?);
        let fine = ip[0] >> 4 == 6 && ip[6] == ICMPV6 && ip[7] == HOPS && checksum(source, destination, body) == 0;
        let target = address(body, 8).filter(|target| fine && !target.is_multicast())?;
        let from = sender(frame)?;
        let options = body.get(24..)?;
        match (body[0], body[1]) {
            (SOLICITATION, 0) => {
                let hardware = option(options, SOURCE_HARDWARE).unwrap_or(from);
                Some(Ndp::Solicitation(Solicitation { hardware, source, target }))
            }
            (ADVERTISEMENT, 0) => Some(Ndp::Advertisement(Advertisement {
                hardware: option(options, TARGET_HARDWARE).unwrap_or(from),
                destination,
                target,
                solicited: body[4] & SOLICITED != 0,
            })),
            _ => None,
        }
    }
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?))
}

/// The hardware address in a list of options: each has a type and its length in units of eight bytes.
fn option(mut options: &[u8], kind: u8) -> Option<Hardware> {
    while let [found, length, ..] = *options {
        let length = usize::from(length) * 8;
        let one = options.get(..length).filter(|_| length > 0)?;
        if found == kind {
            return one.get(2..8)?.try_into().ok();
        }
        options = &options[length..];
    }
    None
}

/// A frame from and to; `body` is ICMPv6 with an empty checksum.
fn frame([from, to]: [Hardware; 2], [source, destination]: [Ipv6Addr; 2], mut body: Vec<u8>) -> Vec<u8> {
    let sum = checksum(source, destination, &body);
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = head(to, from, ETHERTYPE);
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    frame.extend_from_slice(&[0x60, 0, 0, 0]);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[ICMPV6, HOPS]);
    frame.extend_from_slice(&source.octets());
    frame.extend_from_slice(&destination.octets());
    frame.extend_from_slice(&body);
    frame
}

/// The checksum of ICMPv6; of a packet that has the right one it is 0.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, body: &[u8]) -> u16 {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    let pseudo = [&source.octets()[..], &destination.octets(), &length, &[0, 0, 0, ICMPV6]].concat();
    let words = pseudo.chunks(2).chain(body.chunks(2));
    let mut sum: u64 = words.map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}
