//! The tables of nftables in mode IPVS: loaded whole, changed in batches, read when somebody else changed the ruleset.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fairlead_kernel::nft::{self as kernel, Batch, Connection};
use fairlead_plan::Family;
use fairlead_program::ipvs::{Known, Options, TABLE};
use fairlead_program::nft::{Op, clear};

use crate::Error;
use crate::nftables::convert;
use crate::nftables::ledger::Ledger;

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];
/// Maps with numbers that an earlier run gave out.
const NUMBERS: [&str; 2] = ["marks", "nodeport-marks"];

/// The tables, as far as we know them.
#[derive(Debug)]
pub(super) struct Tables {
    connection: Connection,
    ledger: Ledger,
    /// The generation of the ruleset if nobody but us changed it.
    generation: u32,
    counted: Instant,
    thorough: Duration,
}

impl Tables {
    /// Opens the way to nftables in this thread's network namespace.
    pub(super) fn open(thorough: Duration) -> Result<Tables, Error> {
        let (connection, ledger) = (Connection::open()?, Ledger::named(TABLE));
        Ok(Tables { connection, ledger, generation: 0, counted: Instant::now(), thorough })
    }

    /// What an earlier run left: numbers it gave out.
    pub(super) fn known(&mut self, options: &Options) -> Result<Known, Error> {
        let mut known = Known::default();
        for family in there(&mut self.connection)? {
            let table = convert::table_named(TABLE, family);
            let sets = self.connection.sets(&table)?;
            // Whoever broke the table may have taken a map.
            for map in NUMBERS.into_iter().filter(|map| sets.iter().any(|set| set.value.name == *map)) {
                for element in self.connection.elements(&table, map)? {
                    if let Some(kernel::Value::Data(value)) = element.value {
                        known.read(map, &element.key, &value, options);
                    }
                }
            }
        }
        Ok(known)
    }

    /// Puts tables in the place of those there are, at once.
    pub(super) fn load(&mut self, ops: &[Op]) -> Result<(), Error> {
        let all: Vec<Op> = clear().into_iter().chain(ops.iter().cloned()).collect();
        self.connection.commit(convert::batch_for(TABLE, &all), None)?;
        self.ledger = Ledger::named(TABLE);
        self.ledger.take(&all);
        (self.generation, self.counted) = (self.connection.generation()?, Instant::now());
        Ok(())
    }

    /// Makes a change, whole or not at all.
    pub(super) fn change(&mut self, ops: &[Op]) -> Result<(), Error> {
        self.connection.commit(convert::batch_for(TABLE, ops), None)?;
        self.ledger.take(ops);
        self.generation = self.generation.wrapping_add(1).max(1);
        Ok(())
    }

    /// What is not as it should be.
    pub(super) fn drift(&mut self, families: &BTreeSet<Family>) -> Result<Option<String>, Error> {
        let now = self.connection.generation()?;
        if now == self.generation {
            return Ok(None);
        }
        let there = there(&mut self.connection)?;
        if let Some(family) = families.iter().find(|family| !there.contains(family)) {
            return Ok(Some(format!("the table {TABLE} for {family} is gone")));
        }
        let due = self.counted.elapsed() >= self.thorough;
        let wrong = self.ledger.compare(&mut self.connection, due)?;
        if due && wrong.is_none() {
            (self.generation, self.counted) = (now, Instant::now());
        }
        Ok(wrong)
    }
}

/// For which families there are tables of ours.
fn there(connection: &mut Connection) -> Result<Vec<Family>, Error> {
    let tables: Vec<kernel::Table> = connection.tables()?.into_iter().map(|listed| listed.value).collect();
    let ours = |family: &Family| {
        let table = convert::table_named(TABLE, *family);
        tables.iter().any(|other| (other.family, &other.name) == (table.family, &table.name))
    };
    Ok(FAMILIES.into_iter().filter(ours).collect())
}

/// Removes our tables and says of which families there were some, as `nft` names them.
pub(super) fn remove() -> Result<Vec<&'static str>, Error> {
    let mut connection = Connection::open()?;
    let there = there(&mut connection)?;
    let mut batch = Batch::new();
    there.iter().for_each(|family| batch.delete_table(&convert::table_named(TABLE, *family)));
    connection.commit(batch, None)?;
    let name = |family: &Family| if *family == Family::V4 { "ip" } else { "ip6" };
    Ok(there.iter().map(name).collect())
}
