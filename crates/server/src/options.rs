//! The query parameters of a request, checked as the reference server checks them.

use fairlead_api::field::{FieldErrors, Path};
use fairlead_api::meta::validate_manager;
use fairlead_api::status::Subject;
use fairlead_api::{Failure, FieldError, golang};

use crate::route::percent_decode;

/// Maximum length in bytes of a parameter that a message quotes.
const MAX_QUOTED: usize = 1 << 10;

/// A parsed query string. Repeated parameters keep all their values.
#[derive(Debug, Default, Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Query {
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(key), decode(value))
                })
                .collect(),
        )
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value, empty when absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// A flag: absent, `0` and `false` are off, anything else is on.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| !matches!(value, "0" | "false" | "False" | "FALSE"))
    }

    /// A number; what is not one is a 400.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Failure> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let looks_right = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let why = if looks_right { "value out of range" } else { "invalid syntax" };
            Failure::bad_request(format!("strconv.ParseInt: parsing {}: {why}", golang::quote_short(text, MAX_QUOTED)))
        })
    }
}

/// How strictly a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Unknown fields are dropped silently.
    Ignore,
    /// Unknown fields are dropped with a warning.
    Warn,
    /// Unknown fields are an error.
    Strict,
}

/// The options of a create, update or patch.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: bool,
}

/// Which operation the options are for; they differ in name and in what is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// POST
    Create,
    /// PUT
    Update,
    /// PATCH, but not apply
    Patch,
    /// PATCH with an apply configuration
    Apply,
}

const MAX_FIELD_MANAGER: usize = 128;

impl WriteOptions {
    pub(crate) fn parse(query: &Query, kind: WriteKind, user_agent: &str) -> Result<WriteOptions, Failure> {
        let manager = query.text("fieldManager");
        let mut errors = FieldErrors::new();
        let force = query.flag("force");
        match kind {
            WriteKind::Apply if manager.is_empty() => {
                errors.push(FieldError::required(&Path::new("fieldManager"), "is required for apply patch"));
            }
            WriteKind::Patch if force.is_some() => {
                errors.push(FieldError::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        errors.extend(validate_manager(manager, &Path::new("fieldManager")));
        let dry_run = query.all("dryRun");
        errors.extend(dry_run_errors(&dry_run));
        let validation = query.text("fieldValidation");
        let field_validation = match validation {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let path = Path::new("fieldValidation");
                errors.push(FieldError::not_supported(&path, other, &["", "Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        invalid_options(kind.name(), &errors)?;
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_manager: manager_name(manager, user_agent),
            field_validation,
            force: force.unwrap_or_default(),
        })
    }
}

impl WriteKind {
    fn name(self) -> &'static str {
        match self {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        }
    }
}

/// The manager a write is booked to: what the client says, else its program's name.
pub(crate) fn manager_name(given: &str, user_agent: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let name: String = program.chars().filter(|c| !c.is_control()).take(MAX_FIELD_MANAGER).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

pub(crate) fn dry_run_errors(values: &[&str]) -> FieldErrors {
    if values.iter().all(|value| *value == "All") {
        return FieldErrors::new();
    }
    let shown = fairlead_api::value::Value::from(values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>());
    FieldErrors::from([FieldError::not_supported(&Path::new("dryRun"), &shown, &["All"])])
}

/// 422 for mistakes in options.
pub(crate) fn invalid_options(kind: &str, errors: &FieldErrors) -> Result<(), Failure> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(Subject { group: "meta.k8s.io", kind, name: "" }, errors))
}

/// The options of a list or watch.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    pub(crate) watch: bool,
    pub(crate) limit: i64,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) exact: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<i64>,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query) -> Result<ListOptions, Failure> {
        let mut options = ListOptions {
            watch: query.flag("watch").unwrap_or_default(),
            limit: query.number("limit")?.unwrap_or_default(),
            continue_token: query.text("continue").to_owned(),
            resource_version: query.text("resourceVersion").to_owned(),
            exact: query.text("resourceVersionMatch") == "Exact",
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            send_initial_events: query.flag("sendInitialEvents"),
            timeout_seconds: query.number("timeoutSeconds")?,
        };
        let mut matching = query.text("resourceVersionMatch");
        // A watch from nowhere in particular begins with everything that is there.
        let anywhere = matches!(options.resource_version.as_str(), "" | "0");
        if options.watch && anywhere && options.send_initial_events.is_none() && matching.is_empty() {
            options.send_initial_events = Some(true);
            matching = "NotOlderThan";
        }
        let errors = if options.watch { options.watch_errors(matching) } else { options.list_errors(matching) };
        invalid_options("ListOptions", &errors)?;
        Ok(options)
    }

    fn list_errors(&self, matching: &str) -> FieldErrors {
        let path = Path::new("resourceVersionMatch");
        let mut errors = FieldErrors::new();
        let mut forbid = |path: &Path, why: &str| errors.push(FieldError::forbidden(path, why));
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                forbid(&path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid(&path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if self.exact && self.resource_version == "0" {
                forbid(&path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if self.send_initial_events.is_some() {
            forbid(&Path::new("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        }
        if !matches!(matching, "" | "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&path, matching, &["Exact", "NotOlderThan", ""]));
        }
        errors
    }

    fn watch_errors(&self, matching: &str) -> FieldErrors {
        let path = Path::new("resourceVersionMatch");
        let mut errors = FieldErrors::new();
        if self.send_initial_events.is_some() && matching != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&path, why));
        }
        if matching.is_empty() {
            return errors;
        }
        if self.send_initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&path, why));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, matching, &["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            errors.push(FieldError::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided"));
        }
        errors
    }
}

/// Reads a resourceVersion; the message is the one every mistake ends with.
pub(crate) fn revision(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let why = if digits { "value out of range" } else { "invalid syntax" };
        let quoted = golang::quote_short(text, MAX_QUOTED);
        format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {why}")
    })
}
