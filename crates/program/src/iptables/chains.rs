//! The chains of frontends, pools and endpoints, and the fixed ones.
//!
//! ```text
//! nat     SERVICES: to an address -> EXT (source ranges -> ALW): by source: mark, SVC or SVL
//!                   to this Node  -> NODEPORTS -> EXT
//!         SVC, SVL: a client that stays, or by chance -> SEP: mark if it is its own client; dnat
//!         POSTROUTING: masquerade what is marked
//! filter  FILTER: what is not translated -> FILTER-SERVICES: to a frontend that refuses -> GRD (source ranges -> REF): by
//!         source; to this Node -> FILTER-NODEPORTS -> GRD
//! ```

use fairlead_plan::{Action, Endpoint, Family, Frontend, FrontendKey, Node, Pool, PoolKey, RejectWith};
use ipnet::IpNet;

use super::model::{Chain, Match, Op, Rule, TableName, Target, single};
use super::name;
use super::sources::{loopback, node_ports, opens_loopback, sources};
use super::state::Options;

pub(crate) const SERVICES: &str = "FAIRLEAD-SERVICES";
pub(crate) const NODEPORTS: &str = "FAIRLEAD-NODEPORTS";
pub(crate) const PREROUTING: &str = "FAIRLEAD-PREROUTING";
pub(crate) const POSTROUTING: &str = "FAIRLEAD-POSTROUTING";
pub(crate) const MARK: &str = "FAIRLEAD-MARK-MASQ";
pub(crate) const FILTER: &str = "FAIRLEAD-FILTER";
pub(crate) const FILTER_SERVICES: &str = "FAIRLEAD-FILTER-SERVICES";
pub(crate) const FILTER_NODEPORTS: &str = "FAIRLEAD-FILTER-NODEPORTS";
pub(crate) const INPUT: &str = "FAIRLEAD-INPUT";
pub(crate) const FORWARD: &str = "FAIRLEAD-FORWARD";

/// Chains of a table, by name.
pub(crate) type Chains = Vec<(TableName, String, Chain)>;

/// Chains that depend on the Node at most. Rules of frontends come before those that are there.
pub(crate) fn fixed(node: &Node, family: Family, options: &Options) -> Chains {
    let to = |chain: &str| Target::Jump(chain.to_owned());
    let served = |to: &Target| node_ports(node, family).into_iter().map(|at| Rule::new(at, to.clone())).collect();
    let outside = vec![Match::NotInterface("lo".to_owned()), Match::Destination(loopback(family))];
    let opened = opens_loopback(node, family);
    let guard = |target| opened.then(|| Rule::new(outside.clone(), target).comment("loopback is for this Node itself"));
    let mark = options.masquerade_mark;
    let goto = |chain: &str| Target::Goto(chain.to_owned());
    let filter = vec![Rule::new([Match::Translated], Target::Return), Rule::new([], goto(FILTER_SERVICES))];
    let mut forward = Vec::new();
    if options.drop_invalid {
        forward.push(Rule::new([Match::InvalidState], Target::Drop));
    }
    forward.push(Rule::new([Match::Mark(mark)], Target::Accept).comment("what is sent on for Services"));
    forward.push(Rule::new([Match::Known], Target::Accept));
    let postrouting = vec![
        Rule::new([Match::NotMark(mark)], Target::Return),
        Rule::new([], Target::FlipMark(mark)),
        Rule::new([], Target::Masquerade),
    ];
    let nat = |name: &str, rules| (TableName::Nat, name.to_owned(), rules);
    let filtered = |name: &str, rules| (TableName::Filter, name.to_owned(), rules);
    vec![
        nat(SERVICES, served(&goto(NODEPORTS))),
        nat(NODEPORTS, Vec::new()),
        nat(PREROUTING, guard(Target::Return).into_iter().chain([Rule::new([], to(SERVICES))]).collect()),
        nat(POSTROUTING, postrouting),
        nat(MARK, vec![Rule::new([], Target::SetMark(mark))]),
        filtered(FILTER, filter),
        filtered(FILTER_SERVICES, served(&goto(FILTER_NODEPORTS))),
        filtered(FILTER_NODEPORTS, Vec::new()),
        filtered(INPUT, guard(Target::Drop).into_iter().collect()),
        filtered(FORWARD, forward),
    ]
}

/// What leads to a frontend: a rule in a chain of a table.
pub(crate) fn leads(frontend: &Frontend) -> Vec<(TableName, &'static str, Rule)> {
    let comment = format!("{} {}", frontend.port, frontend.kind.as_str());
    let key = &frontend.key;
    let port = Match::Port(key.protocol(), key.port());
    let (at, services, filter) = match key {
        FrontendKey::Address { ip, .. } => (vec![Match::Destination(single(*ip)), port], SERVICES, FILTER_SERVICES),
        FrontendKey::NodePort { .. } => (vec![port], NODEPORTS, FILTER_NODEPORTS),
    };
    let lead = |kind: &str| Rule::new(at.clone(), Target::Goto(name::frontend(kind, key))).comment(comment.clone());
    let mut leads = vec![(TableName::Nat, services, lead("EXT"))];
    if refuses(frontend) {
        leads.push((TableName::Filter, filter, lead("GRD")));
    }
    leads
}

fn refuses(frontend: &Frontend) -> bool {
    let refused = |action| !matches!(action, Action::Forward { .. });
    frontend.allowed.is_some() || frontend.actions.iter().any(|(_, action)| refused(action))
}

