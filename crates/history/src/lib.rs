//! The past of a cluster: what became of Services and of everything they depend on, when, and by whom. Kept in files of a bounded
//! size beside the store; asked by `fairlead history`, `fairlead diff` and the page.
//!
//! ```text
//! cluster --watch--> keeper --> trim (what matters) --> delta --> record --> frame --> segments (files)
//!                                                                                          |
//!                        timeline, moment <-- lines (words) <-- replay <-------------------'
//! ```
//! Nobody waits for it: a write is acknowledged without its record, and a machine that loses power may lose the last second of
//! the history, not of the store.

mod batch;
pub mod delta;
mod frame;
mod keeper;
mod kind;
pub mod lines;
mod past;
mod record;
mod replay;
mod segments;
mod subject;
pub mod trim;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairlead_cluster::{Clock, Cluster};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use kind::Followed;
pub use past::{Happened, Item, Moment, Place, Timeline, Wish};
pub use record::Gap;
pub use segments::Bounds;
pub use subject::Subject;

use segments::Segment;

/// Says who wrote a revision, where somebody knows better than the object does.
pub type Who = Arc<dyn Fn(u64) -> Option<String> + Send + Sync>;

/// How many questions are answered at a time: each reads files into memory.
const AT_A_TIME: usize = 2;
/// Maximum time that a question waits for the first lists of a history that has just been started.
/// Without a full disk they take milliseconds.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files cannot be read.
    #[error("the history cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// What was asked for lies before everything that is kept.
    #[error("{}", too_early(*.asked, *.from))]
    TooEarly {
        /// The time that was asked for.
        asked: Timestamp,
        /// The first time that is kept; `None`: nothing is.
        from: Option<Timestamp>,
    },
    /// The thread that looked came to an end.
    #[error("the history could not be read to its end")]
    Broken,
}

fn too_early(asked: Timestamp, from: Option<Timestamp>) -> String {
    match from {
        Some(from) => format!("the history begins at {from:.0}, after {asked:.0}"),
        None => "nothing is kept yet; the history begins when the server is ready".to_owned(),
    }
}

/// The history. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct History {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    bounds: Bounds,
    clock: Clock,
    who: Option<Who>,
    /// The files as far as they are whole.
    files: RwLock<Vec<Segment>>,
    places: tokio::sync::Semaphore,
    told: past::Told,
    /// True from [`History::keep`] until the files hold every object of the first lists. Questions
    /// wait meanwhile, because objects that are not listed yet would look absent.
    starting: watch::Sender<bool>,
}

impl History {
    /// A history that knows nothing yet.
    pub fn new(bounds: Bounds, clock: Clock, who: Option<Who>) -> History {
        let places = tokio::sync::Semaphore::new(AT_A_TIME);
        History {
            shared: Arc::new(Shared {
                bounds,
                clock,
                who,
                files: RwLock::default(),
                places,
                told: past::Told::default(),
                starting: watch::Sender::new(false),
            }),
        }
    }

    /// Keeps what happens to the cluster in files of a directory, in a thread of its own, until told to stop. Without a directory that
    /// can be written to there is no history, and the reason is logged.
    pub fn keep(&self, dir: &Path, cluster: Cluster, stop: CancellationToken) -> std::thread::JoinHandle<()> {
        let shared = self.shared.clone();
        let dir = dir.to_owned();
        shared.starting.send_replace(true);
        std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || {
                keeper::run(&shared, &dir, &cluster, &stop);
                shared.starting.send_replace(false);
            })
            .expect("the system has room for one more thread")
    }

    /// What happened, newest first.
    pub async fn timeline(&self, wish: Wish) -> Result<Timeline, Error> {
        self.look(move |shared| past::timeline(shared, &wish)).await
    }

    /// Returns a subject as it was at a time, or as the newest record shows it.
    pub async fn moment(&self, subject: Subject, at: Option<Timestamp>) -> Result<Moment, Error> {
        // The present is read after the wait for the first lists: before it, the history has no
        // present.
        self.look(move |shared| past::moment(shared, &subject, at.unwrap_or_else(|| shared.now()))).await
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut starting = self.shared.starting.subscribe();
        // After the time limit the answer is whatever the files hold, and says from when on.
        let _ = tokio::time::timeout(START_PATIENCE, starting.wait_for(|starting| !starting)).await;
        let _place = self.shared.places.acquire().await.map_err(|_| Error::Broken)?;
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || look(&shared)).await.map_err(|_| Error::Broken)?
    }
}

impl Shared {
    fn files(&self) -> Vec<Segment> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, files: &[Segment]) {
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files.to_vec();
    }

    /// To the microsecond, as it stands in files.
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond((self.clock)().as_microsecond()).expect("it was a time before")
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("bounds", &self.shared.bounds).finish_non_exhaustive()
    }
}
