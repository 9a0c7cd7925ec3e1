//! A link by which addresses are announced: what is heard there, and what is said.

use std::io;
use std::net::IpAddr;

use fairlead_kernel::Error;
use fairlead_kernel::packet::arp::{Arp, Operation};
use fairlead_kernel::packet::ndp::{Advertisement, Ndp, Solicitation};
use fairlead_kernel::packet::{BROADCAST, Hardware, Protocol, Socket};

/// A link with its sockets.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) hardware: Hardware,
    pub(super) arp: Socket,
    pub(super) ndp: Socket,
}

/// What was heard, as far as it concerns somebody who holds addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Somebody wants to know who has an address.
    Asked(Question),
    /// Somebody says that it has an address.
    Claimed(IpAddr, Hardware),
}

/// A question that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Arp(Arp),
    Ndp(Solicitation),
}

impl Question {
    /// What is asked for.
    pub(super) fn address(&self) -> IpAddr {
        match self {
            Question::Arp(arp) => arp.target.into(),
            Question::Ndp(asked) => asked.target.into(),
        }
    }
}

impl Port {
    pub(super) fn open(link: u32, hardware: Hardware) -> Result<Port, Error> {
        let (arp, ndp) = (Socket::open(link, Protocol::Arp)?, Socket::open(link, Protocol::Ndp)?);
        Ok(Port { hardware, arp, ndp })
    }

    /// The next that was heard of a protocol; `None`: nothing is left. Inside, `None`: something of no interest.
    pub(super) fn hear(&mut self, protocol: Protocol) -> io::Result<Option<Option<Heard>>> {
        match protocol {
            Protocol::Arp => Ok(self.arp.receive()?.map(arp)),
            Protocol::Ndp => Ok(self.ndp.receive()?.map(ndp)),
        }
    }

    /// Answers a question: we have it.
    pub(super) fn answer(&self, question: &Question) -> io::Result<()> {
        match question {
            Question::Arp(asked) => self.arp.send(&asked.answer(self.hardware).frame(asked.hardware)),
            Question::Ndp(asked) => {
                let (answer, to) = asked.answer(self.hardware);
                self.ndp.send(&answer.frame(to))
            }
        }
    }

    /// Tells everybody that we have an address.
    pub(super) fn announce(&self, address: IpAddr) -> io::Result<()> {
        match address {
            IpAddr::V4(address) => [Operation::Request, Operation::Reply].into_iter().try_for_each(|operation| {
                self.arp.send(&Arp::announcement(operation, self.hardware, address).frame(BROADCAST))
            }),
            IpAddr::V6(address) => {
                let (announcement, to) = Advertisement::announcement(self.hardware, address);
                self.ndp.send(&announcement.frame(to))
            }
        }
    }

    /// Asks whether somebody has an address.
    pub(super) fn probe(&self, address: IpAddr) -> io::Result<()> {
        match address {
            IpAddr::V4(address) => self.arp.send(&Arp::probe(self.hardware, address).frame(BROADCAST)),
            IpAddr::V6(address) => self.ndp.send(&Solicitation::probe(self.hardware, address).frame()),
        }
    }
}

/// Who sends from an address has it, or says so; who asks without one wants to have it.
fn arp(frame: &[u8]) -> Option<Heard> {
    let arp = Arp::read(frame)?;
    if arp.operation == Operation::Request && arp.sender != arp.target {
        return Some(Heard::Asked(Question::Arp(arp)));
    }
    (!arp.sender.is_unspecified()).then_some(Heard::Claimed(arp.sender.into(), arp.hardware))
}

fn ndp(frame: &[u8]) -> Option<Heard> {
    match Ndp::read(frame)? {
        Ndp::Solicitation(asked) => Some(Heard::Asked(Question::Ndp(asked))),
        Ndp::Advertisement(said) => Some(Heard::Claimed(said.target.into(), said.hardware)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Hardware = [2, 0, 0, 0, 0, 2];

    #[test]
    fn questions_and_claims_are_told_apart() {
        let address: std::net::Ipv4Addr = [192, 0, 2, 100].into();
        let frame = |arp: Arp| arp.frame(BROADCAST);
        let claimed = Some(Heard::Claimed(address.into(), OTHER));
        for operation in [Operation::Request, Operation::Reply] {
            assert_eq!(arp(&frame(Arp::announcement(operation, OTHER, address))), claimed);
        }
        let probe = Arp::probe(OTHER, address);
        assert_eq!(arp(&frame(probe)), Some(Heard::Asked(Question::Arp(probe))));
        assert_eq!(arp(&frame(probe.answer([2; 6]))), Some(Heard::Claimed(address.into(), [2; 6])));

        let address = "fd00::64".parse().unwrap();
        let probe = Solicitation::probe(OTHER, address);
        assert_eq!(ndp(&probe.frame()), Some(Heard::Asked(Question::Ndp(probe))));
        let (said, to) = Advertisement::announcement(OTHER, address);
        assert_eq!(ndp(&said.frame(to)), Some(Heard::Claimed(address.into(), OTHER)));
        assert_eq!((ndp(b"x"), arp(b"x")), (None, None));
    }
}
