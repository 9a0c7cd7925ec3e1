//! What people are told of addresses: Events about the Services that have them, once a change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use fairlead_cluster::Severity;

use super::super::beat::hardware;
use super::super::lan::{Here, Rival};
use super::Work;
use crate::owner::{Ownership, Reach};

/// Who keeps saying that it has an address is told of again after it was silent for so long.
const CONTESTED: Duration = Duration::from_secs(60);

impl Work {
    /// Tells what is ours now and was not. Every Node tells of its own addresses, so that it is told once.
    pub(super) fn tell_changes(&self, before: &BTreeMap<IpAddr, Ownership>) {
        let me = Some(self.settings.node.as_str());
        for (address, now) in &self.owners {
            let had = before.get(address).and_then(|before| before.owner.as_deref());
            if now.owner.as_deref() != me || had == me {
                continue;
            }
            if had.is_some() {
                self.figures.takeovers.add(1);
            }
            let node = &self.settings.node;
            let message = match &now.reach {
                Reach::Announced(_) => format!("announcing {address} from node {node:?} with protocol \"layer2\""),
                Reach::Routed => format!(
                    "holding {address} on node {node:?}, announced nowhere: no node is in its network, who wants to reach it \
                     needs a route"
                ),
            };
            self.tell_services(*address, Severity::Normal, "nodeAssigned", &message);
        }
    }

    /// Tells of the addresses that this Node gives up because they cannot be guarded.
    pub(super) fn tell_guard(&self) {
        let Some(why) = self.lan.unguarded.borrow().clone() else {
            return tracing::info!("the rules that guard load balancers' addresses are in force again");
        };
        let me = &self.settings.node;
        let ours = |ownership: &Ownership| ownership.owner.as_deref().is_none_or(|owner| owner == me);
        for address in self.owners.iter().filter(|(_, ownership)| ours(ownership)).map(|(address, _)| *address) {
            let message = format!(
                "{address} is not announced by node {me:?}: its kernel does not take the rules that guard the address: {why}"
            );
            self.tell_services(address, Severity::Warning, "AddressUnguarded", &message);
        }
    }

    /// Tells of addresses that somebody else has.
    pub(super) fn tell_taken(&self, here: &BTreeMap<IpAddr, Here>) {
        let told = self.tell.borrow();
        for (address, state) in here {
            if let Here::Taken(by) = state
                && told.here.get(address) != Some(state)
            {
                let by = hardware(*by);
                let message = format!("{address} is not announced: a machine with the hardware address {by} has it");
                self.tell_services(*address, Severity::Warning, "AddressTaken", &message);
            }
        }
    }

    /// Tells of somebody who is no Node and says that it has an address we announce.
    pub(super) fn tell_rival(&mut self, rival: Rival) {
        let now = Instant::now();
        self.contested.retain(|_, told| told.elapsed() < CONTESTED);
        if self.contested.insert(rival.address, now).is_some() {
            return;
        }
        let (address, by) = (rival.address, hardware(rival.hardware));
        let message =
            format!("{address} is announced by a machine with the hardware address {by}, too, which is no node");
        // Each address has its Event; a machine that claims a thousand addresses causes one log
        // line a minute.
        match &mut self.contest_logged {
            Some((last, silent)) if last.elapsed() < CONTESTED => *silent += 1,
            logged => {
                let silent = logged.map_or(0, |(_, silent)| silent);
                tracing::warn!(%address, others = silent, "{message}");
                *logged = Some((now, 0));
            }
        }
        self.record(address, Severity::Warning, "AddressContested", &message);
    }

    fn tell_services(&self, address: IpAddr, severity: Severity, reason: &'static str, message: &str) {
        tracing::info!(%address, reason, "{message}");
        self.record(address, severity, reason, message);
    }

    /// Records an Event for each Service that has an address.
    fn record(&self, address: IpAddr, severity: Severity, reason: &'static str, message: &str) {
        let wanted = self.input.wanted.iter().filter(|wanted| wanted.address == address);
        for service in wanted.flat_map(|wanted| &wanted.services) {
            self.recorder.record(service.clone(), severity, reason, message);
        }
    }
}
