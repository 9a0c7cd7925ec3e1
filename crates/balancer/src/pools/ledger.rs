//! Who has which address, and who gets the next. The work of a change is in proportion to the change, however many Services and
//! addresses there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol};

use super::gaps::Gaps;
use super::range::{address, number};
use super::{Conflict, Pool, Range, Refusal, Stacks, Wish};

/// Pools with who has what of them. What Services have according to their status must be told with [`Ledger::assign`] before
/// others ask, or they lose it.
#[derive(Debug, Default)]
pub struct Ledger {
    pools: Vec<Pool>,
    /// The ranges of all pools by their first address; none overlaps another.
    spans: BTreeMap<(Family, u128), Span>,
    held: HashMap<IpAddr, Vec<Holder>>,
    services: HashMap<Arc<Key>, Vec<IpAddr>>,
    shared: HashMap<Arc<str>, BTreeSet<IpAddr>>,
    reserved: HashMap<IpAddr, Vec<Owner>>,
    /// On one Node alone whoever has the same key may share.
    several_nodes: bool,
}

/// A range of a pool and what is free of it.
#[derive(Debug)]
struct Span {
    pool: usize,
    range: Range,
    free: Gaps,
}

/// A Service that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    service: Arc<Key>,
    share: Option<Arc<str>>,
    ports: BTreeSet<(Protocol, u16)>,
    local: bool,
    selector: BTreeMap<String, String>,
}

/// Who else than a load balancer has an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A Node of this name.
    Node(Arc<str>),
    /// A Service that has it as its cluster IP.
    ClusterIp(Arc<Key>),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Node(name) => write!(f, "an address of the Node {name}"),
            Owner::ClusterIp(service) => write!(f, "the cluster IP of the Service {service}"),
        }
    }
}

impl Ledger {
    /// These pools, which must not overlap (see [`super::overlap`]), and nothing given out.
    pub fn new(pools: Vec<Pool>) -> Ledger {
        let mut spans = BTreeMap::new();
        for (at, pool) in pools.iter().enumerate() {
            for range in &pool.ranges {
                let free = Gaps::new(range.first(), range.last());
                spans.insert((range.family(), range.first()), Span { pool: at, range: *range, free });
            }
        }
        Ledger { pools, spans, ..Ledger::default() }
    }

    /// Whether there is more than one Node. Returns whether that is news.
    pub fn set_several_nodes(&mut self, several: bool) -> bool {
        std::mem::replace(&mut self.several_nodes, several) != several
    }

    /// The pools.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The pool an address is of.
    pub fn pool_of(&self, ip: IpAddr) -> Option<&Pool> {
        self.span(ip).map(|span| &self.pools[span.pool])
    }

    /// The addresses a Service has.
    pub fn addresses(&self, service: &Key) -> &[IpAddr] {
        self.services.get(service).map_or(&[], Vec::as_slice)
    }

    /// The Services that have an address.
    pub fn holders(&self, ip: IpAddr) -> impl Iterator<Item = &Arc<Key>> {
        self.held.get(&ip).into_iter().flatten().map(|holder| &holder.service)
    }

    /// Somebody else has an address from now on. Services that have it lose it when they are next looked at.
    pub fn reserve(&mut self, ip: IpAddr, owner: Owner) {
        let owners = self.reserved.entry(ip).or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
        self.take(ip);
    }

    /// They do not have it any more.
    pub fn unreserve(&mut self, ip: IpAddr, owner: &Owner) {
        let Some(owners) = self.reserved.get_mut(&ip) else { return };
        owners.retain(|other| other != owner);
        if owners.is_empty() {
            self.reserved.remove(&ip);
            self.give(ip);
        }
    }

    /// The Service needs none any more. Returns what it had.
    pub fn release(&mut self, service: &Key) -> Vec<IpAddr> {
        let Some((service, addresses)) = self.services.remove_entry(service) else { return Vec::new() };
        for ip in &addresses {
            self.drop_holder(*ip, &service);
        }
        addresses
    }

    /// Gives a Service its addresses, one a family at most: those it has as far as it may keep them. If it is refused, it keeps
    /// what it has here.
    pub fn assign(&mut self, wish: &Wish) -> Result<Vec<IpAddr>, Refusal> {
        let chosen = self.choose(wish)?;
        self.release(&wish.service);
        for ip in &chosen {
            self.add_holder(*ip, wish);
        }
        self.services.insert(wish.service.clone(), chosen.clone());
        Ok(chosen)
    }

    fn choose(&mut self, wish: &Wish) -> Result<Vec<IpAddr>, Refusal> {
        self.check_pools(wish)?;
        let asked = self.check_asked(wish)?;
        let (mut chosen, mut missing) = (Vec::new(), None);
        for family in &wish.families {
            let of_family = |ip: &&IpAddr| number(**ip).0 == *family;
            let found = match asked.iter().find(of_family) {
                Some(ip) => Ok(*ip),
                None => self.kept(wish, *family).map_or_else(|| self.fresh(wish, *family), Ok),
            };
            match found {
                Ok(ip) => chosen.push(ip),
                Err(refusal) if wish.stacks == Stacks::All => return Err(refusal),
                Err(refusal) => missing = missing.or(Some(refusal)),
            }
        }
        match missing {
            Some(refusal) if chosen.is_empty() => Err(refusal),
            _ => Ok(chosen),
        }
    }

