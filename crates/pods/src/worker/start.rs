//! What a Pod needs before its containers run, and how they are started.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Look;
use fairlead_cluster::Severity;
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Happened, Task, Worker, container_of};
use crate::network::{self, Names, Plugged};
use crate::probes::{Kind, Probing};
use crate::record::Admission;
use crate::refuse::{self, Refused};
use crate::shim::launch::End;
use crate::storage::{self, Limits, Places};
use crate::surroundings::{self, Wanted};
use crate::unit::State;
use crate::{admit, cgroup, container, node, sockets, volumes};

/// What did not work is tried again after this.
const RETRY: Duration = Duration::from_secs(5);
/// Time between two looks for an image that a Pod waits for.
const IMAGES: Duration = Duration::from_secs(2);
/// A Node without a range for Pods is given this much time to get one before anybody hears of it.
const SOON: Duration = Duration::from_secs(2);

impl Worker {
    /// Starts and stops what must be.
    pub(super) async fn step(&mut self) {
        let now = Instant::now();
        self.act().await;
        // Whatever was due was tried.
        self.retry.retain(|_, at| *at > now);
    }

    async fn act(&mut self) {
        self.set_order();
        if self.leaving.is_some() {
            return;
        }
        if self.deadline().is_some_and(|deadline| deadline <= Timestamp::now()) {
            let message = "Pod was active on the node longer than the specified deadline";
            self.node.tell(&self.pod, Severity::Normal, "DeadlineExceeded", message);
            self.record.failed = Some(("DeadlineExceeded".to_owned(), message.to_owned()));
        }
        self.admit().await;
        if self.record.failed.is_some() || self.order.over.is_some() {
            return self.wind_up().await;
        }
        self.blocked = self.blocked.filter(|until| *until > Instant::now());
        if self.blocked.is_some() || self.order.start.is_empty() && self.network && self.volumes.is_some() {
            self.refresh();
            return self.tell_back_off();
        }
        if !self.is_allowed() || !self.has_user() || !self.has_network().await || !self.has_volumes().await {
            return;
        }
        self.watch_storage();
        for place in std::mem::take(&mut self.order.start) {
            if self.retry.get(&place).is_none_or(|at| *at <= Instant::now()) {
                self.retry.remove(&place);
                self.start(place).await;
            }
        }
        self.set_order();
        self.tell_back_off();
    }

    /// Decides once whether this Node runs the Pod. A Pod that it rejects has failed.
    async fn admit(&mut self) {
        if self.record.admission != Admission::Undecided || self.record.failed.is_some() {
            return;
        }
        // One that an earlier version has started is not rejected any more.
        let begun = self.record.units.iter().any(|unit| unit.runs > 0);
        let mut object = self.node.object.clone();
        let node = match timeout(SOON, object.wait_for(|node| !node.is_null())).await {
            Ok(Ok(node)) => Arc::clone(&node),
            _ => Arc::default(),
        };
        let rejection = admit::rejection(&self.pod, &node).filter(|_| !begun);
        self.record.admission = Admission::Admitted;
        if let Some(Refused { reason, message }) = rejection {
            self.record.admission = Admission::Rejected;
            self.record.failed = Some((reason.to_owned(), format!("Pod was rejected: {message}")));
            self.node.tell(&self.pod, Severity::Warning, reason, message);
        }
    }

    /// Whether the Pod may run here at all; if not, it says so and waits to become another.
    fn is_allowed(&mut self) -> bool {
        let refused = refuse::refused(&self.pod, self.node.settings.users, |image| self.node.image(image));
        if let Some(refused) = &refused {
            self.hold(refused);
            if self.refused.as_ref() != Some(refused) {
                let reason = if refused.reason == "HostPrivilegesNotGranted" { refused.reason } else { "Failed" };
                self.node.tell(&self.pod, Severity::Warning, reason, format!("Error: {}", refused.message));
            }
            let images_change = refused.reason == refuse::NO_IMAGE;
            let wait = if images_change { IMAGES.min(self.node.settings.refresh) } else { self.node.settings.refresh };
            self.blocked = Some(Instant::now() + wait);
        }
        self.refused = refused;
        self.refused.is_none()
    }

    /// None of the containers that were never started is, for a reason.
    fn hold(&mut self, why: &Refused) {
        for unit in self.record.units.iter_mut().filter(|unit| unit.runs == 0) {
            unit.state = State::waiting(why.reason, why.message.clone());
        }
    }

    fn block(&mut self, reason: &'static str, message: String, wait: Duration) {
        if reason == "FailedCreatePodSandBox" {
            self.node.metrics.pod_failed();
        }
        tracing::debug!(pod = self.pod.at("metadata").text("name"), reason, message, "a Pod waits");
        if self.waits != message {
            self.node.tell(&self.pod, Severity::Warning, reason, message.as_str());
            self.waits = message;
        }
        self.blocked = Some(Instant::now() + wait);
    }

