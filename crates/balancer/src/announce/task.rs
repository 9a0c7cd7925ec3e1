//! The task of an announcer: follows heartbeats, gives its own, decides, and tells the thread that holds addresses.

mod alone;
mod decide;
mod events;
mod hearts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, pending};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_cluster::{Cluster, Error as ApiError, Recorder, Step};
use fairlead_kernel::Error;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::beat;
use super::figures::Figures;
use super::lan::{Lan, Orders, Post, Rival};
use super::pulse::Pulse;
use super::{Input, Owners, Settings};
use crate::guard::{Guard, Program};
use crate::owner::{Ownership, Presence};

/// Writes of ours that may still come back by the watch.
const SENT: usize = 16;
/// Who leaves waits for others to begin, but no longer than this.
const GRACE: Duration = Duration::from_millis(600);
/// Time between two attempts to open the sockets of announcements.
const START_RETRY: Duration = Duration::from_millis(500);

/// The work of an announcer.
#[derive(Debug)]
pub struct Task {
    settings: Settings,
    input: watch::Receiver<Option<Arc<Input>>>,
    owners: watch::Sender<Arc<Owners>>,
    figures: Arc<Figures>,
}

impl Task {
    pub(super) fn new(
        settings: Settings,
        input: watch::Receiver<Option<Arc<Input>>>,
        owners: watch::Sender<Arc<Owners>>,
        figures: Arc<Figures>,
    ) -> Task {
        Task { settings, input, owners, figures }
    }

    /// Works until told to stop; then others are told so that they take over at once. An error only if the machine does not let
    /// us: packets and rules need privileges.
    pub async fn run(mut self, cluster: Cluster, stop: CancellationToken) -> Result<(), Error> {
        let Some(lan) = start_lan(&stop).await? else { return Ok(()) };
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

/// Opens the sockets of announcements. Errors that may go by themselves are tried again until told
/// to stop (`None`).
async fn start_lan(stop: &CancellationToken) -> Result<Option<Lan>, Error> {
    let mut told = false;
    loop {
        match Lan::start() {
            Err(error) if error.is_temporary() => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(
                        "addresses of load balancers cannot be announced yet, which is tried again: {error}"
                    );
                }
                if stop.run_until_cancelled(tokio::time::sleep(START_RETRY)).await.is_none() {
                    return Ok(None);
                }
            }
            lan => return lan.map(Some),
        }
    }
}

type Writing = Pin<Box<dyn Future<Output = Result<(), ApiError>> + Send>>;

struct Work {
    settings: Settings,
    cluster: Cluster,
    told: watch::Receiver<Option<Arc<Input>>>,
    tell: watch::Sender<Arc<Owners>>,
    figures: Arc<Figures>,
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
    /// Whether a list was ever complete.
    listed: bool,
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
    /// Whether it was ever known who has what.
    decided: bool,
    owners: BTreeMap<IpAddr, Ownership>,
    /// Addresses somebody else announces, too, and when that was told last.
    contested: BTreeMap<IpAddr, Instant>,
    /// Time of the last log line about such addresses, and the number of addresses without one
    /// since.
    contest_logged: Option<(Instant, usize)>,
    /// What we hold.
    posts: BTreeMap<IpAddr, Post>,
    sighted: bool,
    /// The calm is over, and nothing came back since: nothing happened that others would have to hear.
    roused: bool,
}

/// What woke us.
enum Woken {
    Told,
    Step(Step),
    Written(Result<(), ApiError>),
    Links,
    Here,
    Guard,
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
            figures: task.figures,
            lan,
            recorder,
            input,
            pulse,
            steps,
            stepped: now,
            listing: BTreeSet::new(),
            listed: false,
            writing: None,
            began: None,
            next: now,
            sent: VecDeque::new(),
            silent: false,
            decided: false,
            owners: BTreeMap::new(),
            contested: BTreeMap::new(),
            contest_logged: None,
            posts: BTreeMap::new(),
            sighted: false,
            roused: false,
        }
    }

    async fn run(&mut self) {
        // What may reach this machine is in force before anybody is heard.
        self.decide(false);
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
                // Others are told at once, so that one of them has the addresses.
                Woken::Guard => {
                    self.tell_guard();
                    self.next = Instant::now();
                    true
                }
                Woken::Rival(rival) => self.meet(rival),
                Woken::Time => false,
            };
            self.look_around();
            let sighted = self.pulse.sighted(Instant::now());
            if changed || sighted != self.sighted {
                let again = sighted && !self.sighted && !self.roused;
                self.roused &= !sighted;
                self.sighted = sighted;
                self.decide(again);
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
            guard = self.lan.unguarded.changed() => match guard {
                Ok(()) => Woken::Guard,
                Err(_) => pending().await,
            },
            () = sleep_until(date.into()) => Woken::Time,
        }
    }

    /// When there is something to do though nothing happens.
    fn date(&self) -> Instant {
        let free = self.writing.is_none() && !self.is_idle();
        let beat = free.then_some(self.next);
        let suspicion = self.suspicion().filter(|_| free);
        let blind = self.pulse.sighted_until().filter(|_| self.sighted);
        beat.into_iter()
            .chain(suspicion)
            .chain(blind)
            .min()
            .unwrap_or_else(|| Instant::now() + self.settings.times.limit)
    }

    fn take_input(&mut self) -> bool {
        let Some(input) = self.told.borrow_and_update().clone() else { return false };
        if self.is_news(&input) {
            self.rouse();
        }
        self.input = input;
        let guard = guard(&self.input);
        if *self.guard != guard {
            self.guard = Arc::new(guard);
        }
        true
    }

    /// Lets go of each address as soon as another Node announces it.
    async fn hand_over(&mut self) {
        let friends = self.friends(&self.members());
        let handed = std::mem::take(&mut self.posts).into_keys().collect();
        let (guard, posts) = (self.guard.clone(), Some(BTreeMap::new()));
        self.lan.hold(Orders { guard, posts, handed, friends, sighted: true, again: false });
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
