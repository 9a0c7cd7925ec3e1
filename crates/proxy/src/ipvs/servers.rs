//! Virtual servers in the kernel: made, changed and compared. An endpoint that is taken away keeps its connections where they
//! can end by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairlead_kernel::ipvs::{self as kernel, Counted, Destination, Service, Timeouts, scheduler_flag};
use fairlead_plan::{Family, Protocol};
use fairlead_program::ipvs::{Affinity, At, Balance, Marks, Op, Server};
use ipnet::IpNet;

use super::drain::Drains;
use super::is_excluded;
use crate::Error;

/// The virtual servers.
#[derive(Debug)]
pub(super) struct Servers {
    ipvs: kernel::Ipvs,
    marks: Marks,
    exclude: Vec<IpNet>,
    /// How each of ours is to end: protocols and schedulers differ.
    gentle: BTreeMap<At, bool>,
}

impl Servers {
    /// Opens the way to IPVS in this thread's network namespace.
    pub(super) fn open(marks: Marks, exclude: Vec<IpNet>) -> Result<Servers, Error> {
        Ok(Servers { ipvs: kernel::Ipvs::open()?, marks, exclude, gentle: BTreeMap::new() })
    }

    /// Whether the kernel has a scheduler.
    pub(super) fn try_scheduler(&mut self, scheduler: &str) -> Result<(), Error> {
        let at = At::Mark { family: Family::V4, mark: self.marks.unused() };
        let balance = Balance { protocol: Protocol::Tcp, scheduler: scheduler.to_owned(), affinity: None };
        match self.ipvs.add_service(&service(&at, &balance)) {
            Err(error) if error.is_not_found() => {
                Err(Error::Missing(format!("IPVS has no scheduler {scheduler:?} on this machine")))
            }
            Err(error) if !error.is_exists() => Err(error.into()),
            _ => Ok(self.ipvs.delete_service(&kernel_at(&at))?),
        }
    }

    /// Sets the time-outs that are asked for: TCP, TCP after FIN, UDP.
    pub(super) fn set_timeouts(&mut self, wanted: &[Option<Duration>; 3]) -> Result<(), Error> {
        let before = self.ipvs.timeouts()?;
        let pick = |wanted: Option<Duration>, before: u32| {
            wanted.filter(|time| !time.is_zero()).map_or(before, |time| time.as_secs().try_into().unwrap_or(u32::MAX))
        };
        let after = Timeouts {
            tcp_s: pick(wanted[0], before.tcp_s),
            tcp_fin_s: pick(wanted[1], before.tcp_fin_s),
            udp_s: pick(wanted[2], before.udp_s),
        };
        if after == before { Ok(()) } else { Ok(self.ipvs.set_timeouts(after)?) }
    }

    /// Does a step. What is made may be there, and what is unmade may be gone.
    pub(super) fn take(&mut self, op: &Op, drains: &mut Drains) -> Result<(), Error> {
        match op {
            Op::AddServer(at, balance) => self.add_server(at, balance, drains),
            Op::SetServer(at, balance) => {
                self.gentle.insert(*at, is_gentle(balance));
                Ok(self.ipvs.set_service(&service(at, balance))?)
            }
            Op::DeleteServer(at) => self.delete_server(at, drains),
            Op::AddEndpoint(at, to, weight) => self.add_endpoint(at, to, *weight, drains),
            Op::SetEndpoint(at, to, weight) => {
                Ok(self.ipvs.set_destination(&kernel_at(at), &destination(to, *weight))?)
            }
            Op::DeleteEndpoint(at, to) => self.delete_endpoint(at, to, drains),
            Op::AddAddress(_) | Op::DeleteAddress(_) | Op::Filter(_) => Ok(()),
        }
    }

    fn add_server(&mut self, at: &At, balance: &Balance, drains: &mut Drains) -> Result<(), Error> {
        drains.revive(at);
        self.gentle.insert(*at, is_gentle(balance));
        let service = service(at, balance);
        match self.ipvs.add_service(&service) {
            Err(error) if error.is_exists() => Ok(self.ipvs.set_service(&service)?),
            done => Ok(done?),
        }
    }

    /// A server at an address goes at once, since the address does. One of a mark may have connections that go on.
    fn delete_server(&mut self, at: &At, drains: &mut Drains) -> Result<(), Error> {
        let gentle = self.gentle.remove(at).unwrap_or(true);
        if gentle && matches!(at, At::Mark { .. }) {
            for endpoint in self.ipvs.destinations(&kernel_at(at))? {
                self.drain(at, &endpoint, drains)?;
            }
            drains.retire(*at);
            return self.tend_one(at, drains);
        }
        drains.forget_server(at);
        gone_is_fine(self.ipvs.delete_service(&kernel_at(at)))
    }

