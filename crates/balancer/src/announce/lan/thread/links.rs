//! Which links are there, and which of them are needed? Sockets are open on links that addresses are announced by, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use fairlead_kernel::Error;
use fairlead_kernel::link::{Links, Prefix};
use fairlead_kernel::packet::Hardware;
use ipnet::IpNet;

use super::super::Post;
use super::super::port::Port;
use super::{LOOK, PORTS, Thread};
use crate::owner::Attachment;

impl Thread {
    /// The links by which an address is announced that are there.
    pub(super) fn ports_of(&self, post: &Post, address: IpAddr) -> Vec<u32> {
        let has = |one: &Attachment| one.networks.iter().any(|network| network.contains(&address));
        let wanted = |one: &Attachment| post.links.contains(&one.link) && has(one);
        let found = self.attached.iter().filter(|(index, one)| wanted(one) && self.ports.contains_key(index));
        found.map(|(index, _)| *index).collect()
    }

    /// Opens the sockets that are needed and closes others.
    pub(super) fn open_ports(&mut self, posts: &BTreeMap<IpAddr, Post>, now: Instant) {
        let names: BTreeSet<&String> = posts.values().flat_map(|post| &post.links).collect();
        let needed = |one: &Attachment| names.contains(&one.link);
        let attached = &self.attached;
        // A link of the same number may be another one by now.
        self.ports
            .retain(|index, port| attached.get(index).is_some_and(|one| needed(one) && one.hardware == port.hardware));
        let missing: Vec<(u32, Hardware)> = attached
            .iter()
            .filter(|(index, one)| needed(one) && !self.ports.contains_key(index))
            .map(|(index, one)| (*index, one.hardware))
            .collect();
        for (index, hardware) in missing {
            let opened = Port::open(index, hardware).and_then(|port| {
                let failed = |source| Error::System { action: format!("listening to link {index}"), source };
                let token = PORTS + u64::from(index) * 2;
                self.poller.watch(port.arp.as_fd(), token).map_err(failed)?;
                self.poller.watch(port.ndp.as_fd(), token + 1).map_err(failed)?;
                Ok(port)
            });
            match opened {
                Ok(port) => drop(self.ports.insert(index, port)),
                Err(error) => self.failed("questions cannot be heard", &error, now),
            }
        }
    }

    /// Looks which links there are.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        let attached = attachments(&mut self.links)?;
        let now = Instant::now();
        self.look = now + LOOK;
        if attached == self.attached {
            return Ok(());
        }
        (self.attached, self.changed) = (attached, true);
        let posts = self.orders.as_ref().and_then(|orders| orders.posts.clone()).unwrap_or_default();
        self.open_ports(&posts, now);
        let ports: Vec<(IpAddr, Vec<u32>)> =
            self.held.iter().map(|(address, held)| (*address, self.ports_of(&held.post, *address))).collect();
        for (address, ports) in ports {
            self.join(address, &ports);
            if let Some(held) = self.held.get_mut(&address) {
                held.attach(ports, now);
            }
        }
        let links = self.attached.values().cloned().collect();
        self.says.attachments.send_if_modified(|said| std::mem::replace(said, links) != *said);
        Ok(())
    }
}

/// The links that frames can be sent by, and their networks.
fn attachments(links: &mut Links) -> Result<BTreeMap<u32, Attachment>, Error> {
    let mut found = BTreeMap::new();
    let addresses = links.all_addresses()?;
    for link in links.list()?.into_iter().filter(|link| link.running && link.hardware != [0; 6]) {
        let own = addresses.iter().filter(|(index, _)| *index == link.index);
        let networks: BTreeSet<IpNet> = own.filter_map(|(_, prefix)| network(*prefix)).collect();
        // Links of ours lead to Pods.
        if !networks.is_empty() && !link.name.starts_with("fl") {
            let networks = networks.into_iter().collect();
            found.insert(link.index, Attachment { link: link.name, hardware: link.hardware, networks });
        }
    }
    Ok(found)
}

/// The network an address is in; an address alone, and one that every link has, are in none.
fn network(prefix: Prefix) -> Option<IpNet> {
    let net = IpNet::new(prefix.address, prefix.length).ok()?.trunc();
    let everywhere = matches!(net, IpNet::V6(net) if net.addr().is_unicast_link_local());
    (net.prefix_len() < net.max_prefix_len() && !everywhere).then_some(net)
}
