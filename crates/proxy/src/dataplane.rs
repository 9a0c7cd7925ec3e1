//! What every mode can do: take a plan, follow its changes, say whether the kernel still holds it.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

use fairlead_plan::{Family, FrontendKey, Plan, PlanChange, PortKey};

use crate::{Error, Mode};

/// One way to make packets go where a plan says. Calls block for as long as the kernel takes.
pub trait Dataplane: Send {
    /// Which mode it is.
    fn mode(&self) -> Mode;

    /// Puts a plan into the kernel, in the place of whatever of ours is there: of an earlier run, or what is left of it.
    /// Connections, and what is remembered of clients, live on.
    fn load(&mut self, plan: &Plan) -> Result<(), Error>;

    /// Takes a change of the plan, which is as it is after it. After an error [`Dataplane::load`] must be called.
    fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Result<(), Error>;

    /// What in the kernel is not as it should be, in words. [`Dataplane::load`] mends it.
    fn drift(&mut self, plan: &Plan) -> Result<Option<String>, Error>;

    /// Where processes of ours stand in for the endpoints of ports: to the kernel's memory of flows they are the endpoints.
    fn stand_ins(&self) -> Option<HashSet<(PortKey, SocketAddr)>> {
        None
    }

    /// How many rules there are and were written last, table by table, in modes that write rules one by one.
    fn rules(&self) -> Vec<RulesWritten> {
        Vec::new()
    }

    /// What was counted since the rules were made. A mode that does not count has nothing.
    fn counters(&mut self, _plan: &Plan) -> Result<Counters, Error> {
        Ok(Counters::default())
    }
}

/// Rules of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesWritten {
    /// Which table.
    pub table: &'static str,
    /// Of which family.
    pub family: Family,
    /// How many there are.
    pub total: usize,
    /// How many were written last.
    pub written: usize,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// By what packets are addressed to.
    pub frontends: BTreeMap<FrontendKey, Traffic>,
    /// By where they went.
    pub endpoints: BTreeMap<(PortKey, SocketAddr), Traffic>,
}

/// Packets and bytes. In kernel modes these are those that began a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many connections or flows began.
    pub connections: u64,
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Of these packets and bytes, those that came back from endpoints; `None`: that is not counted apart.
    pub back: Option<Volume>,
}

/// Packets and bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, more: &Traffic) {
        self.connections = self.connections.saturating_add(more.connections);
        self.packets = self.packets.saturating_add(more.packets);
        self.bytes = self.bytes.saturating_add(more.bytes);
        if let Some(more) = more.back {
            let back = self.back.get_or_insert_default();
            back.packets = back.packets.saturating_add(more.packets);
            back.bytes = back.bytes.saturating_add(more.bytes);
        }
    }
}
