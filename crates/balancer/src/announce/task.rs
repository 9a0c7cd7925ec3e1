//! The task of an announcer: follows heartbeats, gives its own, decides, and tells the thread that holds addresses.

mod events;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, pending};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::source::Event;
use fairlead_cluster::{Cluster, Error as ApiError, Recorder, Step};
use fairlead_kernel::Error;
use fairlead_kernel::packet::Hardware;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::beat::{self, Beat, Heart};
use super::lan::{Lan, Orders, Post, Rival};
use super::pulse::Pulse;
use super::{Input, Owners, Settings};
use crate::guard::{Guard, Program};
use crate::owner::{self, Member, Ownership, Presence, Reach};

/// Writes of ours that may still come back by the watch.
const SENT: usize = 16;
/// Who leaves waits for others to begin, but no longer than this.
const GRACE: Duration = Duration::from_millis(600);

/// The work of an announcer.
#[derive(Debug)]
pub struct Task {
    settings: Settings,
    input: watch::Receiver<Option<Arc<Input>>>,
    owners: watch::Sender<Arc<Owners>>,
}

impl Task {
    pub(super) fn new(
        settings: Settings,
        input: watch::Receiver<Option<Arc<Input>>>,
        owners: watch::Sender<Arc<Owners>>,
    ) -> Task {
        Task { settings, input, owners }
    }

    /// Works until told to stop; then others are told so that they take over at once. An error only if the machine does not let
    /// us: packets and rules need privileges.
    pub async fn run(mut self, cluster: Cluster, stop: CancellationToken) -> Result<(), Error> {
        let lan = Lan::start()?;
        let input = stop.run_until_cancelled(self.input.wait_for(Option::is_some)).await;
        let Some(Ok(input)) = input.map(|input| input.map(|input| input.clone().unwrap_or_default())) else {
            return Ok(());
        };
        let recorder = Recorder::new(&cluster, "fairlead-announcer", &self.settings.node);
        let mut work = Work::new(self, cluster, lan, recorder, input);
        stop.run_until_cancelled(work.run()).await;
        work.leave().await;
        Ok(())
    }
}

type Writing = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send>>;

struct Work {
    settings: Settings,
    cluster: Cluster,
    told: watch::Receiver<Option<Arc<Input>>>,
    tell: watch::Sender<Arc<Owners>>,
    lan: Lan,
    recorder: Recorder,
    input: Arc<Input>,
    guard: Arc<Program>,
    pulse: Pulse,
    steps: BoxStream<'static, Step>,
    /// When something came by the watch, or it was opened.
    stepped: Instant,
    /// Nodes a list under way has shown.
    listing: BTreeSet<String>,
    /// A beat that is on its way.
    writing: Option<Writing>,
    /// When it began.
    began: Option<Instant>,
    /// When the next one is due.
    next: Instant,
    /// Stamps that may still come back, and when their writes began.
    sent: VecDeque<(String, Instant)>,
    /// It was said that it does not work.
    silent: bool,
    owners: BTreeMap<IpAddr, Ownership>,
    /// What we hold.
    posts: BTreeMap<IpAddr, Post>,
    sighted: bool,
}

/// What woke us.
enum Woken {
    Told,
    Step(Step),
    Written(Result<(), ApiError>),
    Links,
    Here,
    Rival(Rival),
    Time,
}

impl Work {
    fn new(task: Task, cluster: Cluster, lan: Lan, recorder: Recorder, input: Arc<Input>) -> Work {
        let steps = cluster.follow(beat::selection());
        let pulse = Pulse::new(&task.settings.node, task.settings.times);
        let now = Instant::now();
        Work {
            guard: Arc::new(guard(&input)),
            settings: task.settings,
            cluster,
            told: task.input,
            tell: task.owners,
            lan,
            recorder,
            input,
            pulse,
            steps,
            stepped: now,
            listing: BTreeSet::new(),
            writing: None,
            began: None,
            next: now,
            sent: VecDeque::new(),
            silent: false,
            owners: BTreeMap::new(),
            posts: BTreeMap::new(),
            sighted: false,
        }
    }

