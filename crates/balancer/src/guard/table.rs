//! The tables in the kernel: made whole, changed by what differs, and made anew when somebody took something away.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use fairlead_kernel::Error;
use fairlead_kernel::nft::{self, Batch, Connection, Event, Monitor};

use super::layout::{NAME, SETS, chains, tables};
use super::program::{ElementKey, Elements, Program, key_of};

/// The tables of this thread's network namespace.
#[derive(Debug)]
pub struct Table {
    connection: Connection,
    monitor: Monitor,
    /// What is there; `None`: unknown.
    held: Option<Program>,
}

impl Table {
    /// Touches nothing yet.
    pub fn open() -> Result<Table, Error> {
        Ok(Table { connection: Connection::open()?, monitor: Monitor::open()?, held: None })
    }

    /// Makes the kernel do what a program says, from one moment to the next.
    pub fn apply(&mut self, program: &Program) -> Result<(), Error> {
        if self.held.as_ref() == Some(program) {
            return Ok(());
        }
        let batch = match &self.held {
            Some(held) => change(held, program),
            None => self.whole(program)?,
        };
        // If it fails, the next attempt makes everything anew.
        self.held = None;
        self.connection.commit(batch, None)?;
        self.held = Some(program.clone());
        Ok(())
    }

    /// Looks at what others did since it was asked last; if they changed something of ours, it is made anew. Whether it was.
    pub fn mend(&mut self) -> Result<bool, Error> {
        let ours = self.connection.port();
        let touched = match self.monitor.events(Duration::ZERO) {
            Ok(events) => events
                .iter()
                .any(|event| matches!(event, Event::Changed(change) if change.table == NAME && change.port != ours)),
            Err(Error::Overrun) => true,
            Err(error) => return Err(error),
        };
        let Some(program) = self.held.clone().filter(|_| touched) else { return Ok(false) };
        if self.is_there(&program)? {
            return Ok(false);
        }
        self.held = None;
        self.apply(&program)?;
        Ok(true)
    }

    /// Whether the kernel has exactly this.
    pub(super) fn is_there(&mut self, program: &Program) -> Result<bool, Error> {
        for table in tables() {
            let wanted = chains(table.family);
            let there = self.connection.chains(&table)?;
            let same = |chain: &nft::Chain| there.iter().any(|listed| listed.value == *chain);
            if there.len() != wanted.len() || !wanted.iter().all(|(chain, _)| same(chain)) {
                return Ok(false);
            }
            let rules = self.connection.rules(&table)?;
            for (chain, wanted) in &wanted {
                let found = rules.iter().map(|listed| &listed.value).filter(|rule| rule.chain == chain.name);
                if !found.eq(wanted.iter()) {
                    return Ok(false);
                }
            }
            for set in SETS.iter().filter(|set| set.family == table.family) {
                let found = self.connection.elements(&table, set.name)?;
                if !same_keys(found.iter().map(key_of).collect(), program.elements(set.name), set.interval) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Everything anew, in the place of what is there.
    fn whole(&mut self, program: &Program) -> Result<Batch, Error> {
        let there = self.connection.tables()?;
        let mut batch = Batch::new();
        for table in tables() {
            if there.iter().any(|listed| listed.value.family == table.family && listed.value.name == NAME) {
                batch.delete_table(&table);
            }
            batch.add_table(&table);
            for set in SETS.iter().filter(|set| set.family == table.family) {
                batch.add_set(&table, &set.set());
                batch.add_elements(&table, set.name, program.elements(set.name).values());
            }
            for (chain, rules) in chains(table.family) {
                batch.add_chain(&table, &chain);
                rules.iter().for_each(|rule| batch.add_rule(&table, rule));
            }
        }
        Ok(batch)
    }
}

/// Says when it may be worth a look.
impl AsFd for Table {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}

fn change(held: &Program, program: &Program) -> Batch {
    let mut batch = Batch::new();
    for table in tables() {
        program.change(held, &table, &mut batch);
    }
    batch
}

/// A set of ranges may come back with an end before the first of them.
fn same_keys(mut found: Vec<ElementKey>, wanted: &Elements, interval: bool) -> bool {
    if interval {
        found.retain(|(key, _, begins)| *begins || key.iter().any(|byte| *byte != 0));
    }
    found.len() == wanted.len() && found.iter().all(|key| wanted.contains_key(key))
}

/// Removes the tables, and says what that was.
pub fn cleanup() -> Result<Vec<String>, Error> {
    let mut connection = Connection::open()?;
    let there = connection.tables()?;
    let mut batch = Batch::new();
    let mut removed = Vec::new();
    for table in tables().into_iter().filter(|table| there.iter().any(|listed| is(&listed.value, table))) {
        batch.delete_table(&table);
        removed.push(format!(
            "table {} {NAME} of nftables",
            if table.family == nft::Family::Arp { "arp" } else { "inet" }
        ));
    }
    connection.commit(batch, None)?;
    Ok(removed)
}

fn is(listed: &nft::Table, table: &nft::Table) -> bool {
    listed.family == table.family && listed.name == table.name
}
