//! Mode nftables: a table of ours for each family, changed in batches of which each takes effect whole or not at all.
//!
//! Nobody else writes to these tables, but anybody may: `nft flush ruleset` is a common command. Every change of the ruleset
//! by anybody counts up its generation, so as long as only we counted, nothing needs to be read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fairlead_kernel::nft::{self as kernel, Batch, Connection};
use fairlead_plan::{Family, Plan, PlanChange};
use fairlead_program::nft::{Known, Nft, Op, Options, Portals, clear};

use crate::{Counters, Dataplane, Error, Mode};
use counters::Tally;
use ledger::Ledger;

pub(crate) mod convert;
pub(crate) mod counters;
pub(crate) mod ledger;
#[cfg(test)]
mod tests;

/// The map in which the kernel remembers clients.
const AFFINITY: &str = "affinity";
/// Maps with numbers that an earlier run gave out.
const NUMBERS: [&str; 3] = ["frontends", "nodeports", "members"];

/// The program in the kernel, as far as we know it.
#[derive(Debug)]
pub(crate) struct Nftables {
    connection: Connection,
    options: Options,
    /// How often everything is counted although others changed only what is theirs, as far as one sees at a glance.
    thorough: Duration,
    /// What was counted by elements that are gone.
    tally: Tally,
    tidied: Instant,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    nft: Nft,
    ledger: Ledger,
    /// The generation of the ruleset if nobody but us changed it.
    generation: u32,
    counted: Instant,
}

impl Nftables {
    /// Opens the way to the kernel's nftables in this thread's network namespace.
    pub(crate) fn open(options: Options, thorough: Duration) -> Result<Nftables, Error> {
        let mut connection = Connection::open()?;
        // Whoever may do nothing and undo it may do something.
        let trial = kernel::Table::new(kernel::Family::Ip, "fairlead-trial");
        let mut batch = Batch::new();
        batch.add_table(&trial);
        batch.delete_table(&trial);
        connection.commit(batch, None).map_err(|error| match Error::from(error) {
            error if error.is_temporary() => error,
            error => Error::Missing(format!("nftables cannot be used: {error}")),
        })?;
        let (tally, tidied) = (Tally::default(), Instant::now());
        Ok(Nftables { connection, options, thorough, tally, tidied, held: None })
    }

    /// What an earlier run left: numbers it gave out.
    fn known(&mut self) -> Result<BTreeMap<Family, Known>, Error> {
        let mut all = BTreeMap::new();
        for table in self.tables()? {
            let mut known = Known::default();
            for map in NUMBERS {
                self.connection.read_elements(&convert::table(table), map, |elements| {
                    for element in elements {
                        if let Some(kernel::Value::Data(value)) = element.value {
                            known.read(map, &element.key, &value);
                        }
                    }
                })?;
            }
            all.insert(table, known);
        }
        Ok(all)
    }

    /// Which of our tables are there.
    fn tables(&mut self) -> Result<Vec<Family>, Error> {
        let there = self.connection.tables()?;
        let ours = |family: &Family| {
            let table = convert::table(*family);
            there.iter().any(|other| (other.value.family, &other.value.name) == (table.family, &table.name))
        };
        Ok([Family::V4, Family::V6].into_iter().filter(ours).collect())
    }

    /// What the kernel remembers of clients, to be remembered on. A client whose endpoint is gone is found out when it comes.
    fn clients(&mut self) -> Result<Vec<(Family, Vec<kernel::Element>)>, Error> {
        let mut all = Vec::new();
        for family in self.tables()? {
            let mut elements = self.connection.elements(&convert::table(family), AFFINITY)?;
            for element in &mut elements {
                // The kernel takes what is left as how long it lasts; the next connection renews it.
                element.timeout = element.expires.or(element.timeout);
                element.expires = None;
            }
            all.push((family, elements));
        }
        Ok(all)
    }

    /// Loads a plan whose pools a process of the Node serves.
    pub(crate) fn load_portals(&mut self, plan: &Plan, portals: Portals) -> Result<(), Error> {
        let program = Nft::with_portals(plan, self.options.clone(), portals);
        self.put(plan, program, &[])
    }

    /// Where pools are served, if that was loaded. New ones must be there before [`Dataplane::apply`].
    pub(crate) fn portals(&mut self) -> Option<&mut Portals> {
        self.held.as_mut()?.nft.portals()
    }

