//! How the node proxy of this process does, for a part of the process that shows it to people.

use std::sync::{Arc, OnceLock};

use fairlead_kernel::sysctl;
use jiff::Timestamp;

use crate::conntrack::ACCOUNTING;
use crate::report::Report;
use crate::{Metrics, Mode, Tallies};

/// A look at a proxy. Cheap to clone; sees nothing until [`crate::run_in_view`] has begun.
#[derive(Clone, Default)]
pub struct View(Arc<OnceLock<Seen>>);

struct Seen {
    node: String,
    mode: Mode,
    metrics: Metrics,
    report: Arc<Report>,
}

/// How far the kernel is behind the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programmed {
    /// The newest revision that was seen.
    pub seen: u64,
    /// The newest revision that is in the kernel.
    pub revision: u64,
    /// When the kernel was last changed.
    pub last: Option<Timestamp>,
    /// Why it could not be, the last time.
    pub error: Option<String>,
}

impl View {
    pub(crate) fn show(&self, node: &str, mode: Mode, metrics: Metrics, report: Arc<Report>) {
        // A proxy that begins again is another one, in another view.
        let _ = self.0.set(Seen { node: node.to_owned(), mode, metrics, report });
    }

    /// The Node it serves.
    pub fn node(&self) -> Option<&str> {
        self.0.get().map(|seen| seen.node.as_str())
    }

    /// Its mode.
    pub fn mode(&self) -> Option<Mode> {
        self.0.get().map(|seen| seen.mode)
    }

    /// How far it is.
    pub fn programmed(&self) -> Option<Programmed> {
        self.0.get().map(|seen| seen.report.programmed())
    }

    /// What it counted, at most a second ago. Blocks.
    pub fn tallies(&self) -> Option<Arc<Tallies>> {
        self.0.get().and_then(|seen| seen.metrics.tallies())
    }

    /// Has the kernel count packets and bytes of connections that begin from now on, unless it does. Says whether it began.
    /// Blocks.
    pub fn count_bytes(&self) -> bool {
        let counts = self.mode().is_none_or(|mode| mode == Mode::Userspace);
        let off = !counts && sysctl::read(ACCOUNTING).is_ok_and(|value| value == "0");
        off && sysctl::write(ACCOUNTING, "1").is_ok()
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("node", &self.node()).field("mode", &self.mode()).finish_non_exhaustive()
    }
}
