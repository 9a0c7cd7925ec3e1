//! ARP (RFC 826) as values: who asks for an IPv4 address, who says it has one.

use std::net::Ipv4Addr;

use super::{HEAD, Hardware, ethertype, head};

pub(super) const ETHERTYPE: u16 = 0x0806;
/// Ethernet, IPv4, and how long addresses of the two are.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A question.
    Request,
    /// An answer.
    Reply,
}

/// A packet of ARP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// Question or answer.
    pub operation: Operation,
    /// Who sends it, by its own words.
    pub hardware: Hardware,
    /// The sender's address; unspecified in probes.
    pub sender: Ipv4Addr,
    /// Whom it is for; in questions it means nothing.
    pub target_hardware: Hardware,
    /// The address that is asked for, or of whom the answer is for.
    pub target: Ipv4Addr,
}

impl Arp {
    /// The answer to a question, from who has the address.
    pub fn answer(&self, ours: Hardware) -> Arp {
        Arp {
            operation: Operation::Reply,
            hardware: ours,
            sender: self.target,
            target_hardware: self.hardware,
            target: self.sender,
        }
    }

    /// What tells everybody who has an address, without being asked. Some machines learn from questions only, some from answers
    /// only: whoever announces sends both. Linux believes at once only answers that name their sender twice.
    pub fn announcement(operation: Operation, ours: Hardware, address: Ipv4Addr) -> Arp {
        Arp { operation, hardware: ours, sender: address, target_hardware: ours, target: address }
    }

    /// Asks whether somebody has an address, without claiming it (RFC 5227).
    pub fn probe(ours: Hardware, address: Ipv4Addr) -> Arp {
        let (operation, sender) = (Operation::Request, Ipv4Addr::UNSPECIFIED);
        Arp { operation, hardware: ours, sender, target_hardware: [0; 6], target: address }
    }

    /// As a frame.
    pub fn frame(&self, to: Hardware) -> Vec<u8> {
        let operation: u16 = if self.operation == Operation::Request { 1 } else { 2 };
        let mut frame = head(to, self.hardware, ETHERTYPE);
        for part in [
            &FORMAT[..],
            &operation.to_be_bytes(),
            &self.hardware,
            &self.sender.octets(),
            &self.target_hardware,
            &self.target.octets(),
        ] {
            frame.extend_from_slice(part);
        }
        frame
    }

    /// What a frame says; `None`: something else.
    pub fn read(frame: &[u8]) -> Option<Arp> {
        let packet = frame.get(HEAD..HEAD + 28).filter(|_| ethertype(frame) == Some(ETHERTYPE))?;
        if packet[..6] != FORMAT {
            return None;
        }
        let operation = match packet[6..8] {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return None,
        };
        let ip = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
        let hardware = |at: usize| Hardware::try_from(packet.get(at..at + 6)?).ok();
        let (sender, target) = (ip(14)?, ip(24)?);
        Some(Arp { operation, hardware: hardware(8)?, sender, target_hardware: hardware(18)?, target })
    }
}