    async fn run(&mut self) {
        // The guard is there from the start, and what an earlier process held is gone unless it is ours again.
        loop {
            self.beat_if_due();
            let changed = match self.wait().await {
                Woken::Told => self.take_input(),
                Woken::Step(step) => self.take_step(step),
                Woken::Written(done) => self.written(done),
                // Others are told at once, and what is held by a link that was away is confirmed.
                Woken::Links => {
                    self.next = Instant::now();
                    true
                }
                Woken::Here => {
                    self.publish();
                    false
                }
                Woken::Rival(rival) => self.meet(rival),
                Woken::Time => false,
            };
            let sighted = self.pulse.sighted(Instant::now());
            if changed || sighted != self.sighted {
                self.sighted = sighted;
                self.decide();
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let date = self.date();
        let writing = async {
            match &mut self.writing {
                Some(writing) => writing.await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            step = self.steps.next() => match step {
                Some(step) => Woken::Step(step),
                None => pending().await,
            },
            done = writing => Woken::Written(done),
            told = self.told.changed() => match told {
                Ok(()) => Woken::Told,
                Err(_) => pending().await,
            },
            rival = self.lan.rivals.recv() => match rival {
                Some(rival) => Woken::Rival(rival),
                None => pending().await,
            },
            links = self.lan.attachments.changed() => match links {
                Ok(()) => Woken::Links,
                Err(_) => pending().await,
            },
            here = self.lan.here.changed() => match here {
                Ok(()) => Woken::Here,
                Err(_) => pending().await,
            },
            () = sleep_until(date.into()) => Woken::Time,
        }
    }

    /// When there is something to do though nothing happens.
    fn date(&self) -> Instant {
        let free = self.writing.is_none();
        let beat = free.then_some(self.next);
        let suspicion = self.pulse.next_suspicion().filter(|_| free);
        let blind = self.pulse.sighted_until().filter(|_| self.sighted);
        beat.into_iter()
            .chain(suspicion)
            .chain(blind)
            .min()
            .unwrap_or_else(|| Instant::now() + self.settings.times.limit)
    }

    /// Renews our Lease when it is time to, or when only that can show whether somebody is gone.
    fn beat_if_due(&mut self) {
        let now = Instant::now();
        let suspicion =
            self.pulse.next_suspicion().filter(|when| *when <= now && self.began.is_none_or(|began| began < *when));
        if self.writing.is_some() || (self.next > now && suspicion.is_none()) {
            return;
        }
        let last = self.sent.back().map(|(stamp, _)| stamp.as_str()).unwrap_or_default();
        let stamp = Heart::stamp(last);
        self.sent.push_back((stamp.clone(), now));
        while self.sent.len() > SENT {
            self.sent.pop_front();
        }
        let links = self.lan.attachments.borrow_and_update().clone();
        let (limit, beat) = (self.settings.times.limit, self.heart().beat(stamp, links));
        self.writing = Some(Box::pin(async move {
            let late = || ApiError::Unavailable { message: "no answer in time".to_owned(), retry_after: None };
            timeout(limit, beat).await.unwrap_or_else(|_| Err(late()))
        }));
        (self.began, self.next) = (Some(now), now + self.settings.times.interval);
    }

    fn heart(&self) -> Heart {
        let node = &self.settings.node;
        let found = self.input.nodes.iter().find(|one| one.metadata.name == *node);
        let uid = found.map(|node| node.metadata.uid.clone()).filter(|uid| !uid.is_empty());
        Heart { cluster: self.cluster.clone(), node: node.clone(), uid }
    }

    fn written(&mut self, done: Result<(), ApiError>) -> bool {
        self.writing = None;
        let now = Instant::now();
        match done {
            Ok(()) => {
                if std::mem::take(&mut self.silent) {
                    tracing::info!("the heartbeat of this node is heard again");
                }
                // The API answers, and the watch is silent: it is broken, or waits longer than we would.
                if self.stepped + self.settings.times.limit < now {
                    self.steps = self.cluster.follow(beat::selection());
                    self.stepped = now;
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.silent, true) {
                    tracing::warn!(%error, "the heartbeat of this node is not heard; it goes on with the addresses it holds");
                }
                self.next = self.next.min(now + self.settings.times.interval / 4);
            }
        }
        false
    }

    fn take_input(&mut self) -> bool {
        let Some(input) = self.told.borrow_and_update().clone() else { return false };
        self.input = input;
        let guard = guard(&self.input);
        if *self.guard != guard {
            self.guard = Arc::new(guard);
        }
        true
    }

    fn take_step(&mut self, step: Step) -> bool {
        let now = Instant::now();
        match step {
            Step::Listing => {
                self.listing.clear();
                false
            }
            Step::Objects(objects) => {
                let mut changed = false;
                for object in objects {
                    self.listing.extend(beat::node(&object.key).map(str::to_owned));
                    changed |= self.heard(&object.key, &object.json, now);
                }
                changed
            }
            Step::Listed(_) => {
                self.stepped = now;
                let gone: Vec<String> =
                    self.pulse.nodes().filter(|node| !self.listing.contains(*node)).cloned().collect();
                gone.iter().fold(false, |changed, node| self.pulse.forget(node) || changed)
            }
            Step::Changed(events, _) => {
                self.stepped = now;
                events.iter().fold(false, |changed, event| {
                    let one = match event {
                        Event::Put(object) => self.heard(&object.key, &object.json, now),
                        Event::Delete(key, _) => beat::node(key).is_some_and(|node| self.pulse.forget(node)),
                    };
                    one || changed
                })
            }
            Step::Trouble(failure) => {
                tracing::debug!(error = failure.message, "cannot follow heartbeats");
                false
            }
        }
    }

    fn heard(&mut self, key: &fairlead_api::source::Key, json: &[u8], now: Instant) -> bool {
        let (Some(node), Some(beat)) = (beat::node(key), Beat::read(json)) else { return false };
        let ours = node == self.settings.node;
        let came_back = self.sent.iter().position(|(stamp, _)| ours && *stamp == beat.stamp);
        let changed = self.pulse.hear(node, beat, now);
        let proven = came_back.is_some_and(|at| {
            let began = self.sent[at].1;
            self.sent.drain(..=at);
            self.pulse.prove(began)
        });
        changed || proven
    }

    /// Another says that it has an address we announce. Who sees whose heart beats knows better; who does not gives way to a Node.
    fn meet(&mut self, rival: Rival) -> bool {
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

    fn members(&self) -> Vec<Member> {
        let mut names: BTreeSet<&str> = self.input.nodes.iter().map(|node| node.metadata.name.as_str()).collect();
        names.extend(self.pulse.nodes().map(String::as_str));
        let member = |name: &str| {
            let node = self.input.nodes.iter().find(|node| node.metadata.name == name).cloned();
            let ours = name == self.settings.node;
            let attachments = match ours {
                true => self.lan.attachments.borrow().clone(),
                false => self.pulse.attachments(name).to_vec(),
            };
            Member { name: name.to_owned(), presence: self.pulse.presence(name), attachments, node }
        };
        names.into_iter().map(member).collect()
    }

    /// Finds out who answers for what, and acts accordingly.
    fn decide(&mut self) {
        let members = self.members();
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
        // What was held before the first decision may be ours again: it is left alone until then.
        if self.sighted || !self.owners.is_empty() {
            let (guard, posts, handed) = (self.guard.clone(), self.posts.clone(), self.handed());
            self.lan.hold(Orders { guard, posts, handed, friends: self.friends(&members), sighted: self.sighted });
        }
        self.publish();
    }

    /// The addresses that are ours.
    fn ours(&self, before: &BTreeMap<IpAddr, Ownership>) -> BTreeMap<IpAddr, Post> {
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
    fn friends(&self, members: &[Member]) -> BTreeSet<Hardware> {
        let others = members.iter().filter(|member| member.name != self.settings.node);
        others.flat_map(|member| &member.attachments).map(|one| one.hardware).collect()
    }

    /// The addresses that are other Nodes', as far as we can see.
    fn handed(&self) -> BTreeSet<IpAddr> {
        let me = self.settings.node.as_str();
        let theirs = |ownership: &Ownership| ownership.owner.as_deref().is_some_and(|owner| owner != me);
        let theirs = self.owners.iter().filter(|(_, ownership)| self.sighted && theirs(ownership));
        theirs.map(|(address, _)| *address).collect()
    }

    fn publish(&mut self) {
        let here = self.lan.here.borrow_and_update().clone();
        self.tell_taken(&here);
        let owners = Owners { addresses: self.owners.clone(), here, sighted: self.sighted };
        self.tell.send_if_modified(|said| {
            let changed = **said != owners;
            if changed {
                *said = Arc::new(owners);
            }
            changed
        });
    }

    /// Lets go of each address as soon as another Node announces it.
    async fn hand_over(&mut self) {
        let friends = self.friends(&self.members());
        let handed = std::mem::take(&mut self.posts).into_keys().collect();
        let orders = Orders { guard: self.guard.clone(), posts: BTreeMap::new(), handed, friends, sighted: true };
        self.lan.hold(orders);
        let _ = timeout(GRACE, self.lan.here.wait_for(BTreeMap::is_empty)).await;
    }

    /// Tells others that we go, and answers a little longer.
    async fn leave(mut self) {
        self.writing = None;
        let live = self.pulse.nodes().filter(|node| self.pulse.presence(node) == Presence::Live).count();
        let limit = self.settings.times.limit;
        let told = timeout(limit, self.heart().leave()).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("others were not told that this node goes; they find out");
        } else if live > 1 {
            self.hand_over().await;
        }
        drop(self.lan);
    }
}

/// All wanted addresses are guarded, whoever has them.
fn guard(input: &Input) -> Program {
    let mut guard: Guard = input.guard.clone();
    guard.addresses.extend(input.wanted.iter().map(|one| one.address));
    Program::new(&guard)
}
