//! What a pure controller hands back: the writes, and what there is to say about them.

use fairlead_api::view::Family;

use crate::Reason;

/// The writes that make the API say what it should, and why it will say no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<T> {
    /// Objects to create.
    pub create: Vec<T>,
    /// Objects to replace; they carry the version they were made from.
    pub update: Vec<T>,
    /// Names of objects to delete.
    pub delete: Vec<String>,
    /// Pods and addresses that are not among the endpoints.
    pub left_out: Vec<LeftOut>,
    /// Why there are no endpoints at all.
    pub empty: Option<Reason>,
    /// What to tell the user by Events.
    pub notices: Vec<Notice>,
}

impl<T> Changes<T> {
    /// How many objects are written.
    pub fn writes(&self) -> usize {
        self.create.len() + self.update.len() + self.delete.len()
    }

    /// Nothing to write, for a reason.
    pub(crate) fn nothing(reason: Reason) -> Changes<T> {
        Changes { empty: Some(reason), ..Changes::default() }
    }
}

impl<T> Default for Changes<T> {
    fn default() -> Changes<T> {
        Changes {
            create: Vec::new(),
            update: Vec::new(),
            delete: Vec::new(),
            left_out: Vec::new(),
            empty: None,
            notices: Vec::new(),
        }
    }
}

/// A Pod or an address that is not among the endpoints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The name of the Pod, or the address as written.
    pub name: String,
    /// The family it is missing in; all when absent.
    pub family: Option<Family>,
    /// Why.
    pub reason: Reason,
}

/// What an Event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its type.
    pub severity: Severity,
    /// Its reason.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
}

impl Notice {
    pub(crate) fn warning(reason: &'static str, message: String) -> Notice {
        Notice { severity: Severity::Warning, reason, message }
    }
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Something to look at.
    Warning,
}

impl Severity {
    /// `Normal` or `Warning`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        }
    }
}