    /// Puts a program in the place of what is there.
    fn put(
        &mut self,
        plan: &Plan,
        (nft, program): (Nft, Vec<Op>),
        clients: &[(Family, Vec<kernel::Element>)],
    ) -> Result<(), Error> {
        if let Some(held) = self.held.take() {
            // Counting is not worth a failure: what is there may be in pieces.
            let _ = self.tally.keep(&mut self.connection, &held.nft, plan);
        }
        let mut ops = clear();
        ops.extend(program);
        let mut ledger = Ledger::default();
        ledger.take(&ops);
        let mut batch = convert::batch(ops);
        for (family, elements) in clients.iter().filter(|(family, _)| plan.node().families.contains(family)) {
            batch.add_elements(&convert::table(*family), AFFINITY, elements);
        }
        self.connection.commit(batch, None)?;
        let generation = self.connection.generation()?;
        self.held = Some(Held { nft, ledger, generation, counted: Instant::now() });
        Ok(())
    }
}

impl Dataplane for Nftables {
    fn mode(&self) -> Mode {
        Mode::Nftables
    }

    fn load(&mut self, plan: &Plan) -> Result<(), Error> {
        let (known, clients) = (self.known()?, self.clients()?);
        let program = Nft::resume(plan, self.options.clone(), &known);
        self.put(plan, program, &clients)
    }

    fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Result<(), Error> {
        let Some(held) = &mut self.held else { return self.load(plan) };
        let before = counters::numbers(&held.nft, change);
        let ops = held.nft.apply(plan, change);
        if ops.is_empty() {
            return Ok(());
        }
        if ops.iter().any(|op| matches!(op, Op::DeleteTable(family) if plan.node().families.contains(family))) {
            // A map is full. Whoever makes all of it anew may as well keep what is remembered of clients.
            return match held.nft.portals().map(std::mem::take) {
                Some(portals) => self.load_portals(plan, portals),
                None => self.load(plan),
            };
        }
        held.ledger.take(&ops);
        held.generation = next(held.generation);
        let done = self.tally.commit(&mut self.connection, convert::batch(&ops), &before);
        if done.is_err() {
            // What is in the kernel is no longer what we think.
            self.held = None;
        }
        done
    }

    fn counters(&mut self, plan: &Plan) -> Result<Counters, Error> {
        match &self.held {
            Some(held) => self.tally.counters(&mut self.connection, &held.nft, plan),
            None => Ok(Counters::default()),
        }
    }

    fn drift(&mut self, plan: &Plan) -> Result<Option<String>, Error> {
        if self.tidied.elapsed() >= self.thorough {
            self.tidied = Instant::now();
            self.tally.forget_gone(plan);
        }
        let Some(held) = &self.held else { return Ok(Some("nothing was loaded".to_owned())) };
        let (expected, due) = (held.generation, held.counted.elapsed() >= self.thorough);
        let now = self.connection.generation()?;
        if now == expected {
            return Ok(None);
        }
        let missing =
            plan.node().families.iter().find(|family| !self.tables().is_ok_and(|there| there.contains(family)));
        if let Some(family) = missing {
            return Ok(Some(format!("the table for {family:?} is gone")));
        }
        let Some(held) = &mut self.held else { return Ok(None) };
        let wrong = held.ledger.compare(&mut self.connection, due)?;
        if due && wrong.is_none() {
            (held.generation, held.counted) = (now, Instant::now());
        }
        Ok(wrong)
    }
}

/// The number of the generation after that one. 0 is none.
fn next(generation: u32) -> u32 {
    generation.wrapping_add(1).max(1)
}

/// Removes our tables, and says which there were.
pub(crate) fn remove() -> Result<Vec<String>, Error> {
    let mut connection = Connection::open()?;
    let ours = |table: &kernel::Table| {
        [Family::V4, Family::V6]
            .into_iter()
            .map(convert::table)
            .any(|our| (our.family, &our.name) == (table.family, &table.name))
    };
    let there: Vec<_> = connection.tables()?.into_iter().map(|listed| listed.value).filter(ours).collect();
    let mut batch = Batch::new();
    there.iter().for_each(|table| batch.delete_table(table));
    connection.commit(batch, None)?;
    Ok(there.iter().map(|table| format!("table {} {} of nftables", table.family.as_str(), table.name)).collect())
}
