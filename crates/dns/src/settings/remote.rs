//! What others are asked, and for how long their answers are kept: `forward` and `cache`.

use std::net::SocketAddr;
use std::time::Duration;

use fairlead_zone::Name;

/// `cache`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// For names under these.
    pub zones: Vec<Name>,
    /// Answers with records.
    pub success: Share,
    /// Answers without.
    pub denial: Share,
    /// How long failures are kept.
    pub servfail: Duration,
    /// Answers that are asked for often are fetched again before they expire.
    pub prefetch: Option<Prefetch>,
    /// Expired answers are better than none.
    pub stale: Option<Stale>,
    /// Whether times to live stay as they were.
    pub keep_ttl: bool,
}

/// Half of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// So many answers.
    pub capacity: usize,
    /// For so many seconds at most.
    pub max_ttl: u32,
    /// For so many seconds at least.
    pub min_ttl: u32,
    /// Not for names under these.
    pub disabled: Vec<Name>,
}

/// When to fetch an answer before it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetch {
    /// Asked for so often.
    pub amount: u32,
    /// Without a gap of so long.
    pub gap: Duration,
    /// Less than so much of its time is left.
    pub percent: u32,
}

/// How expired answers are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale {
    /// For so long after they expired.
    pub keep: Duration,
    /// Whether a fresh one is tried for first.
    pub verify: bool,
    /// How long that may take; zero: as long as it takes.
    pub limit: Duration,
    /// Their time to live.
    pub ttl: u32,
}

/// `forward`.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    /// For names under this.
    pub from: Name,
    /// Not for names under these.
    pub except: Vec<Name>,
    /// Who is asked.
    pub to: Vec<Upstream>,
    /// Who is asked first.
    pub policy: Policy,
    /// Which transport.
    pub transport: Transport,
    /// Failed checks after which nobody asks there; 0: never.
    pub max_fails: u32,
    /// How an upstream that failed is checked.
    pub health_check: HealthCheck,
    /// How long an idle connection is kept.
    pub expire: Duration,
    /// How long an answer may take.
    pub read_timeout: Duration,
    /// Questions at a time; 0: as many as there are.
    pub max_concurrent: usize,
    /// Whether nobody is asked if nobody is well.
    pub fail_fast: bool,
    /// Codes after which the next upstream is asked.
    pub failover: Vec<u8>,
    /// Codes after which the next `forward` is asked.
    pub next: Vec<u8>,
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upstream {
    /// A server.
    Address(SocketAddr),
    /// Those a file like `/etc/resolv.conf` names.
    File(String),
}

/// Who is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Anybody.
    #[default]
    Random,
    /// One after the other.
    RoundRobin,
    /// The first that is well.
    Sequential,
}

/// How upstreams are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// As we were.
    #[default]
    Same,
    /// By UDP, and by TCP for what does not fit.
    PreferUdp,
    /// By TCP.
    ForceTcp,
}

/// How an upstream that failed is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// So often, until it answers.
    pub interval: Duration,
    /// Whether recursion is asked for.
    pub recursion: bool,
    /// The name asked for.
    pub domain: Name,
}

impl Default for Cache {
    fn default() -> Cache {
        let share = |max_ttl| Share { capacity: 9984, max_ttl, min_ttl: 5, disabled: Vec::new() };
        Cache {
            zones: Vec::new(),
            success: share(3600),
            denial: share(1800),
            servfail: Duration::from_secs(5),
            prefetch: None,
            stale: None,
            keep_ttl: false,
        }
    }
}

impl Default for Forward {
    fn default() -> Forward {
        Forward {
            from: Name::root(),
            except: Vec::new(),
            to: Vec::new(),
            policy: Policy::default(),
            transport: Transport::default(),
            max_fails: 2,
            health_check: HealthCheck { interval: Duration::from_millis(500), recursion: true, domain: Name::root() },
            expire: Duration::from_secs(10),
            read_timeout: Duration::from_secs(2),
            max_concurrent: 0,
            fail_fast: false,
            failover: Vec::new(),
            next: Vec::new(),
        }
    }
}
