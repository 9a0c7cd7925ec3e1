//! Which tables of iptables are there, without making any, and which of them nobody uses any more.

use fairlead_kernel::iptables::{Iptables as Tool, Variant, Version};
use fairlead_kernel::nft::{self as kernel, Batch, Connection, Policy, Table};
use fairlead_plan::Family;
use fairlead_program::iptables::TableName;

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

/// Removes tables in which nothing is but the empty chains every program of iptables makes again when it needs them: those are
/// what our rules needed. A chain that somebody set to drop is somebody's.
pub(super) fn remove_empty(family: Family) -> Result<(), Error> {
    let mut connection = Connection::open()?;
    let generation = connection.generation()?;
    let mut batch = Batch::new();
    for table in there(Variant::Nft, family)?.into_iter().map(|table| Table::new(number(family), table_name(table))) {
        let unused = |chain: &kernel::Chain| chain.base.as_ref().is_some_and(|base| base.policy == Policy::Accept);
        let chains = connection.chains(&table)?;
        if chains.iter().all(|listed| unused(&listed.value)) && connection.rules(&table)?.is_empty() {
            batch.delete_table(&table);
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

fn number(family: Family) -> kernel::Family {
    match family {
        Family::V4 => kernel::Family::Ip,
        Family::V6 => kernel::Family::Ip6,
    }
}
