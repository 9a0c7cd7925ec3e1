//! Mode iptables: chains `FAIRLEAD-*` in the tables nat and filter, written by `iptables-restore --noflush`.
//!
//! Names of chains follow from what they are for, so a change writes only the chains it touches. Running a program and waiting
//! for the lock costs far more than that, which is why changes are gathered for a moment in this mode.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fairlead_kernel::iptables::{Iptables as Tool, Variant, Version};
use fairlead_plan::{Family, Plan, PlanChange};
use fairlead_program::iptables::{Op, Options, Place, Rule, TableName, Target, diff, jumps, render, restore};

use crate::{Dataplane, Error, Mode, RulesWritten};
use saved::Saved;

mod look;
mod saved;
mod tables;

pub(crate) use look::chains;

/// How all our chains begin.
const PREFIX: &str = "FAIRLEAD-";
const TABLES: [TableName; 2] = [TableName::Nat, TableName::Filter];

/// The rules in the kernel, as far as we know them.
#[derive(Debug)]
pub(crate) struct Iptables {
    options: Options,
    variant: Variant,
    /// How often the rules are read.
    thorough: Duration,
    looked: Instant,
    /// Rules that must be there, by chain; `None`: nothing is known.
    held: Option<BTreeMap<Place, BTreeMap<String, usize>>>,
    /// How many were written last.
    written: BTreeMap<Place, usize>,
}

impl Iptables {
    /// Fails if the tools are missing or the kernel does not answer them.
    pub(crate) fn open(options: Options, thorough: Duration) -> Result<Iptables, Error> {
        let variant = Variant::Default;
        if let Err(error) = (Tool { variant, version: Version::V4 }).save("nat") {
            return Err(Error::Missing(format!("iptables cannot be used: {error}; install it, and run this as root")));
        }
        Ok(Iptables { options, variant, thorough, looked: Instant::now(), held: None, written: BTreeMap::new() })
    }

    fn write(&mut self, ops: &[Op]) -> Result<(), Error> {
        for (family, text) in restore(ops) {
            self.tool(family).restore(&text)?;
        }
        Ok(())
    }

    fn tool(&self, family: Family) -> Tool {
        tool(self.variant, family)
    }

    fn count(&mut self, ops: &[Op]) {
        self.written.clear();
        for op in ops {
            *self.written.entry(op.place()).or_default() +=
                if let Op::Write(_, _, rules) = op { rules.len() } else { 1 };
        }
        let held = self.held.get_or_insert_default();
        for op in ops {
            let table = held.entry(op.place()).or_default();
            match op {
                Op::Write(_, chain, rules) => drop(table.insert(chain.clone(), rules.len())),
                Op::Remove(_, chain) => drop(table.remove(chain)),
                Op::Insert(_, chain, _) => *table.entry(chain.clone()).or_default() += 1,
                Op::Delete(_, chain, _) => {
                    table.entry(chain.clone()).and_modify(|count| *count = count.saturating_sub(1));
                }
            }
        }
        // What is in chains of the kernel's is not ours to count.
        held.values_mut().for_each(|table| table.retain(|chain, _| chain.starts_with(PREFIX)));
    }
}

fn tool(variant: Variant, family: Family) -> Tool {
    let version = if family == Family::V4 { Version::V4 } else { Version::V6 };
    Tool { variant, version }
}

fn table_name(table: TableName) -> &'static str {
    match table {
        TableName::Nat => "nat",
        TableName::Filter => "filter",
    }
}

/// What the kernel has in these tables.
fn saved(variant: Variant, family: Family, tables: &[TableName]) -> Result<BTreeMap<Place, Saved>, Error> {
    let read = |table: &TableName| -> Result<(Place, Saved), Error> {
        Ok(((family, *table), Saved::read(&tool(variant, family).save(table_name(*table))?)))
    };
    tables.iter().map(read).collect()
}

/// The steps that put the rules that lead to our chains where they are missing.
fn lead(family: Family, saved: &BTreeMap<Place, Saved>) -> Vec<Op> {
    let missing = |(table, builtin, rule): &(TableName, _, Rule)| {
        let builtin: &fairlead_program::iptables::Builtin = builtin;
        let Some(Target::Jump(to)) = &rule.target else { return false };
        saved.get(&(family, *table)).is_none_or(|saved| !saved.jumps(builtin.as_str(), to))
    };
    let mut ops: Vec<Op> = jumps()
        .into_iter()
        .filter(missing)
        .map(|(table, builtin, rule)| Op::Insert((family, table), builtin.as_str().to_owned(), rule))
        .collect();
    // Each goes before the one inserted before it.
    ops.reverse();
    ops
}

impl Dataplane for Iptables {
    fn mode(&self) -> Mode {
        Mode::Iptables
    }

