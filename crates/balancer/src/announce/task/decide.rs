//! Who answers for what, as this Node sees it, and what it does about that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fairlead_kernel::packet::Hardware;

use super::super::Owners;
use super::super::lan::{Orders, Post, Rival};
use super::Work;
use crate::owner::{self, Member, Ownership, Presence, Reach};

impl Work {
    /// Finds out who answers for what, and acts accordingly; `again`: what is ours is announced once more.
    pub(super) fn decide(&mut self, again: bool) {
        let members = self.members();
        let me = &self.settings.node;
        let live = |member: &&Member| member.presence == Presence::Live && member.name != *me;
        self.figures.others.set(members.iter().filter(live).count() as u64);
        if self.sighted {
            let decide = |wanted: &owner::Wanted| (wanted.address, owner::decide(wanted, &members));
            let owners = self.input.wanted.iter().map(decide).collect();
            let before = std::mem::replace(&mut self.owners, owners);
            self.posts = self.ours(&before);
            self.tell_changes(&before);
        } else {
            let wanted: BTreeSet<IpAddr> = self.input.wanted.iter().map(|one| one.address).collect();
            self.posts.retain(|address, _| wanted.contains(address));
        }
        self.decided |= self.sighted;
        // What an earlier process held may be ours again: it is left alone until that is known.
        let posts = self.decided.then(|| self.posts.clone());
        let (guard, handed, friends) = (self.guard.clone(), self.handed(), self.friends(&members));
        self.lan.hold(Orders { guard, posts, handed, friends, sighted: self.sighted, again });
        self.publish();
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let mut names: BTreeSet<&str> = self.input.nodes.iter().map(|node| node.metadata.name.as_str()).collect();
        names.extend(self.pulse.nodes().map(String::as_str));
        let member = |name: &str| {
            let node = self.input.nodes.iter().find(|node| node.metadata.name == name).cloned();
            let ours = name == self.settings.node;
            let attachments = match ours {
                true => self.lan.attachments.borrow().clone(),
                false => self.pulse.attachments(name).to_vec(),
            };
            let guarded = match ours {
                true => self.lan.unguarded.borrow().is_none(),
                false => self.pulse.is_guarded(name),
            };
            Member { name: name.to_owned(), presence: self.pulse.presence(name), attachments, guarded, node }
        };
        names.into_iter().map(member).collect()
    }

    /// The addresses that are ours.
    pub(super) fn ours(&self, before: &BTreeMap<IpAddr, Ownership>) -> BTreeMap<IpAddr, Post> {
        let me = Some(self.settings.node.as_str());
        let ours = self.owners.iter().filter(|(_, ownership)| ownership.owner.as_deref() == me);
        ours.map(|(address, ownership)| {
            let links = match &ownership.reach {
                Reach::Announced(links) => links.clone(),
                Reach::Routed => Vec::new(),
            };
            // What another Node had is nobody else's, and what we have neither.
            let new = before.get(address).is_none_or(|had| had.owner.is_none());
            let probe = self.posts.get(address).map_or(new, |post| post.probe);
            (*address, Post { links, probe })
        })
        .collect()
    }

    /// The hardware addresses of other Nodes.
    pub(super) fn friends(&self, members: &[Member]) -> BTreeSet<Hardware> {
        let others = members.iter().filter(|member| member.name != self.settings.node);
        others.flat_map(|member| &member.attachments).map(|one| one.hardware).collect()
    }

    /// The addresses that are other Nodes', as far as we can see.
    pub(super) fn handed(&self) -> BTreeSet<IpAddr> {
        let me = self.settings.node.as_str();
        let theirs = |ownership: &Ownership| ownership.owner.as_deref().is_some_and(|owner| owner != me);
        let theirs = self.owners.iter().filter(|(_, ownership)| self.sighted && theirs(ownership));
        theirs.map(|(address, _)| *address).collect()
    }

    /// Another says that it has an address we announce. Who sees whose heart beats knows better; who does not gives way to a Node.
    pub(super) fn meet(&mut self, rival: Rival) -> bool {
        self.rouse();
        let node = self.pulse.nodes().find(|node| {
            **node != self.settings.node
                && self.pulse.attachments(node).iter().any(|one| one.hardware == rival.hardware)
        });
        match node {
            Some(node) if !self.pulse.sighted(Instant::now()) => {
                tracing::warn!(address = %rival.address, node, "another node has taken over; this one cannot see the others");
                self.posts.remove(&rival.address);
                true
            }
            Some(_) => false,
            None => {
                self.tell_rival(rival);
                false
            }
        }
    }

    pub(super) fn publish(&mut self) {
        let here = self.lan.here.borrow_and_update().clone();
        self.tell_taken(&here);
        let unguarded = self.lan.unguarded.borrow().clone();
        let owners = Owners { addresses: self.owners.clone(), here, sighted: self.sighted, unguarded };
        self.tell.send_if_modified(|said| {
            let changed = **said != owners;
            if changed {
                *said = Arc::new(owners);
            }
            changed
        });
    }
}
