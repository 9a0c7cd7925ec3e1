//! Who of the Nodes answers for which address, and does this Node? Every Node has an [`Announcer`]; together they see to it that
//! each address is answered for by one of them, and that another takes over when that one is gone.
//!
//! ```text
//! wanted addresses, Nodes --+--> owner::decide --> is it us? --> lan: hold, announce, answer   (a thread)
//! heartbeats of all Nodes --'         '--> Owners, for status, Events and people
//!   (one Lease a Node)  <-- ours, every 0.4 s, with the links that lan sees
//! ```
//!
//! As long as no address is wanted nothing is written at all, and little while there is no other Node.
//!
//! What happens when the API is away: nobody can see who lives. So whoever holds an address goes on, and nobody begins. A Node that
//! alone lost the API looks dead to others: one of them takes its addresses over, and it stops as soon as it hears on the LAN
//! that another Node announces them, since that one must have seen more. When the API is back everybody decides anew from
//! the same facts; who lost stops at once, and the owner announces again.

mod beat;
mod figures;
mod lan;
mod pulse;
mod task;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::view::Node;
use fairlead_kernel::Error;
use fairlead_kernel::link::Links;
use tokio::sync::watch;

use crate::guard::{self, Guard};
use crate::metrics::Sample;
use crate::owner::{Ownership, Wanted};
use figures::Figures;

pub use lan::Here;
pub use pulse::Times;
pub use task::Task;

/// How a Node announces.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this Node.
    pub node: String,
    /// How hearts beat: the same on all Nodes.
    pub times: Times,
}

/// What an announcer has to know of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The addresses somebody has to answer for; one entry each.
    pub wanted: Vec<Wanted>,
    /// All Nodes.
    pub nodes: Vec<Arc<Node>>,
    /// What may reach this machine. The wanted addresses are added to its addresses.
    pub guard: Guard,
}

/// Who answers for which address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owners {
    /// By address. As it was last known, while `sighted` is false.
    pub addresses: BTreeMap<IpAddr, Ownership>,
    /// How it is with the addresses that this Node holds.
    pub here: BTreeMap<IpAddr, Here>,
    /// Whether this Node sees whose heart beats. While it does not, it goes on with what it holds and begins nothing.
    pub sighted: bool,
    /// Why this Node's kernel does not take the rules that guard addresses; `None`: it does. Until
    /// it does, this Node holds no address.
    pub unguarded: Option<String>,
}

impl Owners {
    /// The Node that answers for an address.
    pub fn owner(&self, address: IpAddr) -> Option<&str> {
        self.addresses.get(&address)?.owner.as_deref()
    }

    /// Whether this Node holds an address.
    pub fn holds(&self, address: IpAddr) -> bool {
        self.here.get(&address) == Some(&Here::Held)
    }
}

/// Tells a [`Task`] what is wanted, and what came of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Announcer {
    input: Arc<watch::Sender<Option<Arc<Input>>>>,
    owners: watch::Receiver<Arc<Owners>>,
    figures: Arc<Figures>,
}

impl Announcer {
    /// An announcer, and the task that does its work. Until it is told something, the Node takes no part.
    pub fn new(settings: Settings) -> (Announcer, Task) {
        let (input, told) = watch::channel(None);
        let (tell, owners) = watch::channel(Arc::default());
        let figures = Arc::<Figures>::default();
        let task = Task::new(settings, told, tell, figures.clone());
        (Announcer { input: Arc::new(input), owners, figures }, task)
    }

    /// This is so from now on.
    pub fn tell(&self, input: Input) {
        self.input.send_replace(Some(Arc::new(input)));
    }

    /// Who answers for which address, now and whenever it changes.
    pub fn owners(&self) -> watch::Receiver<Arc<Owners>> {
        self.owners.clone()
    }

    /// What it did and sees, for metrics.
    pub fn samples(&self) -> Vec<Sample> {
        self.figures.samples(&self.owners.borrow())
    }
}

/// Removes what announcers and guards have in this machine's kernel, and says what that was.
pub fn cleanup() -> Result<Vec<String>, Error> {
    let mut links = Links::open()?;
    let loopback = links.index("lo")?;
    let mut removed = Vec::new();
    for address in links.local(lan::OWNER)? {
        links.delete_local(lan::OWNER, loopback, address)?;
        removed.push(format!("local route {address}"));
    }
    removed.extend(guard::cleanup()?);
    Ok(removed)
}
