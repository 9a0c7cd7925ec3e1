//! Renders a plan, and says which chains a change of it touches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_plan::{Delta, Family, Frontend, FrontendKey, Plan, PlanChange, Pool, PoolKey, PortKey, Scope};

use super::chains::{self, Chains};
use super::model::{Builtin, Chain, Match, Op, Program, Rule, TableName, Target};

/// How the program is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The bit of the mark that says that a packet is to be masqueraded (`--iptables-masquerade-bit`).
    pub masquerade_mark: u32,
    /// Whether packets that belong to no connection are dropped, lest they make a client reset one that lives. Not needed
    /// when the kernel is told to be liberal about them.
    pub drop_invalid: bool,
}

/// Bit 14, as ever.
impl Default for Options {
    fn default() -> Options {
        Options { masquerade_mark: 1 << 14, drop_invalid: true }
    }
}

/// The rules in chains of the kernel's that lead to ours. They are put before all others there, once.
pub fn jumps() -> Vec<(TableName, Builtin, Rule)> {
    let comment = "Fairlead: Services";
    let to = |matches: &[Match], chain: &str| Rule::new(matches, Target::Jump(chain.to_owned())).comment(comment);
    let new = [Match::New];
    vec![
        (TableName::Nat, Builtin::Prerouting, to(&[], chains::PREROUTING)),
        (TableName::Nat, Builtin::Output, to(&[], chains::SERVICES)),
        (TableName::Nat, Builtin::Postrouting, to(&[], chains::POSTROUTING)),
        (TableName::Filter, Builtin::Input, to(&[], chains::INPUT)),
        (TableName::Filter, Builtin::Input, to(&new, chains::FILTER)),
        (TableName::Filter, Builtin::Forward, to(&new, chains::FILTER)),
        (TableName::Filter, Builtin::Forward, to(&[], chains::FORWARD)),
        (TableName::Filter, Builtin::Output, to(&new, chains::FILTER)),
    ]
}

/// The whole program for a plan.
pub fn render(plan: &Plan, options: &Options) -> Program {
    let mut program = Program::default();
    program.take(&everything(plan, options)).expect("what is made from nothing is in order");
    program
}

fn everything(plan: &Plan, options: &Options) -> Vec<Op> {
    let mut ops = Vec::new();
    for family in plan.node().families.iter().copied() {
        family_ops(family, plan, options, &mut ops);
    }
    ops
}

fn family_ops(family: Family, plan: &Plan, options: &Options, ops: &mut Vec<Op>) {
    let mut chains = Chains::new();
    let mut leads: BTreeMap<(TableName, String), Chain> = BTreeMap::new();
    for pool in plan.pools().filter(|pool| pool.key.port.family == family) {
        chains.push(chains::pool(pool));
        chains.extend(pool.endpoints.iter().map(|endpoint| chains::endpoint(pool, endpoint)));
    }
    for frontend in plan.frontends().filter(|frontend| frontend.key.family() == family) {
        chains.extend(chains::frontend(frontend, plan.node()));
        for (table, chain, rule) in chains::leads(frontend) {
            leads.entry((table, chain.to_owned())).or_default().push(rule);
        }
    }
    for (table, name, mut rules) in chains::fixed(plan.node(), family, options) {
        let mut before = leads.remove(&(table, name.clone())).unwrap_or_default();
        before.append(&mut rules);
        chains.push((table, name, before));
    }
    // Both pools of a port may have the same endpoint.
    chains.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    chains.dedup_by(|one, other| (one.0, &one.1) == (other.0, &other.1));
    chains::write(family, chains, ops);
}

/// The steps that turn the program of the plan before a change into that of the plan after it, which is given.
pub fn diff(plan: &Plan, change: &PlanChange, options: &Options) -> Vec<Op> {
    let node = plan.node();
    if let Some(before) = change.node.as_deref().filter(|before| *before != node) {
        // Where packets are from is in the chains of all frontends. Nothing else is as rare.
        return anew(before.families.clone(), plan, change, options);
    }
    let mut ops = Vec::new();
    let mut removed = Vec::new();
    change_pools(plan, change, &mut ops, &mut removed);
    for delta in change.frontends.iter().filter(|delta| node.families.contains(&delta.key.family())) {
        change_frontend(plan, delta, &mut ops, &mut removed);
    }
    ops.append(&mut removed);
    ops
}

