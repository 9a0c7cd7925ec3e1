//! How many rules and elements must be in the kernel: enough to notice that somebody else removed some, and all that it costs
//! is a number for each chain and set.

use std::collections::BTreeMap;

use fairlead_kernel::nft::Connection;
use fairlead_plan::Family;
use fairlead_program::nft::{Op, TABLE};

use super::{AFFINITY, convert};
use crate::Error;

/// What must be there.
#[derive(Debug)]
pub(crate) struct Ledger {
    name: &'static str,
    tables: BTreeMap<Family, Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Rules, by chain.
    rules: BTreeMap<String, usize>,
    /// Elements, by set. Those the kernel adds itself, and ranges, which it may keep otherwise, are not counted.
    elements: BTreeMap<&'static str, usize>,
}

/// Of the tables of mode nftables.
impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::named(TABLE)
    }
}

impl Ledger {
    /// Of tables of a name.
    pub(crate) fn named(name: &'static str) -> Ledger {
        Ledger { name, tables: BTreeMap::new() }
    }

    /// Counts steps.
    pub(crate) fn take(&mut self, ops: &[Op]) {
        ops.iter().for_each(|op| self.count(op));
    }

    fn count(&mut self, op: &Op) {
        match op {
            Op::AddTable(family) => drop(self.tables.entry(*family).or_default()),
            Op::DeleteTable(family) => drop(self.tables.remove(family)),
            Op::AddSet(family, set) => {
                if !set.interval && set.name != AFFINITY {
                    self.table(*family).elements.insert(set.name, 0);
                }
            }
            Op::AddChain(family, name, _) | Op::FlushChain(family, name) => {
                self.table(*family).rules.insert(name.to_string(), 0);
            }
            Op::AddRule(family, name, _) => *self.table(*family).rules.entry(name.to_string()).or_default() += 1,
            Op::DeleteChain(family, name) => drop(self.table(*family).rules.remove(&**name)),
            Op::AddElements(family, set, elements) => self.change(*family, set, |count| count + elements.len()),
            Op::DeleteElements(family, set, elements) => {
                self.change(*family, set, |count| count.saturating_sub(elements.len()));
            }
        }
    }

    fn table(&mut self, family: Family) -> &mut Counts {
        self.tables.entry(family).or_default()
    }

    fn change(&mut self, family: Family, set: &str, change: impl Fn(usize) -> usize) {
        if let Some(count) = self.table(family).elements.get_mut(set) {
            *count = change(*count);
        }
    }

    /// What the kernel has otherwise. Elements, of which there may be many, only when asked to be thorough.
    pub(crate) fn compare(&self, connection: &mut Connection, thorough: bool) -> Result<Option<String>, Error> {
        for (family, counts) in &self.tables {
            let table = convert::table_named(self.name, *family);
            let mut rules: BTreeMap<String, usize> =
                connection.chains(&table)?.into_iter().map(|chain| (chain.value.name, 0)).collect();
            for rule in connection.rules(&table)? {
                *rules.entry(rule.value.chain).or_default() += 1;
            }
            if let Some(name) = first_difference(&counts.rules, &rules) {
                return Ok(Some(format!("chain {name} for {family:?} has other rules than it should")));
            }
            for (set, wanted) in counts.elements.iter().filter(|_| thorough) {
                let found: usize = connection.read_elements(&table, set, |elements| elements.len())?.iter().sum();
                if found != *wanted {
                    return Ok(Some(format!("set {set} for {family:?} has {found} elements instead of {wanted}")));
                }
            }
        }
        Ok(None)
    }
}

fn first_difference<'a>(wanted: &'a BTreeMap<String, usize>, found: &'a BTreeMap<String, usize>) -> Option<&'a str> {
    let wrong = wanted.iter().find(|(name, count)| found.get(*name) != Some(count));
    let foreign = || found.keys().find(|name| !wanted.contains_key(*name));
    wrong.map(|(name, _)| name).or_else(foreign).map(String::as_str)
}