    fn add_endpoint(&mut self, at: &At, to: &SocketAddr, weight: u32, drains: &mut Drains) -> Result<(), Error> {
        drains.forget(at, to);
        let (at, endpoint) = (kernel_at(at), destination(to, weight));
        match self.ipvs.add_destination(&at, &endpoint) {
            Err(error) if error.is_exists() => Ok(self.ipvs.set_destination(&at, &endpoint)?),
            done => Ok(done?),
        }
    }

    fn delete_endpoint(&mut self, at: &At, to: &SocketAddr, drains: &mut Drains) -> Result<(), Error> {
        let endpoint = destination(to, 0);
        if self.gentle.get(at).copied().unwrap_or(true) {
            self.drain(at, &endpoint, drains)?;
            return Ok(());
        }
        gone_is_fine(self.ipvs.delete_destination(&kernel_at(at), &endpoint))
    }

    /// Gives an endpoint no more connections.
    fn drain(&mut self, at: &At, endpoint: &Destination, drains: &mut Drains) -> Result<(), Error> {
        let none = Destination { weight: 0, ..endpoint.clone() };
        match self.ipvs.set_destination(&kernel_at(at), &none) {
            Ok(()) => {
                drains.add(*at, SocketAddr::new(endpoint.address, endpoint.port));
                Ok(())
            }
            done => gone_is_fine(done),
        }
    }

    /// Ends what drains and has no connections any more.
    pub(super) fn tend(&mut self, drains: &mut Drains) -> Result<(), Error> {
        drains.servers().iter().try_for_each(|at| self.tend_one(at, drains))
    }

    fn tend_one(&mut self, at: &At, drains: &mut Drains) -> Result<(), Error> {
        let mut left = 0;
        for endpoint in self.ipvs.destinations(&kernel_at(at))? {
            let to = SocketAddr::new(endpoint.address, endpoint.port);
            if !drains.has(at, &to) {
                left += 1;
            } else if endpoint.active + endpoint.inactive == 0 || drains.is_over(at, &to) {
                gone_is_fine(self.ipvs.delete_destination(&kernel_at(at), &endpoint))?;
                drains.forget(at, &to);
            } else {
                left += 1;
            }
        }
        if left == 0 && drains.retires(at) {
            gone_is_fine(self.ipvs.delete_service(&kernel_at(at)))?;
            drains.forget_server(at);
        }
        Ok(())
    }

    /// Makes the kernel have these servers, whatever it has of ours by now. What is to go comes back as steps for later.
    pub(super) fn make(
        &mut self,
        wanted: &BTreeMap<At, Server>,
        addresses: &BTreeSet<IpAddr>,
        drains: &mut Drains,
    ) -> Result<Vec<Op>, Error> {
        let there: BTreeMap<At, Service> = self.there()?;
        let mut gone = Vec::new();
        for (at, server) in wanted {
            let known = there.get(at);
            if known.is_none_or(|known| !is_same(known, &service(at, &server.balance))) {
                self.add_server(at, &server.balance, drains)?;
            }
            self.gentle.insert(*at, is_gentle(&server.balance));
            drains.revive(at);
            let had = if known.is_some() { self.endpoints(at)? } else { BTreeMap::new() };
            for (to, weight) in &server.endpoints {
                drains.forget(at, to);
                if had.get(to) != Some(weight) {
                    self.add_endpoint(at, to, *weight, drains)?;
                }
            }
            gone.extend(
                had.keys().filter(|to| !server.endpoints.contains_key(to)).map(|to| Op::DeleteEndpoint(*at, *to)),
            );
        }
        let ours = |at: &&At| !wanted.contains_key(at) && self.is_ours(at, addresses);
        gone.extend(there.keys().filter(ours).map(|at| Op::DeleteServer(*at)));
        Ok(gone)
    }

    /// A server is ours if its mark says so, or if its address is on our link and in no range that is others'.
    fn is_ours(&self, at: &At, addresses: &BTreeSet<IpAddr>) -> bool {
        match at {
            At::Mark { mark, .. } => self.marks.is_ours(*mark),
            At::Address { ip, .. } => addresses.contains(ip) && !is_excluded(*ip, &self.exclude),
        }
    }

    /// All servers, ours or not.
    fn there(&mut self) -> Result<BTreeMap<At, Service>, Error> {
        let services = self.ipvs.services()?.into_iter();
        Ok(services.filter_map(|service| Some((program_at(&service.at)?, service))).collect())
    }

    fn endpoints(&mut self, at: &At) -> Result<BTreeMap<SocketAddr, u32>, Error> {
        let there = self.ipvs.destinations(&kernel_at(at))?.into_iter();
        Ok(there.map(|it| (SocketAddr::new(it.address, it.port), it.weight)).collect())
    }