    fn load(&mut self, plan: &Plan) -> Result<(), Error> {
        self.held = None;
        let program = render(plan, &self.options);
        let mut ops = Vec::new();
        for (place, chains) in &program.tables {
            ops.extend(chains.iter().map(|(name, rules)| Op::Write(*place, name.clone(), rules.clone())));
        }
        for family in [Family::V4, Family::V6] {
            let wanted = plan.node().families.contains(&family);
            let saved = match saved(self.variant, family, &TABLES) {
                Ok(saved) => saved,
                // A family we do not serve need not be there.
                Err(_) if !wanted => continue,
                Err(error) => return Err(error),
            };
            if wanted {
                ops.extend(lead(family, &saved));
                let written = |place: &Place, chain: &str| {
                    program.tables.get(place).is_some_and(|table| table.contains_key(chain))
                };
                ops.extend(leftovers(&saved, written));
            } else {
                self.write(&removal(&saved))?;
            }
        }
        self.write(&ops)?;
        self.count(&ops);
        Ok(())
    }

    fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Result<(), Error> {
        if self.held.is_none() {
            return self.load(plan);
        }
        let ops = diff(plan, change, &self.options);
        self.write(&ops)?;
        self.count(&ops);
        Ok(())
    }

    fn rules(&self) -> Vec<RulesWritten> {
        let of = |((family, table), chains): (&Place, &BTreeMap<String, usize>)| RulesWritten {
            table: table_name(*table),
            family: *family,
            total: chains.values().sum(),
            written: self.written.get(&(*family, *table)).copied().unwrap_or(0),
        };
        self.held.iter().flatten().map(of).collect()
    }

    fn drift(&mut self, plan: &Plan) -> Result<Option<String>, Error> {
        let Some(held) = &self.held else { return Ok(Some("nothing was loaded".to_owned())) };
        if self.looked.elapsed() < self.thorough {
            return Ok(None);
        }
        self.looked = Instant::now();
        for family in plan.node().families.iter().copied() {
            let saved = saved(self.variant, family, &TABLES)?;
            if !lead(family, &saved).is_empty() {
                return Ok(Some(format!("a rule that leads to our chains for {family:?} is gone")));
            }
            for (place, saved) in &saved {
                let wanted = held.get(place).cloned().unwrap_or_default();
                if let Some(chain) = saved.differs(PREFIX, &wanted) {
                    return Ok(Some(format!("chain {chain} for {family:?} has other rules than it should")));
                }
            }
        }
        Ok(None)
    }
}

/// The steps that remove chains of ours nobody writes.
fn leftovers(saved: &BTreeMap<Place, Saved>, written: impl Fn(&Place, &str) -> bool) -> Vec<Op> {
    let mut ops = Vec::new();
    for (place, saved) in saved {
        let stale: BTreeSet<_> = saved.chains(PREFIX).filter(|chain| !written(place, chain)).collect();
        ops.extend(stale.into_iter().map(|chain| Op::Remove(*place, chain.to_owned())));
    }
    ops
}

/// The steps that remove all that is ours.
fn removal(saved: &BTreeMap<Place, Saved>) -> Vec<Op> {
    let mut ops = Vec::new();
    for (table, builtin, rule) in jumps() {
        let Some(Target::Jump(to)) = &rule.target else { continue };
        for (place, saved) in saved.iter().filter(|(place, _)| place.1 == table) {
            let there = if saved.jumps(builtin.as_str(), to) { 1 } else { 0 };
            ops.extend((0..there).map(|_| Op::Delete(*place, builtin.as_str().to_owned(), rule.clone())));
        }
    }
    ops.extend(leftovers(saved, |_, _| false));
    ops
}

/// Removes all chains of ours and what leads to them, of both variants, and says which there were.
pub(crate) fn remove() -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    for variant in [Variant::Legacy, Variant::Nft] {
        for family in [Family::V4, Family::V6] {
            let tables = tables::there(variant, family)?;
            // What is not installed left nothing.
            let Ok(saved) = saved(variant, family, &tables) else { continue };
            let ops = removal(&saved);
            if ops.is_empty() {
                continue;
            }
            for (family, text) in restore(&ops) {
                tool(variant, family).restore(&text)?;
            }
            let chains = ops.iter().filter(|op| matches!(op, Op::Remove(..))).count();
            removed.push(format!("{chains} chains of {}", name(variant, family)));
            if variant == Variant::Nft {
                tables::remove_empty(family)?;
            }
        }
    }
    Ok(removed)
}

fn name(variant: Variant, family: Family) -> String {
    let tool = if family == Family::V4 { "iptables" } else { "ip6tables" };
    match variant {
        Variant::Default => tool.to_owned(),
        Variant::Legacy => format!("{tool}-legacy"),
        Variant::Nft => format!("{tool}-nft"),
    }
}
