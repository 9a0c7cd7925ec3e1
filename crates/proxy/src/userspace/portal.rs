//! Where the process listens for a pool: a port of the kernel's choice on the Node's own address.
//!
//! Not on a loopback address, for which the kernel would have to route those for everybody (`route_localnet`), and not on
//! all: the rules refuse whoever is not led there, and they must know the address.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use fairlead_kernel::relay;
use fairlead_plan::{Family, FrontendKey, Node, Plan, PoolKey, Protocol, family_of};

/// How often the kernel is asked for another port when one is a Service's.
const TRIES: usize = 64;

/// A place where connections of a pool arrive.
#[derive(Debug)]
pub(crate) struct Portal {
    /// Its number, never used again.
    pub(crate) number: u64,
    pub(crate) at: SocketAddr,
    pub(crate) socket: Socket,
}

/// What listens there.
#[derive(Debug, Clone)]
pub(crate) enum Socket {
    Tcp(Arc<TcpListener>),
    Udp(Arc<UdpSocket>),
}

/// The address of a Node for a family: the primary one if an interface has it, or else another that Pods and others can reach.
pub(crate) fn address(node: &Node, family: Family) -> Option<IpAddr> {
    let usable = |ip: &IpAddr| family_of(*ip) == family && !ip.is_loopback() && !is_link_local(*ip);
    let primary = node.ips.iter().copied().find(|ip| family_of(*ip) == family);
    let has = |ip: &IpAddr| node.addresses.contains(ip);
    primary.filter(has).or_else(|| node.addresses.iter().copied().find(usable)).or(primary)
}

/// Without the link such an address says nothing.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Whether packets to that place are for a Service.
pub(crate) fn is_taken(plan: &Plan, protocol: Protocol, at: SocketAddr) -> bool {
    let (ip, port) = (at.ip(), at.port());
    let address = FrontendKey::Address { ip, protocol, port };
    let node_port = FrontendKey::NodePort { family: family_of(ip), protocol, port };
    plan.frontend(&address).or_else(|| plan.frontend(&node_port)).is_some()
}

/// Opens one for a pool.
pub(crate) fn open(key: &PoolKey, ip: IpAddr, plan: &Plan, number: u64) -> io::Result<Portal> {
    let protocol = key.port.protocol;
    // Those in the way are kept until one is found, so that the kernel does not offer them again.
    let mut in_the_way = Vec::new();
    for _ in 0..TRIES {
        let (socket, at) = listen(protocol, SocketAddr::new(ip, 0))?;
        if !is_taken(plan, protocol, at) {
            return Ok(Portal { number, at, socket });
        }
        in_the_way.push(socket);
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn listen(protocol: Protocol, at: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    if protocol == Protocol::Udp {
        let socket = relay::bind_datagram(at)?;
        let at = socket.local_addr()?;
        return Ok((Socket::Udp(Arc::new(socket)), at));
    }
    let listener = relay::listen(at)?;
    let at = listener.local_addr()?;
    Ok((Socket::Tcp(Arc::new(listener)), at))
}

/// Portals by pool, and the places they take.
#[derive(Debug, Default)]
pub(crate) struct Portals {
    by_pool: HashMap<PoolKey, Portal>,
    places: HashSet<(Protocol, SocketAddr)>,
}

impl Portals {
    pub(crate) fn insert(&mut self, key: PoolKey, portal: Portal) {
        self.places.insert((key.port.protocol, portal.at));
        self.by_pool.insert(key, portal);
    }

    pub(crate) fn remove(&mut self, key: &PoolKey) -> Option<Portal> {
        let portal = self.by_pool.remove(key)?;
        self.places.remove(&(key.port.protocol, portal.at));
        Some(portal)
    }

    pub(crate) fn get(&self, key: &PoolKey) -> Option<&Portal> {
        self.by_pool.get(key)
    }

    /// Whether a frontend is where a portal is.
    pub(crate) fn collides(&self, frontend: &FrontendKey, ip: IpAddr) -> bool {
        let at = match *frontend {
            FrontendKey::Address { ip, port, .. } => SocketAddr::new(ip, port),
            FrontendKey::NodePort { port, .. } => SocketAddr::new(ip, port),
        };
        self.places.contains(&(frontend.protocol(), at))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PoolKey, &Portal)> {
        self.by_pool.iter()
    }
}
