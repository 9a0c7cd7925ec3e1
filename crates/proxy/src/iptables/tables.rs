//! Which tables of iptables are there, without making any, and which of them nobody uses any more.

use fairlead_kernel::iptables::{Iptables as Tool, Variant, Version};
use fairlead_kernel::nft::{self as kernel, Batch, Connection, Policy, Table};
use fairlead_plan::Family;
use fairlead_program::iptables::{TableName, jumps};

use super::{TABLES, table_name};
use crate::Error;

/// The tables of ours that are there.
pub(super) fn there(variant: Variant, family: Family) -> Result<Vec<TableName>, Error> {
    let names = match variant {
        Variant::Legacy if family == Family::V4 => Tool::legacy_tables(Version::V4),
        Variant::Legacy => Tool::legacy_tables(Version::V6),
        Variant::Default | Variant::Nft => {
            let all = Connection::open()?.tables()?.into_iter().map(|listed| listed.value);
            all.filter(|table| table.family == number(family)).map(|table| table.name).collect()
        }
    };
    Ok(TABLES.into_iter().filter(|table| names.iter().any(|name| name == table_name(*table))).collect())
}

/// Removes the chains our rules were in if nothing is in them any more, and tables without chains: every program of iptables
/// makes them again when it needs them. A chain that somebody set to drop is somebody's.
pub(super) fn remove_empty(family: Family) -> Result<(), Error> {
    let mut connection = Connection::open()?;
    let generation = connection.generation()?;
    let mut batch = Batch::new();
    for name in there(Variant::Nft, family)? {
        let table = Table::new(number(family), table_name(name));
        let (chains, rules) = (connection.chains(&table)?, connection.rules(&table)?);
        let used = |chain: &kernel::Chain| rules.iter().any(|rule| rule.value.chain == chain.name);
        let idle = |chain: &&kernel::Chain| is_plain(chain) && led_from(name, &chain.name) && !used(chain);
        let empty: Vec<&kernel::Chain> = chains.iter().map(|listed| &listed.value).filter(idle).collect();
        match empty.len() == chains.len() {
            true => batch.delete_table(&table),
            false => empty.iter().for_each(|chain| batch.delete_chain(&table, &chain.name)),
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    match connection.commit(batch, Some(generation)) {
        // Somebody else is at work: then it is not ours alone.
        Err(fairlead_kernel::Error::GenerationClash(_)) => Ok(()),
        done => Ok(done?),
    }
}

/// Whether packets enter a chain, and pass it if no rule decides.
fn is_plain(chain: &kernel::Chain) -> bool {
    chain.base.as_ref().is_some_and(|base| base.policy == Policy::Accept)
}

/// Whether our rules lead from a chain to ours.
fn led_from(table: TableName, chain: &str) -> bool {
    jumps().iter().any(|(of, builtin, _)| *of == table && builtin.as_str() == chain)
}

fn number(family: Family) -> kernel::Family {
    match family {
        Family::V4 => kernel::Family::Ip,
        Family::V6 => kernel::Family::Ip6,
    }
}
