//! `hosts`: names of a file like `/etc/hosts`, read again when it changes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fairlead_zone::message::{Head, Rcode, Record};
use fairlead_zone::{Name, pointer_name};

use crate::ask::{Ask, Reply};
use crate::metrics::Metrics;
use crate::settings;
use crate::words;

#[cfg(test)]
mod tests;

/// The longest file that is read.
const LONGEST: u64 = 64 << 20;

/// The names of a `hosts` plugin.
#[derive(Debug)]
pub(crate) struct Hosts {
    settings: settings::Hosts,
    table: RwLock<Arc<Table>>,
}

/// What a `hosts` plugin makes of a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// This is the answer.
    Reply(Reply),
    /// Others may know.
    Pass,
}

/// Names and addresses of one reading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    addresses: HashMap<Name, Vec<IpAddr>>,
    names: HashMap<Name, Vec<Name>>,
    /// The file as it was: when it was changed, and its length.
    file: Option<(SystemTime, u64)>,
}

impl Hosts {
    /// Reads the file, if there is one already.
    pub(crate) fn new(settings: &settings::Hosts) -> Hosts {
        let table = read(settings).unwrap_or_else(|error| {
            tracing::warn!(file = settings.file, %error, "hosts: the file cannot be read");
            let mut table = Table::default();
            settings.inline.iter().for_each(|line| table.add(line));
            table
        });
        Hosts { settings: settings.clone(), table: RwLock::new(Arc::new(table)) }
    }

    /// Whether it has something to say to a question: quickly.
    pub(crate) fn concerns(&self, name: &Name, rtype: u16) -> bool {
        let table = self.table();
        match rtype {
            words::PTR => self.settings.reverse && table.names.contains_key(name),
            _ if !self.covers(name) => false,
            _ => table.addresses.contains_key(name) || !self.settings.fallthrough.through(name),
        }
    }

    /// The answer to a question.
    pub(crate) fn answer(&self, ask: &Ask) -> Found {
        let table = self.table();
        if ask.rtype == words::PTR {
            let names = table.names.get(&ask.name).filter(|_| self.settings.reverse);
            let record = |name: &Name| Record::new(ask.name.clone(), words::PTR, self.settings.ttl, name.wire());
            return names.map_or(Found::Pass, |names| reply(names.iter().map(record).collect()));
        }
        if !self.covers(&ask.name) {
            return Found::Pass;
        }
        let through = self.settings.fallthrough.through(&ask.name);
        let wanted = |address: &&IpAddr| match ask.rtype {
            words::A => address.is_ipv4(),
            words::AAAA => address.is_ipv6(),
            _ => false,
        };
        let record = |address: &IpAddr| Record::address(ask.name.clone(), self.settings.ttl, *address);
        match table.addresses.get(&ask.name) {
            None if through => Found::Pass,
            // There is no zone here that could say that a name is not in it.
            None => Found::Reply(Reply { plugin: "hosts", ..Reply::failed(Rcode::SERV_FAIL) }),
            Some(_) if through && self.settings.fallthrough_unsupported && !is_address(ask.rtype) => Found::Pass,
            Some(addresses) => reply(addresses.iter().filter(wanted).map(record).collect()),
        }
    }

    fn covers(&self, name: &Name) -> bool {
        self.settings.zones.iter().any(|zone| name.is_under(zone))
    }

    fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again when it has changed, for ever.
    pub(crate) async fn keep_read(self: Arc<Self>, metrics: Metrics) {
        metrics.hosts(self.table().addresses.values().map(Vec::len).sum());
        if self.settings.reload == Duration::ZERO || self.settings.file.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.settings.reload).await;
            let hosts = self.clone();
            let changed = tokio::task::spawn_blocking(move || hosts.read_again()).await;
            if changed.unwrap_or(false) {
                metrics.hosts(self.table().addresses.values().map(Vec::len).sum());
            }
        }
    }

    fn read_again(&self) -> bool {
        let Some(file) = &self.settings.file else { return false };
        if stamp(file).ok() == self.table().file {
            return false;
        }
        // A file that is gone for a moment, as while it is written anew, changes nothing.
        let Ok(table) = read(&self.settings) else { return false };
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        true
    }
}

fn is_address(rtype: u16) -> bool {
    matches!(rtype, words::A | words::AAAA)
}

fn reply(answer: Vec<Record>) -> Found {
    let head = Head { authoritative: true, ..Head::default() };
    Found::Reply(Reply { head, answer, plugin: "hosts", ..Reply::default() })
}

fn read(settings: &settings::Hosts) -> std::io::Result<Table> {
    let mut table = Table::default();
    settings.inline.iter().for_each(|line| table.add(line));
    if let Some(file) = &settings.file {
        let stamp = stamp(file)?;
        if stamp.1 > LONGEST {
            return Err(std::io::Error::other("it is too long"));
        }
        let text = std::fs::read(file)?;
        String::from_utf8_lossy(&text).lines().for_each(|line| table.add(line));
        table.file = Some(stamp);
    }
    Ok(table)
}

fn stamp(file: &str) -> std::io::Result<(SystemTime, u64)> {
    let about = std::fs::metadata(file)?;
    Ok((about.modified()?, about.len()))
}

impl Table {
    /// Takes a line in: an address, and its names.
    fn add(&mut self, line: &str) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next().and_then(parse_address) else { return };
        for name in words.filter_map(|name| name.parse::<Name>().ok()).map(|name| name.to_lower()) {
            let addresses = self.addresses.entry(name.clone()).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
            let names = self.names.entry(pointer_name(address)).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
}

/// An address, perhaps with the interface it is good for, which nobody else can use.
fn parse_address(text: &str) -> Option<IpAddr> {
    text.split('%').next()?.parse().ok()
}
