//! What does this machine's kernel hold of a Service, whoever put it there and whether or not a proxy runs? For people who look for
//! what is missing.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use fairlead_kernel::ipvs::{At, Ipvs};
use fairlead_kernel::link::Links;
use fairlead_kernel::nft::{Connection, Value};
use fairlead_plan::{Family, FrontendKey, Protocol};
use fairlead_program::ipvs::LINK;
use fairlead_program::nft::{COUNTED, counted, frontend_key};

use crate::nftables::convert;
use crate::{Error, FAMILIES, Mode, iptables};

/// What the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// By the rules of which mode.
    pub mode: Mode,
    /// What was asked for, in that order.
    pub frontends: Vec<(FrontendKey, Presence)>,
}

/// How a frontend is in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is not there.
    Absent,
    /// It leads to these endpoints, whatever their weight and whoever may come; none: it refuses.
    Leads(BTreeSet<SocketAddr>),
    /// That cannot be told in this mode.
    Unknown,
}

/// Looks for frontends; `None`: there are no rules of ours at all.
pub fn held(keys: &[FrontendKey]) -> Result<Option<Held>, Error> {
    let mut connection = Connection::open()?;
    if let Some(tables) = Tables::read(&mut connection)? {
        let frontends: Vec<_> = keys.iter().map(|key| (*key, tables.presence(key))).collect();
        let portals = frontends.iter().any(|(_, presence)| *presence == Presence::Unknown);
        let mode = if portals { Mode::Userspace } else { Mode::Nftables };
        return Ok(Some(Held { mode, frontends }));
    }
    if Links::open()?.find(LINK)?.is_some() {
        return servers(keys).map(Some);
    }
    let chains = iptables::chains()?;
    if chains.is_empty() {
        return Ok(None);
    }
    let frontends = keys.iter().map(|key| (*key, chains.presence(key))).collect();
    Ok(Some(Held { mode: Mode::Iptables, frontends }))
}

/// Our tables of nftables, as numbers.
#[derive(Default)]
struct Tables {
    /// The numbers of ports by the bytes of a frontend; 0: it refuses.
    frontends: HashMap<(Family, Vec<u8>), u32>,
    endpoints: HashMap<(Family, u32), BTreeSet<SocketAddr>>,
}

impl Tables {
    fn read(connection: &mut Connection) -> Result<Option<Tables>, Error> {
        let there = connection.tables()?;
        let mut read = None;
        for family in FAMILIES {
            let table = convert::table(family);
            if there.iter().any(|it| (it.value.family, &it.value.name) == (table.family, &table.name)) {
                read.get_or_insert_with(Tables::default).take(connection, family)?;
            }
        }
        Ok(read)
    }

    fn take(&mut self, connection: &mut Connection, family: Family) -> Result<(), Error> {
        let table = convert::table(family);
        for map in ["frontends", "nodeports"] {
            for element in connection.elements(&table, map)? {
                let Some(Value::Data(value)) = element.value else { continue };
                let number = value.as_slice().try_into().map_or(0, u32::from_ne_bytes) & NUMBER;
                self.frontends.insert((family, element.key.clone()), number);
            }
        }
        for map in COUNTED {
            for element in connection.elements(&table, map)? {
                let Some(Value::Data(value)) = &element.value else { continue };
                let Some((number, at)) = counted(&element.key, value) else { continue };
                self.endpoints.entry((family, number)).or_default().insert(at);
            }
        }
        Ok(())
    }

    fn presence(&self, key: &FrontendKey) -> Presence {
        let Some(number) = self.number(key) else { return Presence::Absent };
        let to = self.endpoints.get(&(key.family(), number)).cloned().unwrap_or_default();
        // A process of the Node that stands in for endpoints is at an address that nobody else may use, as rules see to.
        let protocol = key.protocol();
        let portal = |at: &SocketAddr| FrontendKey::Address { ip: at.ip(), protocol, port: at.port() };
        if to.iter().any(|at| self.number(&portal(at)).is_some()) { Presence::Unknown } else { Presence::Leads(to) }
    }

    fn number(&self, key: &FrontendKey) -> Option<u32> {
        self.frontends.get(&(key.family(), frontend_key(key).as_bytes().to_vec())).copied()
    }
}

/// The bits of a frontend's value that are the number of its port.
const NUMBER: u32 = (1 << 23) - 1;

/// Virtual servers of IPVS. Node ports are there by marks, of which only the proxy knows.
fn servers(keys: &[FrontendKey]) -> Result<Held, Error> {
    let mut ipvs = Ipvs::open()?;
    let there: Vec<At> = ipvs.services()?.into_iter().map(|service| service.at).collect();
    let mut presence = |key: &FrontendKey| -> Result<Presence, Error> {
        let FrontendKey::Address { ip, protocol, port } = *key else { return Ok(Presence::Unknown) };
        let at = At::Address { address: ip, protocol: number(protocol), port };
        if !there.contains(&at) {
            return Ok(Presence::Absent);
        }
        let to = ipvs.destinations(&at)?.into_iter().map(|it| SocketAddr::new(it.address, it.port));
        Ok(Presence::Leads(to.collect()))
    };
    let frontends = keys.iter().map(|key| Ok((*key, presence(key)?))).collect::<Result<_, Error>>()?;
    Ok(Held { mode: Mode::Ipvs, frontends })
}

fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}