/// Everything is written again, and what is no more is removed.
fn anew(families: BTreeSet<Family>, plan: &Plan, change: &PlanChange, options: &Options) -> Vec<Op> {
    let mut ops = everything(plan, options);
    let written: BTreeSet<_> = ops
        .iter()
        .filter_map(|op| if let Op::Write(place, name, _) = op { Some((*place, name.clone())) } else { None })
        .collect();
    let old_node = change.node.as_deref().unwrap_or(plan.node());
    let mut gone = BTreeSet::new();
    for family in families {
        let mut chains = Chains::new();
        if !plan.node().families.contains(&family) {
            chains.extend(chains::fixed(old_node, family, options));
        }
        let frontends = change.frontends.iter().filter_map(|delta| delta.old.as_deref());
        let frontends = frontends.filter(|frontend| frontend.key.family() == family);
        frontends.for_each(|frontend| chains.extend(chains::frontend(frontend, old_node)));
        let pools = change.pools.iter().filter_map(|delta| delta.old.as_deref());
        for pool in pools.filter(|pool| pool.key.port.family == family) {
            chains.push(chains::pool(pool));
            chains.extend(pool.endpoints.iter().map(|endpoint| chains::endpoint(pool, endpoint)));
        }
        gone.extend(chains.into_iter().map(|(table, name, _)| ((family, table), name)));
    }
    ops.extend(gone.into_iter().filter(|chain| !written.contains(chain)).map(|(place, name)| Op::Remove(place, name)));
    ops
}

fn change_frontend(plan: &Plan, delta: &Delta<FrontendKey, Arc<Frontend>>, ops: &mut Vec<Op>, removed: &mut Vec<Op>) {
    let family = delta.key.family();
    let chains = |frontend: &Arc<Frontend>| chains::frontend(frontend, plan.node());
    let (old, new) =
        (delta.old.as_ref().map(chains).unwrap_or_default(), delta.new.as_ref().map(chains).unwrap_or_default());
    remove_missing(family, &old, &new, removed);
    let changed: Chains = new.into_iter().filter(|chain| !old.contains(chain)).collect();
    chains::write(family, changed, ops);
    let leads = |frontend: &Arc<Frontend>| chains::leads(frontend);
    let (old, new) =
        (delta.old.as_ref().map(leads).unwrap_or_default(), delta.new.as_ref().map(leads).unwrap_or_default());
    for (table, chain, rule) in old.iter().filter(|lead| !new.contains(lead)) {
        ops.push(Op::Delete((family, *table), (*chain).to_owned(), rule.clone()));
    }
    for (table, chain, rule) in new.into_iter().filter(|lead| !old.contains(lead)) {
        ops.push(Op::Insert((family, table), chain.to_owned(), rule));
    }
}

fn remove_missing(family: Family, old: &Chains, new: &Chains, removed: &mut Vec<Op>) {
    let kept =
        |chain: &&(TableName, String, Chain)| !new.iter().any(|other| (other.0, &other.1) == (chain.0, &chain.1));
    removed.extend(old.iter().filter(kept).map(|(table, name, _)| Op::Remove((family, *table), name.clone())));
}

fn change_pools(plan: &Plan, change: &PlanChange, ops: &mut Vec<Op>, removed: &mut Vec<Op>) {
    let mut ports: BTreeMap<&PortKey, Vec<&Delta<PoolKey, Arc<Pool>>>> = BTreeMap::new();
    let ours = change.pools.iter().filter(|delta| plan.node().families.contains(&delta.key.port.family));
    ours.for_each(|delta| ports.entry(&delta.key.port).or_default().push(delta));
    for (port, deltas) in ports {
        let (old, new) = (side(plan, port, &deltas, Side::Old), side(plan, port, &deltas, Side::New));
        remove_missing(port.family, &old, &new, removed);
        let changed: Chains = new.into_iter().filter(|chain| !old.contains(chain)).collect();
        chains::write(port.family, changed, ops);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

/// The chains of a port's pools before or after a change. Both pools may have the same endpoint: its chain is there once.
fn side(plan: &Plan, port: &PortKey, deltas: &[&Delta<PoolKey, Arc<Pool>>], side: Side) -> Chains {
    let mut chains = Chains::new();
    for scope in [Scope::Cluster, Scope::Local] {
        let changed = deltas.iter().find(|delta| delta.key.scope == scope);
        let pool = match (changed, side) {
            (Some(delta), Side::Old) => delta.old.as_ref(),
            (Some(delta), Side::New) => delta.new.as_ref(),
            (None, _) => plan.pool(&PoolKey { port: port.clone(), scope }),
        };
        let Some(pool) = pool else { continue };
        chains.push(chains::pool(pool));
        for chain in pool.endpoints.iter().map(|endpoint| chains::endpoint(pool, endpoint)) {
            if !chains.contains(&chain) {
                chains.push(chain);
            }
        }
    }
    chains
}