    /// What is not as it should be. Endpoints, of which there may be many, only when asked to be thorough.
    pub(super) fn compare(
        &mut self,
        wanted: &BTreeMap<At, Server>,
        drains: &Drains,
        thorough: bool,
    ) -> Result<Option<String>, Error> {
        let there = self.there()?;
        for (at, server) in wanted {
            let Some(known) = there.get(at) else { return Ok(Some(format!("the virtual server {at} is gone"))) };
            if !is_same(known, &service(at, &server.balance)) {
                return Ok(Some(format!("the virtual server {at} does not balance as it should")));
            }
            if thorough && let Some(wrong) = self.compare_endpoints(at, server, drains)? {
                return Ok(Some(wrong));
            }
        }
        let of_mark = |at: &&At| matches!(at, At::Mark { mark, .. } if self.marks.is_ours(*mark));
        let spare = there.keys().filter(of_mark).find(|at| !wanted.contains_key(at) && !drains.retires(at));
        Ok(spare.map(|at| format!("the virtual server {at} is for nobody")))
    }

    fn compare_endpoints(&mut self, at: &At, server: &Server, drains: &Drains) -> Result<Option<String>, Error> {
        let there = self.endpoints(at)?;
        if let Some((to, _)) = server.endpoints.iter().find(|(to, weight)| there.get(to) != Some(weight)) {
            return Ok(Some(format!("the virtual server {at} does not have the endpoint {to} as it should")));
        }
        let spare = there.keys().find(|to| !server.endpoints.contains_key(to) && !drains.has(at, to));
        Ok(spare.map(|to| format!("the virtual server {at} has the endpoint {to}, which it should not")))
    }

    /// What virtual servers counted.
    pub(super) fn counted(&mut self) -> Result<Vec<(At, Counted)>, Error> {
        let services = self.ipvs.services()?.into_iter();
        Ok(services.filter_map(|service| Some((program_at(&service.at)?, service.counted))).collect())
    }

    /// What endpoints counted.
    pub(super) fn counted_endpoints(&mut self, at: &At) -> Result<Vec<(SocketAddr, Counted)>, Error> {
        let there = self.ipvs.destinations(&kernel_at(at))?.into_iter();
        Ok(there.map(|it| (SocketAddr::new(it.address, it.port), it.counted)).collect())
    }

    /// Removes all that are ours, and says how many there were.
    pub(super) fn remove(&mut self, addresses: &BTreeSet<IpAddr>) -> Result<usize, Error> {
        let there = self.there()?;
        let ours: Vec<&At> = there.keys().filter(|at| self.is_ours(at, addresses)).collect();
        let count = ours.len();
        ours.into_iter().try_for_each(|at| gone_is_fine(self.ipvs.delete_service(&kernel_at(at))))?;
        Ok(count)
    }
}

fn gone_is_fine(done: Result<(), fairlead_kernel::Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done?),
    }
}

/// Whether what is taken away may come to its end: UDP has no end, and `dh` chooses endpoints that take no connections.
fn is_gentle(balance: &Balance) -> bool {
    balance.protocol != Protocol::Udp && balance.scheduler != "dh"
}

/// Whether two servers do the same, whatever they counted.
fn is_same(one: &Service, other: &Service) -> bool {
    (&one.scheduler, one.affinity_s, one.flags) == (&other.scheduler, other.affinity_s, other.flags)
}

fn destination(to: &SocketAddr, weight: u32) -> Destination {
    Destination::new(to.ip(), to.port(), weight)
}

fn service(at: &At, balance: &Balance) -> Service {
    let remembered = |affinity| if let Affinity::Remembered(seconds) = affinity { Some(seconds) } else { None };
    let flag = |wanted: bool, flag: u32| if wanted { flag } else { 0 };
    Service {
        at: kernel_at(at),
        scheduler: balance.scheduler.clone(),
        affinity_s: balance.affinity.and_then(remembered),
        flags: flag(balance.passes_over(), scheduler_flag::FALLBACK)
            | flag(balance.looks_at_ports(), scheduler_flag::PORT),
        counted: Counted::default(),
    }
}

fn kernel_at(at: &At) -> kernel::At {
    match *at {
        At::Address { ip, protocol, port } => kernel::At::Address { address: ip, protocol: number(protocol), port },
        At::Mark { family, mark } => kernel::At::Mark { v4: family == Family::V4, mark },
    }
}

/// `None`: it is of a protocol Services do not have.
fn program_at(at: &kernel::At) -> Option<At> {
    Some(match *at {
        kernel::At::Address { address: ip, protocol, port } => {
            let mut known = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp].into_iter();
            let protocol = known.find(|known| number(*known) == protocol)?;
            At::Address { ip, protocol, port }
        }
        kernel::At::Mark { v4, mark } => At::Mark { family: if v4 { Family::V4 } else { Family::V6 }, mark },
    })
}

fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}
