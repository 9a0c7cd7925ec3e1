//! Virtual servers, addresses and rules as plain data, and the steps that change them. A [`Program`] takes steps as the kernel
//! would and refuses what the kernel would refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use fairlead_plan::{Family, Protocol};
use thiserror::Error;

use crate::nft;

/// What packets must be addressed to: the identity of a virtual server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// This address and port.
    Address {
        /// The address.
        ip: IpAddr,
        /// The protocol.
        protocol: Protocol,
        /// The port.
        port: u16,
    },
    /// Whatever has this mark.
    Mark {
        /// And is of this family.
        family: Family,
        /// All of the mark.
        mark: u32,
    },
}

/// How a virtual server spreads connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Balance {
    /// The protocol, which a server with a mark does not know itself.
    pub protocol: Protocol,
    /// The kernel's scheduler.
    pub scheduler: String,
    /// Whether and how a client stays with its endpoint.
    pub affinity: Option<Affinity>,
}

/// How a client stays with its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affinity {
    /// The kernel remembers it for so many seconds.
    Remembered(u32),
    /// It is to stay for so many seconds, and does for as long as the endpoint is there: its address decides. Servers with a
    /// mark have this, because the kernel does not translate ports for those it remembers by mark.
    Hashed(u32),
}

impl Affinity {
    /// For how many seconds.
    pub fn seconds(self) -> u32 {
        match self {
            Affinity::Remembered(seconds) | Affinity::Hashed(seconds) => seconds,
        }
    }
}

/// A virtual server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// How it spreads connections.
    pub balance: Balance,
    /// Where to, with what share of them.
    pub endpoints: BTreeMap<SocketAddr, u32>,
}

/// One step of a change. In the order in which they come, connections to what stays are never without a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes a virtual server without endpoints.
    AddServer(At, Balance),
    /// Has a virtual server spread connections in another way.
    SetServer(At, Balance),
    /// Deletes a virtual server, which may still have endpoints.
    DeleteServer(At),
    /// Gives a virtual server one more endpoint.
    AddEndpoint(At, SocketAddr, u32),
    /// Gives an endpoint another share.
    SetEndpoint(At, SocketAddr, u32),
    /// Takes an endpoint away. What it has may come to its end.
    DeleteEndpoint(At, SocketAddr),
    /// Gives the link an address.
    AddAddress(IpAddr),
    /// Takes an address from the link.
    DeleteAddress(IpAddr),
    /// Changes the tables; all of these together, at once.
    Filter(Vec<nft::Op>),
}

/// Why a step is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Invalid {
    /// It is about something that is not there.
    #[error("there is no {0}")]
    Absent(String),
    /// It makes something that is there.
    #[error("{0} is there already")]
    Present(String),
    /// A step of nftables.
    #[error(transparent)]
    Filter(#[from] nft::Invalid),
}

/// All that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Virtual servers.
    pub servers: BTreeMap<At, Server>,
    /// The addresses of the link.
    pub addresses: BTreeSet<IpAddr>,
    /// Tables of nftables.
    pub filter: nft::Program,
}

impl Program {
    /// Takes steps, as the kernel would.
    pub fn take(&mut self, ops: &[Op]) -> Result<(), Invalid> {
        ops.iter().try_for_each(|op| self.take_one(op))
    }

    fn take_one(&mut self, op: &Op) -> Result<(), Invalid> {
        match op {
            Op::AddServer(at, balance) => {
                let server = Server { balance: balance.clone(), endpoints: BTreeMap::new() };
                return self.servers.insert(*at, server).map_or(Ok(()), |_| Err(Invalid::Present(at.to_string())));
            }
            Op::SetServer(at, balance) => self.server(at)?.balance = balance.clone(),
            Op::DeleteServer(at) => drop(self.servers.remove(at).ok_or_else(|| Invalid::Absent(at.to_string()))?),
            Op::AddEndpoint(at, to, weight) => {
                let old = self.server(at)?.endpoints.insert(*to, *weight);
                return old.map_or(Ok(()), |_| Err(Invalid::Present(format!("{to} of {at}"))));
            }
            Op::SetEndpoint(at, to, weight) => {
                let known = self.server(at)?.endpoints.get_mut(to);
                *known.ok_or_else(|| Invalid::Absent(format!("{to} of {at}")))? = *weight;
            }
            Op::DeleteEndpoint(at, to) => {
                let old = self.server(at)?.endpoints.remove(to);
                old.ok_or_else(|| Invalid::Absent(format!("{to} of {at}")))?;
            }
            Op::AddAddress(ip) if !self.addresses.insert(*ip) => return Err(Invalid::Present(ip.to_string())),
            Op::DeleteAddress(ip) if !self.addresses.remove(ip) => return Err(Invalid::Absent(ip.to_string())),
            Op::AddAddress(_) | Op::DeleteAddress(_) => {}
            Op::Filter(ops) => self.filter.take(ops)?,
        }
        Ok(())
    }

    fn server(&mut self, at: &At) -> Result<&mut Server, Invalid> {
        self.servers.get_mut(at).ok_or_else(|| Invalid::Absent(at.to_string()))
    }
}
