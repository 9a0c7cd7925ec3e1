//! What is asked for, made of words, namespaces and selectors: one query a list or object.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use fairlead_cluster::browse::Query;
use fairlead_cluster::{Cluster, Error, Resource};

use super::table::harmless;
use super::{Place, Selectors, kinds};
use crate::paint::{Paint, Tone};
use crate::subject::Wanted;

/// One thing to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) resource: Resource,
    pub(super) query: Query,
}

/// Among which objects somebody looks.
#[derive(Debug, Clone, Args)]
pub(super) struct Scope {
    #[command(flatten)]
    pub(super) place: Place,
    /// Of all namespaces
    #[arg(long, short = 'A')]
    pub(super) all_namespaces: bool,
    #[command(flatten)]
    pub(super) selectors: Selectors,
}

/// Everything that is asked for.
pub(super) async fn asked(cluster: &Cluster, words: &[String], scope: &Scope) -> anyhow::Result<Vec<Asked>> {
    let wanted = kinds::wanted(cluster, words).await?;
    let labels = scope.selectors.selector.clone().unwrap_or_default();
    let fields = scope.selectors.field_selector.clone().unwrap_or_default();
    let here = if scope.all_namespaces { String::new() } else { scope.place.namespace(cluster) };
    let inside = |resource: &Resource, said: Option<String>| match resource.namespaced {
        true => said.unwrap_or_else(|| here.clone()),
        false => String::new(),
    };
    match wanted {
        Wanted::Kinds(resources) => Ok(resources
            .into_iter()
            .map(|resource| {
                let namespace = inside(&resource, None);
                let query = Query { namespace, name: String::new(), labels: labels.clone(), fields: fields.clone() };
                Asked { resource, query }
            })
            .collect()),
        Wanted::Objects(_) if scope.all_namespaces => {
            bail!("an object is named in one namespace: leave out -A, or the name")
        }
        Wanted::Objects(_) if !labels.is_empty() || !fields.is_empty() => {
            bail!("objects are either named or selected: leave out the name, or the selector")
        }
        Wanted::Objects(subjects) => Ok(subjects
            .into_iter()
            .map(|one| {
                let namespace = inside(&one.resource, one.namespace);
                Asked { resource: one.resource, query: Query { namespace, name: one.name, ..Query::default() } }
            })
            .collect()),
    }
}

/// What went wrong with some of several things: all are told, and the last is the end.
pub(super) fn failures(mut errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    let Some(last) = errors.pop() else { return Ok(()) };
    for error in &errors {
        crate::complain(error);
    }
    Err(last)
}

/// Tells what the server warns of, each warning once.
pub(super) fn warn(warnings: &[String], told: &mut Vec<String>) {
    for warning in warnings {
        if !told.contains(warning) {
            let mark = Paint::stderr().tone(Tone::Fair, "Warning:");
            // Who does not read it cannot be told.
            let _ = writeln!(std::io::stderr(), "{mark} {}", harmless(warning));
            told.push(warning.clone());
        }
    }
}

/// Whether somebody does not mind that it is not there.
pub(super) fn forgiven(error: &Error, ignore_not_found: bool) -> bool {
    ignore_not_found && error.is_not_found()
}