    /// Gives the Pod a user of its own. One that an earlier version has started keeps the user it
    /// has.
    fn has_user(&mut self) -> bool {
        if self.record.user.is_some() || self.record.units.iter().any(|unit| unit.runs > 0) {
            return true;
        }
        self.record.user = self.node.take_user(self.record.uid());
        if self.record.user.is_none() {
            let message =
                "Failed to create pod sandbox: all users of this Node's range for Pods (--pod-users) are in use";
            self.block("FailedCreatePodSandBox", message.to_owned(), RETRY);
            return false;
        }
        // Before a file of the Pod can belong to it.
        let _ = self.record.write(&self.node.folder(self.record.uid()));
        true
    }

    async fn has_network(&mut self) -> bool {
        let own = !self.pod.at("spec").flag("hostNetwork");
        if !self.network && own {
            if self.record.addresses.is_empty() && !self.take_addresses().await {
                return false;
            }
            let names = Names::of(&self.node.settings.data, self.record.uid());
            let (addresses, mtu) = (self.record.addresses.clone(), self.node.settings.mtu);
            let plugged = tokio::task::spawn_blocking(move || network::plug(&names, &addresses, mtu)).await;
            let plugged =
                plugged.map_err(|error| error.to_string()).and_then(|done| done.map_err(|error| error.to_string()));
            if let Err(why) = plugged {
                self.block("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {why}"), RETRY);
                return false;
            }
            self.register_network().await;
        }
        if let Err(why) = surroundings::write_files(&self.node, &self.pod, &self.addresses()) {
            self.block("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {why}"), RETRY);
            return false;
        }
        self.network = true;
        self.node.metrics.pod_started();
        true
    }

    /// Gives the Pod its addresses and routes again if they were removed inside it, of which the
    /// Node has no notice.
    fn mend_inside(&self) {
        let uid = self.record.uid().to_owned();
        let node = self.node.clone();
        tokio::spawn(async move {
            let mtu = node.settings.mtu;
            let plugged = node.plugged.clone().lock_owned().await;
            let mend = move || plugged.get(&uid).map(|plugged| network::mend(&plugged.names, &plugged.addresses, mtu));
            if let Ok(Some(Err(error))) = tokio::task::spawn_blocking(mend).await {
                tracing::debug!(%error, "the network of a Pod cannot be mended");
            }
        });
    }

    /// Has the network of the Pod mended from now on.
    pub(super) async fn register_network(&self) {
        let names = Names::of(&self.node.settings.data, self.record.uid());
        let plugged = Plugged { names, addresses: self.record.addresses.clone() };
        self.node.plugged.lock().await.insert(self.record.uid().to_owned(), plugged);
    }

    async fn take_addresses(&mut self) -> bool {
        // A Node that has just come gets its ranges any moment.
        let mut object = self.node.object.clone();
        let known = object.wait_for(|object| !node::ranges(object).is_empty());
        if timeout(SOON, known).await.is_err() {
            let message = "network is not ready: the Node has no range for its Pods yet (spec.podCIDRs)";
            self.block("NetworkNotReady", message.to_owned(), Duration::ZERO);
            return false;
        }
        match self.node.take_addresses() {
            Ok(addresses) => {
                self.record.addresses = addresses;
                // Before anybody can use them: no other Pod may ever get them as well.
                let _ = self.record.write(&self.node.folder(self.record.uid()));
                true
            }
            Err(full) => {
                self.block("FailedCreatePodSandBox", format!("Failed to create pod sandbox: {full}"), RETRY);
                false
            }
        }
    }

    async fn has_volumes(&mut self) -> bool {
        if self.volumes.is_some() {
            return true;
        }
        match volumes::prepare(&self.node, &self.pod, &self.addresses()).await {
            Ok(volumes) => {
                self.volumes = Some(volumes);
                true
            }
            Err(why) => {
                self.block("FailedMount", why, RETRY);
                false
            }
        }
    }

    /// Measures from now on how much of the Node's disk the Pod uses, if it has limits for that.
    fn watch_storage(&mut self) {
        let (Some(limits), Some(volumes), None) = (Limits::of(&self.pod), &self.volumes, &self.storage) else { return };
        let places = Places::of(&self.pod, volumes, self.node.logs(&self.pod));
        let measured = Arc::new((limits, places));
        let interval = self.node.settings.measure;
        let tell = self.tell.clone();
        let task = tokio::spawn(async move {
            // A measurement under way ends with this task: the end of the process waits for both.
            let stop = CancellationToken::new();
            let _stopped_with_task = stop.clone().drop_guard();
            let mut pause = interval;
            loop {
                sleep(pause).await;
                let (exceeded, rest) = storage::measure(measured.clone(), stop.clone()).await;
                pause = interval.max(rest);
                if let Some(message) = exceeded
                    && tell.send(Happened::StorageExceeded { message }).await.is_err()
                {
                    return;
                }
            }
        });
        self.storage = Some(Task(task));
    }

    /// Files that come from the API follow it, in the background: nobody waits for a slow API.
    fn refresh(&mut self) {
        let Some(volumes) = self.volumes.clone().filter(|_| self.refreshed.elapsed() >= self.node.settings.refresh)
        else {
            return;
        };
        self.refreshed = Instant::now();
        self.mend_inside();
        let (node, pod, addresses) = (self.node.clone(), self.pod.clone(), self.addresses());
        tokio::spawn(async move { volumes::refresh(&node, &pod, &volumes, &addresses).await });
    }

    async fn start(&mut self, place: usize) {
        let name = self.record.units[place].name.clone();
        let number = self.record.units[place].runs;
        let run = self.node.run(self.record.uid(), &name, number);
        let container = container_of(&self.pod, &name).clone();
        let volumes = self.volumes.clone().unwrap_or_default();
        let (cgroups, unenforced) = cgroup::make(&self.node.settings.data, self.record.uid(), &container);
        if let Some(why) = unenforced.filter(|_| number == 0) {
            self.node.tell(&self.pod, Severity::Warning, "LimitsNotEnforced", format!("container {name}: {why}"));
        }
        let addresses = self.addresses();
        let Some(image) = self.node.image(container.text("image")) else {
            let message = format!("image {:?} is not on this Node any more", container.text("image"));
            return self.failed_to_start(place, &surroundings::no_image(message));
        };
        let mut shared_processes = None;
        if self.pod.at("spec").flag("shareProcessNamespace") {
            let folder = self.node.folder(self.record.uid());
            match container::pause(&self.node.settings, &folder).await {
                Ok(first) => shared_processes = Some(first),
                Err(message) => {
                    return self.failed_to_start(place, &Refused { reason: "CreateContainerError", message });
                }
            }
        }
        let wanted = Wanted {
            pod: &self.pod,
            container: &container,
            image: &image,
            addresses: &addresses,
            volumes: &volumes,
            user: self.record.user,
            run: number,
            cgroups: &cgroups,
            shared_processes,
        };
        let turn = self.node.starts.acquire().await;
        let made = surroundings::launch(&self.node, wanted).await;
        let started = match made {
            Ok(launch) => run
                .start(&self.node.settings, &launch)
                .await
                .map_err(|message| Refused { reason: "CreateContainerError", message }),
            Err(refused) => Err(refused),
        };
        drop(turn);
        match started {
            Ok(state) => {
                self.record.units[place].image_id = image.id;
                self.started(place, state.ended);
            }
            Err(refused) => self.failed_to_start(place, &refused),
        }
    }

    fn failed_to_start(&mut self, place: usize, why: &Refused) {
        self.node.tell(&self.pod, Severity::Warning, "Failed", format!("Error: {}", why.message));
        let unit = &mut self.record.units[place];
        self.node.metrics.container_failed(unit.role, why.reason);
        if let State::Ended(ended) = &unit.state {
            unit.last = Some(ended.clone());
        }
        unit.state = State::waiting(why.reason, why.message.clone());
        self.retry.insert(place, Instant::now() + 2 * RETRY);
    }

    fn started(&mut self, place: usize, ended: Option<End>) {
        let unit = &mut self.record.units[place];
        let (name, before) = (unit.name.clone(), unit.runs.checked_sub(2));
        self.node.metrics.container_started(unit.role, unit.runs > 0);
        unit.start(Timestamp::now());
        self.waits.clear();
        let failure = ended.as_ref().and_then(|end| end.failure.clone());
        match failure {
            Some(why) => self.node.tell(&self.pod, Severity::Warning, "Failed", format!("Error: {why}")),
            None => self.node.tell(&self.pod, Severity::Normal, "Started", "Container started"),
        }
        if let Some(number) = before {
            // Only the last run but one is still of interest.
            container::forget(&self.node.run(self.record.uid(), &name, number).folder);
            container::forget_log(&self.node.log(&self.pod, &name, number));
        }
        match ended {
            Some(end) => self.ended(place, &end),
            None => self.watch(place, false),
        }
    }

    /// Looks at a container that runs, from now on.
    pub(super) fn watch(&mut self, place: usize, before: bool) {
        let unit = &self.record.units[place];
        let (name, number) = (unit.name.clone(), unit.runs.saturating_sub(1));
        let (run, tell) = (self.node.run(self.record.uid(), &name, number), self.tell.clone());
        let task = tokio::spawn(async move {
            let end = run.ended().await;
            let _ = tell.send(Happened::Ended { place, run: number, end }).await;
        });
        self.tasks.entry(place).or_default().push(Task(task));
        self.slot.show(|shown| drop(shown.ends.insert(name.clone(), CancellationToken::new())));
        let container = container_of(&self.pod, &name).clone();
        if !before {
            self.post_start(place, &container);
        }
        let waits = container.map("startupProbe").is_some() && !self.record.units[place].started;
        if waits {
            self.probe(place, Kind::Startup);
        } else {
            self.record.units[place].started = true;
            self.watch_started(place);
        }
    }

    /// The probes of a container that has started.
    pub(super) fn watch_started(&mut self, place: usize) {
        let container = container_of(&self.pod, &self.record.units[place].name).clone();
        if container.map("readinessProbe").is_some() {
            self.probe(place, Kind::Readiness);
        } else if !self.record.units[place].ready {
            self.await_listening(place, &container);
        }
        if container.map("livenessProbe").is_some() {
            self.probe(place, Kind::Liveness);
        }
    }

    /// Makes a container without a readiness probe ready: at once if it declares no ports, else
    /// when it listens on one of them, but not later than `Settings::listen_wait`.
    ///
    /// A kubelet makes it ready at once. There the way to the proxies takes longer than most
    /// programs take to listen; here it takes a millisecond, and clients would be refused.
    fn await_listening(&mut self, place: usize, container: &serde_json::Value) {
        let ports = sockets::declared(container);
        let unit = &mut self.record.units[place];
        if ports.is_empty() {
            unit.ready = true;
            return;
        }
        let number = unit.runs.saturating_sub(1);
        let run = self.node.run(self.record.uid(), &self.record.units[place].name, number);
        let limit = self.node.settings.listen_wait;
        let tell = self.tell.clone();
        let task = tokio::spawn(async move {
            let _ = timeout(limit, sockets::listening(&run, &ports)).await;
            let state = fairlead_probe::State::Healthy;
            let _ = tell.send(Happened::Probe { place, run: number, kind: Kind::Readiness, state }).await;
        });
        self.tasks.entry(place).or_default().push(Task(task));
    }

    fn probe(&mut self, place: usize, kind: Kind) {
        if kind != Kind::Readiness && self.is_ending() {
            return;
        }
        let unit = &self.record.units[place];
        let (number, stop) = (unit.runs.saturating_sub(1), self.stop_of(place));
        let since = match unit.state {
            State::Running { since } => since,
            _ => Timestamp::now(),
        };
        let ran = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
        let probing = Probing {
            node: self.node.clone(),
            pod: self.pod.clone(),
            container: stop.container,
            address: stop.address,
            run: stop.run,
            kind,
            initial: kind.initial(unit.ready),
            began: Instant::now().checked_sub(ran).unwrap_or_else(Instant::now),
        };
        let (changes, mut changed) = tokio::sync::mpsc::channel(1);
        let tell = self.tell.clone();
        let task = tokio::spawn(async move {
            let told = async {
                while let Some(state) = changed.recv().await {
                    let news = Happened::Probe { place, run: number, kind, state };
                    if tell.send(news).await.is_err() || kind == Kind::Startup {
                        return;
                    }
                }
            };
            tokio::select! {
                () = probing.run(changes) => {}
                () = told => {}
            }
        });
        let tasks = if kind == Kind::Readiness { &mut self.tasks } else { &mut self.restarting_probes };
        tasks.entry(place).or_default().push(Task(task));
    }

    fn post_start(&mut self, place: usize, container: &serde_json::Value) {
        let hook = container.at("lifecycle").at("postStart").clone();
        if !hook.is_object() {
            return;
        }
        let number = self.record.units[place].runs.saturating_sub(1);
        let (stop, tell, node) = (self.stop_of(place), self.tell.clone(), Arc::clone(&self.node));
        let task = tokio::spawn(async move {
            if stop.hook(&node, &hook).await.is_err() {
                let _ = tell.send(Happened::HookFailed { place, run: number }).await;
            }
        });
        self.tasks.entry(place).or_default().push(Task(task));
    }

    fn tell_back_off(&mut self) {
        for place in self.order.held_back.clone() {
            let unit = &self.record.units[place];
            if self.told.insert((place, unit.runs)) {
                let pod = crate::status::described(&self.pod);
                let message = format!("Back-off restarting failed container {} in pod {pod}", unit.name);
                self.node.tell(&self.pod, Severity::Warning, "BackOff", message);
            }
        }
    }
}