    /// Whether there are pools at all for such a wish.
    fn check_pools(&self, wish: &Wish) -> Result<(), Refusal> {
        if self.pools.is_empty() {
            return Err(Refusal::NoPool);
        }
        if !self.pools.iter().any(|pool| pool.scheme == wish.scheme) {
            return Err(Refusal::NoPoolOf(wish.scheme));
        }
        let Some((what, name)) = &wish.pool else { return Ok(()) };
        let Some(pool) = self.pools.iter().find(|pool| pool.name == *name) else {
            let known = self.pools.iter().map(|pool| pool.name.clone()).collect();
            return Err(Refusal::UnknownPool { what, name: name.clone(), known });
        };
        let other_scheme = pool.scheme != wish.scheme;
        if other_scheme || !pool.is_for(wish) {
            return Err(Refusal::PoolForOthers { pool: name.clone(), scheme: other_scheme.then_some(pool.scheme) });
        }
        Ok(())
    }

    /// The addresses asked for, if all of them can be had.
    fn check_asked(&self, wish: &Wish) -> Result<Vec<IpAddr>, Refusal> {
        let Some((what, asked)) = &wish.addresses else { return Ok(Vec::new()) };
        let mut families = BTreeSet::new();
        for ip in asked {
            let family = number(*ip).0;
            if !wish.families.contains(&family) || !families.insert(family) {
                return Err(Refusal::WrongFamily { what, ip: *ip, families: wish.families.clone() });
            }
            if !self.may(wish, *ip) {
                return Err(Refusal::NotInPool { what, ip: *ip, ranges: self.ranges(wish, family) });
            }
            self.free_for(wish, *ip)?;
        }
        Ok(asked.clone())
    }

    /// The address of a family that a Service has, if it may keep it.
    fn kept(&self, wish: &Wish, family: Family) -> Option<IpAddr> {
        let of_family = |ip: &&IpAddr| number(**ip).0 == family;
        let fine = |ip: &&IpAddr| self.may(wish, **ip) && self.free_for(wish, **ip).is_ok();
        // Its status is the truth; what was given to it since may not be written yet.
        let known = self.addresses(&wish.service).iter().chain(&wish.has);
        known.filter(of_family).find(fine).copied()
    }

    /// An address of a family that a Service does not have yet.
    fn fresh(&mut self, wish: &Wish, family: Family) -> Result<IpAddr, Refusal> {
        if let Some(ip) = self.shared_with(wish, family) {
            return Ok(ip);
        }
        let order = self.order(wish, family)?;
        for pool in &order {
            if let Some(ip) = self.lowest(*pool, family) {
                return Ok(ip);
            }
        }
        Err(Refusal::Exhausted { family, pools: order.into_iter().map(|at| self.pools[at].name.clone()).collect() })
    }

    /// An address that Services with the same key have.
    fn shared_with(&self, wish: &Wish, family: Family) -> Option<IpAddr> {
        let known = self.shared.get(wish.share.as_ref()?)?;
        let fine = |ip: &&IpAddr| number(**ip).0 == family && self.may(wish, **ip) && self.free_for(wish, **ip).is_ok();
        known.iter().find(fine).copied()
    }

    /// The pools a Service may get an address from, in the order in which they are asked: those for some Services only come
    /// first, then the lower priority; 0 is none.
    fn order(&self, wish: &Wish, family: Family) -> Result<Vec<usize>, Refusal> {
        let has_family = |pool: &Pool| pool.ranges.iter().any(|range| range.family() == family);
        let all: Vec<usize> = (0..self.pools.len())
            .filter(|at| self.pools[*at].scheme == wish.scheme && has_family(&self.pools[*at]))
            .collect();
        if all.is_empty() {
            return Err(Refusal::NoFamily(wish.scheme, family));
        }
        let fits = |at: &usize| match (&self.pools[*at], &wish.pool) {
            (pool, Some((_, name))) => pool.name == *name,
            (pool, None) => pool.auto_assign && pool.is_for(wish),
        };
        let mut order: Vec<usize> = all.iter().copied().filter(fits).collect();
        if order.is_empty() {
            let pools = all.into_iter().map(|at| self.pools[at].name.clone()).collect();
            return Err(Refusal::ForOthers { family, pools });
        }
        order.sort_by_key(|at| {
            let pool = &self.pools[*at];
            (!pool.is_narrow(), pool.priority == 0, pool.priority)
        });
        Ok(order)
    }

