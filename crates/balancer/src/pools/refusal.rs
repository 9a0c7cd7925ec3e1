//! Why a Service gets no address.

use std::fmt;
use std::net::IpAddr;

use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol};

use super::Owner;
use crate::spec::Scheme;

/// Why a Service gets no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are no pools.
    NoPool,
    /// There are none of the scheme asked for.
    NoPoolOf(Scheme),
    /// There are none of that scheme with addresses of a family.
    NoFamily(Scheme, Family),
    /// Every address that it could have is taken.
    Exhausted {
        /// The family.
        family: Family,
        /// The pools that were looked at.
        pools: Vec<String>,
    },
    /// There are pools, but they are for others, or only for who asks for them by name.
    ForOthers {
        /// The family.
        family: Family,
        /// Those pools.
        pools: Vec<String>,
    },
    /// The pool asked for does not exist.
    UnknownPool {
        /// Which annotation asks.
        what: &'static str,
        /// For what.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The pool asked for is for other Services.
    PoolForOthers {
        /// The pool.
        pool: String,
        /// Its scheme, if that is what differs.
        scheme: Option<Scheme>,
    },
    /// What is asked for is no address.
    Unreadable {
        /// Which annotation or field asks.
        what: &'static str,
        /// For what.
        value: String,
    },
    /// Two that ask say different things.
    Contradiction(&'static str, &'static str),
    /// The addresses asked for are of families the Service does not have, or two are of one.
    WrongFamily {
        /// Which annotation or field asks.
        what: &'static str,
        /// For what.
        ip: IpAddr,
        /// The Service's families.
        families: Vec<Family>,
    },
    /// The address asked for is in no pool, or not in the one asked for.
    NotInPool {
        /// Which annotation or field asks.
        what: &'static str,
        /// For what.
        ip: IpAddr,
        /// The addresses there are.
        ranges: Vec<String>,
    },
    /// The address asked for is somebody else's.
    Reserved {
        /// The address.
        ip: IpAddr,
        /// Whose.
        owner: Owner,
    },
    /// The address asked for is another Service's, and the two cannot share it.
    Taken {
        /// The address.
        ip: IpAddr,
        /// Whose.
        by: Key,
        /// Why they cannot share it.
        why: Conflict,
    },
}

/// Why two Services cannot share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// They have not both the same key.
    Key,
    /// Both have this port.
    Port(Protocol, u16),
    /// One wants endpoints of the Node that answers alone, and their endpoints are not the same.
    Policy,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoPool => f.write_str(
                "there is no pool of addresses; make one with --pool RANGE (as 192.0.2.0/28) or with pools in --balancer-config FILE",
            ),
            Refusal::NoPoolOf(scheme) => no_pool_of(*scheme, f),
            Refusal::NoFamily(scheme, family) => {
                write!(f, "no {} pool has {family} addresses; add a range to --{}", word(*scheme), flag(*scheme))
            }
            Refusal::Exhausted { family, pools } => {
                write!(f, "every {family} address of {} is taken", listed("pool", pools))
            }
            Refusal::ForOthers { family, pools } => write!(
                f,
                "no pool gives this Service an {family} address by itself: {} is for other namespaces or labels, or not \
                 assigned automatically",
                listed("pool", pools)
            ),
            Refusal::UnknownPool { what, name, known } => {
                write!(f, "{what}: there is no pool {name:?}; accepted: {}", known.join(", "))
            }
            Refusal::PoolForOthers { pool, scheme: Some(scheme) } => {
                write!(f, "pool {pool:?} is for {} load balancers", word(*scheme))
            }
            Refusal::PoolForOthers { pool, scheme: None } => {
                write!(f, "pool {pool:?} is for other namespaces or labels of Services")
            }
            Refusal::Unreadable { what, value } => {
                write!(f, "{what}: {value:?} is no address; accepted: IP addresses with commas between")
            }
            Refusal::Contradiction(one, other) => write!(f, "{one} and {other} say different things; accepted: one of them"),
            Refusal::WrongFamily { what, ip, families } => {
                let families: Vec<String> = families.iter().map(ToString::to_string).collect();
                write!(f, "{what}: {ip} does not fit; accepted: one address each of {}", families.join(" and "))
            }
            Refusal::NotInPool { what, ip, ranges } => {
                write!(f, "{what}: {ip} is in no pool this Service may use; accepted: {}", ranges.join(", "))
            }
            Refusal::Reserved { ip, owner } => write!(f, "{ip} is {owner}"),
            Refusal::Taken { ip, by, why } => {
                write!(f, "{ip} belongs to the Service {by}: {why}")
            }
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conflict::Key => write!(f, "to share it both need the same value of {}", super::SHARE[0]),
            Conflict::Port(protocol, port) => write!(f, "both have the port {port}/{protocol}"),
            Conflict::Policy => f.write_str(
                "to share it on several Nodes both need externalTrafficPolicy Cluster, or the same selector",
            ),
        }
    }
}

fn no_pool_of(scheme: Scheme, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let key = match scheme {
        Scheme::Internal => "internal",
        Scheme::Public => "public",
    };
    write!(
        f,
        "there is no pool for {} load balancers; make one with --{} RANGE or with `scheme: {key}` in --balancer-config FILE",
        word(scheme),
        flag(scheme)
    )
}

fn word(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Public => "public",
        Scheme::Internal => "internal",
    }
}

fn flag(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Public => "pool",
        Scheme::Internal => "internal-pool",
    }
}

/// `pool "a"` or `pools "a", "b"`.
fn listed(what: &str, names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{what}{plural} {}", quoted.join(", "))
}
