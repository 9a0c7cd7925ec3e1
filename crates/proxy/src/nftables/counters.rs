//! How many connections did each endpoint get? Elements of two maps count the first packets of connections. What an element
//! counted goes with it, so the kernel is asked to say it whenever it deletes one.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use fairlead_kernel::nft::{Batch, Connection, Deleted, Element, Family as Table, Value};
use fairlead_plan::{Plan, PlanChange, PortKey};
use fairlead_program::nft::{COUNTED, Nft, counted};

use super::convert;
use crate::{Counters, Error, Traffic};

/// What elements counted that are gone.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<(PortKey, SocketAddr), Traffic>);

/// Ports by their numbers.
type Numbers = HashMap<(Table, u32), PortKey>;

impl Tally {
    /// Makes a change with which no connection that was counted gets lost. `before` has the numbers of what it touches:
    /// [`numbers`] from before the program took the change.
    pub(crate) fn commit(
        &mut self,
        connection: &mut Connection,
        mut batch: Batch,
        before: &Numbers,
    ) -> Result<(), Error> {
        // When thousands of endpoints go at once, what they counted since it was last read is lost.
        batch.echo_deletions(&COUNTED);
        let mut take = |deleted: Deleted| {
            if COUNTED.contains(&deleted.set.as_str()) {
                deleted.elements.iter().for_each(|element| add(&mut self.0, before, deleted.family, element));
            }
        };
        Ok(connection.commit_echoed(batch, None, &mut take)?)
    }

    /// Takes over what all elements counted, before they are all made anew.
    pub(crate) fn keep(&mut self, connection: &mut Connection, nft: &Nft, plan: &Plan) -> Result<(), Error> {
        let numbers = all_numbers(nft, plan);
        self.read(connection, &numbers)
    }

    /// What was counted in all.
    pub(crate) fn counters(&self, connection: &mut Connection, nft: &Nft, plan: &Plan) -> Result<Counters, Error> {
        let mut all = Tally(self.0.clone());
        all.read(connection, &all_numbers(nft, plan))?;
        Ok(Counters { endpoints: all.0, ..Counters::default() })
    }

    /// Forgets endpoints that no port has any more, so that what is kept is bounded by what there is.
    pub(crate) fn forget_gone(&mut self, plan: &Plan) {
        self.0.retain(|(port, at), _| plan.backends(port).iter().any(|it| (it.ip, it.port) == (at.ip(), at.port())));
    }

    fn read(&mut self, connection: &mut Connection, numbers: &Numbers) -> Result<(), Error> {
        for family in [fairlead_plan::Family::V4, fairlead_plan::Family::V6] {
            let table = convert::table(family);
            if !numbers.keys().any(|(of, _)| *of == table.family) {
                continue;
            }
            for map in COUNTED {
                let elements = connection.elements(&table, map)?;
                elements.iter().for_each(|element| add(&mut self.0, numbers, table.family, element));
            }
        }
        Ok(())
    }
}

/// The numbers of the ports a change touches.
pub(crate) fn numbers(nft: &Nft, change: &PlanChange) -> Numbers {
    change.pools.iter().filter_map(|delta| number(nft, &delta.key.port)).collect()
}

fn all_numbers(nft: &Nft, plan: &Plan) -> Numbers {
    plan.pools().filter_map(|pool| number(nft, &pool.key.port)).collect()
}

fn number(nft: &Nft, port: &PortKey) -> Option<((Table, u32), PortKey)> {
    nft.number(port).map(|number| ((convert::table(port.family).family, number), port.clone()))
}

fn add(totals: &mut BTreeMap<(PortKey, SocketAddr), Traffic>, numbers: &Numbers, family: Table, element: &Element) {
    let Some(counter) = element.counter.filter(|counter| counter.packets > 0) else { return };
    let Some(Value::Data(value)) = &element.value else { return };
    let Some((number, at)) = counted(&element.key, value) else { return };
    if let Some(port) = numbers.get(&(family, number)) {
        let total = &mut totals.entry((port.clone(), at)).or_default().connections;
        *total = total.saturating_add(counter.packets);
    }
}

#[cfg(test)]
mod tests;