    /// The lowest free address of a pool. Those it avoids are no longer looked at.
    fn lowest(&mut self, at: usize, family: Family) -> Option<IpAddr> {
        for range in &self.pools[at].ranges {
            let Some(span) = self.spans.get_mut(&(family, range.first())) else { continue };
            while let Some(lowest) = span.free.lowest() {
                let ip = address(family, lowest);
                if !self.pools[at].avoids(ip, range) {
                    return Some(ip);
                }
                span.free.take(lowest);
            }
        }
        None
    }

    /// Whether an address is of a pool that the Service may use.
    fn may(&self, wish: &Wish, ip: IpAddr) -> bool {
        let asked = |pool: &Pool| wish.pool.as_ref().is_none_or(|(_, name)| pool.name == *name);
        self.pool_of(ip).is_some_and(|pool| pool.scheme == wish.scheme && pool.is_for(wish) && asked(pool))
    }

    /// The ranges a Service may have an address of.
    fn ranges(&self, wish: &Wish, family: Family) -> Vec<String> {
        let asked = |pool: &&Pool| wish.pool.as_ref().is_none_or(|(_, name)| pool.name == *name);
        let pools = self.pools.iter().filter(|pool| pool.scheme == wish.scheme && pool.is_for(wish)).filter(asked);
        pools.flat_map(|pool| &pool.ranges).filter(|range| range.family() == family).map(ToString::to_string).collect()
    }

    /// Whether nobody has an address who does not share it with the Service.
    fn free_for(&self, wish: &Wish, ip: IpAddr) -> Result<(), Refusal> {
        if let Some(owner) = self.reserved.get(&ip).and_then(|owners| owners.first()) {
            return Err(Refusal::Reserved { ip, owner: owner.clone() });
        }
        let others = self.held.get(&ip).into_iter().flatten().filter(|holder| holder.service != wish.service);
        for holder in others {
            if let Some(why) = holder.conflict(wish, self.several_nodes) {
                return Err(Refusal::Taken { ip, by: (*holder.service).clone(), why });
            }
        }
        Ok(())
    }

    fn add_holder(&mut self, ip: IpAddr, wish: &Wish) {
        self.take(ip);
        if let Some(key) = &wish.share {
            self.shared.entry(key.clone()).or_default().insert(ip);
        }
        self.held.entry(ip).or_default().push(Holder {
            service: wish.service.clone(),
            share: wish.share.clone(),
            ports: wish.ports.clone(),
            local: wish.local,
            selector: wish.selector.clone(),
        });
    }

    fn drop_holder(&mut self, ip: IpAddr, service: &Key) {
        let Some(holders) = self.held.get_mut(&ip) else { return };
        let Some(place) = holders.iter().position(|holder| *holder.service == *service) else { return };
        let gone = holders.swap_remove(place);
        let unshared = gone.share.filter(|key| !holders.iter().any(|holder| holder.share.as_ref() == Some(key)));
        if holders.is_empty() {
            self.held.remove(&ip);
            self.give(ip);
        }
        if let Some(key) = unshared {
            self.unshare(&key, ip);
        }
    }

    /// Nobody has an address under a key any more.
    fn unshare(&mut self, key: &Arc<str>, ip: IpAddr) {
        let Some(addresses) = self.shared.get_mut(key) else { return };
        addresses.remove(&ip);
        if addresses.is_empty() {
            self.shared.remove(key);
        }
    }

    fn span(&self, ip: IpAddr) -> Option<&Span> {
        let (family, number) = number(ip);
        let (_, span) = self.spans.range(..=(family, number)).next_back()?;
        span.range.contains(ip).then_some(span)
    }

    fn span_mut(&mut self, ip: IpAddr) -> Option<&mut Span> {
        let (family, number) = number(ip);
        let (_, span) = self.spans.range_mut(..=(family, number)).next_back()?;
        span.range.contains(ip).then_some(span)
    }

    fn take(&mut self, ip: IpAddr) {
        if let Some(span) = self.span_mut(ip) {
            span.free.take(number(ip).1);
        }
    }

    /// It is free again, if nobody else has it.
    fn give(&mut self, ip: IpAddr) {
        if self.held.contains_key(&ip) || self.reserved.contains_key(&ip) {
            return;
        }
        if let Some(span) = self.span_mut(ip) {
            span.free.give(number(ip).1);
        }
    }
}

impl Holder {
    /// Why the two cannot have the same address. On several Nodes one of them answers for it, so endpoints of that Node alone
    /// must be the same ones.
    fn conflict(&self, wish: &Wish, several_nodes: bool) -> Option<Conflict> {
        if self.share.is_none() || self.share != wish.share {
            return Some(Conflict::Key);
        }
        if let Some((protocol, port)) = self.ports.intersection(&wish.ports).next() {
            return Some(Conflict::Port(*protocol, *port));
        }
        let clash = several_nodes && (self.local || wish.local) && self.selector != wish.selector;
        clash.then_some(Conflict::Policy)
    }
}