/// The chains of a frontend.
pub(crate) fn frontend(frontend: &Frontend, node: &Node) -> Chains {
    let family = frontend.key.family();
    let mut chains = restrict(frontend, TableName::Nat, ["EXT", "ALW"], forwards(frontend, node, family));
    if refuses(frontend) {
        chains.extend(restrict(frontend, TableName::Filter, ["GRD", "REF"], refusals(frontend, node, family)));
    }
    chains
}

/// Rules, behind a chain that only sources that are allowed get past. In filter the others are dropped.
fn restrict(frontend: &Frontend, table: TableName, [outer, inner]: [&str; 2], rules: Chain) -> Chains {
    let chain = |kind, rules| (table, name::frontend(kind, &frontend.key), rules);
    let Some(allowed) = &frontend.allowed else { return vec![chain(outer, rules)] };
    let target = Target::Goto(name::frontend(inner, &frontend.key));
    let from = |range: &IpNet| Rule::new([Match::Source(range.trunc())], target.clone());
    let mut ranges: Chain = allowed.iter().map(from).collect();
    if table == TableName::Filter {
        ranges.push(Rule::new([], Target::Drop).comment("loadBalancerSourceRanges"));
    }
    vec![chain(inner, rules), chain(outer, ranges)]
}

/// Rules for each source; one for all if all are treated alike.
fn by_source<T: PartialEq + Copy>(
    frontend: &Frontend,
    node: &Node,
    family: Family,
    rules: impl Fn(Vec<Match>, Action) -> Vec<Rule>,
    same: impl Fn(Action) -> T,
) -> Chain {
    if frontend.actions.iter().all(|(_, action)| same(action) == same(frontend.actions[fairlead_plan::Source::Pod])) {
        return rules(Vec::new(), frontend.actions[fairlead_plan::Source::Pod]);
    }
    let sources = sources(node, family).into_iter();
    sources.flat_map(|(matches, source)| rules(matches, frontend.actions[source])).collect()
}

fn forwards(frontend: &Frontend, node: &Node, family: Family) -> Chain {
    let rules = |matches: Vec<Match>, action| match action {
        Action::Forward { scope, masquerade } => {
            let pool = name::pool(&PoolKey { port: frontend.port.clone(), scope });
            let mark = masquerade.then(|| Rule::new(matches.clone(), Target::Jump(MARK.to_owned())));
            mark.into_iter().chain([Rule::new(matches, Target::Goto(pool))]).collect()
        }
        Action::Reject | Action::Drop => vec![Rule::new(matches, Target::Return)],
    };
    by_source(frontend, node, family, rules, |action| action)
}

fn refusals(frontend: &Frontend, node: &Node, family: Family) -> Chain {
    let with = RejectWith::of(frontend.key.protocol()).into();
    let target = |action| match action {
        Action::Forward { .. } => Target::Return,
        Action::Reject => Target::Reject(with),
        Action::Drop => Target::Drop,
    };
    let rules = |mut matches: Vec<Match>, action| {
        // A reset needs to be told that this is TCP.
        if let Target::Reject(_) = target(action) {
            matches.insert(0, Match::Protocol(frontend.key.protocol()));
        }
        vec![Rule::new(matches, target(action))]
    };
    by_source(frontend, node, family, rules, |action| match action {
        Action::Forward { .. } => 0,
        Action::Reject => 1,
        Action::Drop => 2,
    })
}

/// The chain of a pool.
pub(crate) fn pool(pool: &Pool) -> (TableName, String, Chain) {
    let goto = |endpoint: &Endpoint| Target::Goto(name::endpoint(&pool.key.port, endpoint));
    let mut rules = Chain::new();
    if let Some(seconds) = pool.affinity {
        let list = |endpoint: &Endpoint| Match::Recent(name::endpoint(&pool.key.port, endpoint), seconds);
        rules.extend(pool.endpoints.iter().map(|endpoint| Rule::new([list(endpoint)], goto(endpoint))));
    }
    let mut of = pool.total_weight();
    for endpoint in pool.endpoints.iter() {
        let weight = u32::from(endpoint.weight);
        let chance = (weight < of).then_some(Match::Chance { weight, of });
        let rule = Rule::new(chance.into_iter().collect::<Vec<_>>(), goto(endpoint));
        rules.push(rule.comment(format!("{} -> {endpoint}", pool.key.port)));
        of -= weight;
    }
    (TableName::Nat, name::pool(&pool.key), rules)
}

/// The chain of an endpoint of a port.
pub(crate) fn endpoint(pool: &Pool, endpoint: &Endpoint) -> (TableName, String, Chain) {
    let name = name::endpoint(&pool.key.port, endpoint);
    let mut rules = Chain::new();
    if endpoint.local {
        rules.push(Rule::new([Match::Source(single(endpoint.ip))], Target::Jump(MARK.to_owned())));
    }
    let mut matches = vec![Match::Protocol(pool.key.port.protocol)];
    if pool.affinity.is_some() {
        matches.push(Match::Remember(name.clone()));
    }
    rules.push(Rule::new(matches, Target::Dnat(std::net::SocketAddr::new(endpoint.ip, endpoint.port))));
    (TableName::Nat, name, rules)
}

/// Writes chains.
pub(crate) fn write(family: Family, chains: Chains, ops: &mut Vec<Op>) {
    ops.extend(chains.into_iter().map(|(table, name, rules)| Op::Write((family, table), name, rules)));
}
