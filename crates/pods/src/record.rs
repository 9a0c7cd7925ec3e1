//! What is remembered of a Pod on disk, so that a runner that begins finds the Pods of the one before.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use fairlead_api::Look;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shim::launch;
use crate::unit::Unit;

/// The file of a Pod.
const FILE: &str = "pod.json";

/// A Pod of this Node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// As it was seen last.
    pub(crate) pod: Value,
    /// Which start of the machine its network and processes belong to.
    pub(crate) boot: String,
    /// Its own addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// The user of its own. `None` until it has one, and for Pods that a version without such users
    /// has started.
    #[serde(default)]
    pub(crate) user: Option<u32>,
    /// When this Node took it, RFC 3339.
    pub(crate) began: String,
    pub(crate) units: Vec<Unit>,
    /// Why it failed as a whole.
    pub(crate) failed: Option<(String, String)>,
    /// The decision of this Node to run the Pod or not.
    #[serde(default)]
    pub(crate) admission: Admission,
}

/// Decision of a Node to run a Pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Admission {
    /// The Node has not decided yet.
    #[default]
    Undecided,
    /// The Pod may run.
    Admitted,
    /// The Node has rejected the Pod, which has failed by that.
    Rejected,
}

impl Record {
    /// A Pod that comes to this Node.
    pub(crate) fn new(pod: &Value) -> Record {
        Record {
            pod: pod.clone(),
            boot: launch::boot(),
            addresses: Vec::new(),
            user: None,
            began: Timestamp::now().to_string(),
            units: Unit::all(pod),
            failed: None,
            admission: Admission::Undecided,
        }
    }

    pub(crate) fn uid(&self) -> &str {
        self.pod.at("metadata").text("uid")
    }

    pub(crate) fn began(&self) -> Timestamp {
        self.began.parse().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// All Pods a folder tells of.
    pub(crate) fn all(folder: &Path) -> Vec<Record> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| Record::read(&entry.path())).collect()
    }

    pub(crate) fn read(folder: &Path) -> Option<Record> {
        serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        launch::replace(&folder.join(FILE), &serde_json::to_vec(self)?)
    }
}
