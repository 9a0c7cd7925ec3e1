//! How a Pod is taken over that an earlier runner began, perhaps before the machine was started again.

use fairlead_api::Look;
use jiff::Timestamp;

use super::Worker;
use crate::network::{self, Names};
use crate::shim::launch;
use crate::unit::{Role, State};

impl Worker {
    /// Goes on with what an earlier runner began.
    pub(super) async fn take_over(&mut self) {
        let same_boot = self.record.boot == launch::boot();
        for place in 0..self.record.units.len() {
            let unit = &mut self.record.units[place];
            let next = self.node.run(self.record.pod.at("metadata").text("uid"), &unit.name, unit.runs);
            let begun = launch::State::read(&next.folder).filter(|state| state.boot == launch::boot());
            if let Some(state) = begun.filter(|_| !unit.is_running()) {
                // It was started just before the runner ended.
                unit.start(state.started.parse().unwrap_or_else(|_| Timestamp::now()));
            }
            if unit.is_running() {
                self.watch(place, true);
            }
        }
        if same_boot {
            let file = Names::of(&self.node.settings.data, self.record.uid()).file();
            let own = !self.record.addresses.is_empty() && file.exists();
            if own {
                self.mend().await;
                self.register_network().await;
            }
            self.network = own || self.pod.at("spec").flag("hostNetwork");
        } else {
            self.start_anew();
        }
    }

    /// Links and routes may have been removed while nobody looked.
    async fn mend(&self) {
        let (names, addresses) =
            (Names::of(&self.node.settings.data, self.record.uid()), self.record.addresses.clone());
        let mtu = self.node.settings.mtu;
        let mended = tokio::task::spawn_blocking(move || network::mend(&names, &addresses, mtu)).await;
        if let Ok(Err(error)) = mended {
            tracing::warn!(%error, pod = self.pod.at("metadata").text("name"), "a Pod may not be reached");
        }
    }

    /// The machine was started again: init containers run again before what they prepare.
    fn start_anew(&mut self) {
        self.record.boot = launch::boot();
        for unit in &mut self.record.units {
            unit.begun = false;
            if let (State::Ended(ended), Role::Init) = (&unit.state, unit.role) {
                unit.last = Some(ended.clone());
                unit.state = State::waiting("", "");
            }
        }
    }
}
