//! `fairlead apply`: makes objects what files say, by server-side apply. What others set stays theirs.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use fairlead_api::Look;
use fairlead_cluster::browse::{Answer, Ask, Form};
use fairlead_cluster::{Cluster, Error, Method, Resource, encode};

use super::asked::{failures, warn};
use super::manifest::{self, Manifest};
use super::progress::Progress;
use super::{Place, kinds};
use crate::paint::{Paint, Tone};
use refusal::explained;

mod refusal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead apply -f web.yaml              objects of a file
  fairlead apply -f manifests/ --dry-run  what would become of a directory
  fairlead apply -f -                     objects of standard input";

/// Whose fields they are.
const MANAGER: &str = "fairlead";
/// What is sent.
const APPLY: &str = "application/apply-patch+yaml";

/// The options of `fairlead apply`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApplyFlags {
    /// A file, a directory of .yaml, .yml and .json files, or - for standard input; may be said several times
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Directories in directories, too
    #[arg(long, short = 'R')]
    recursive: bool,
    #[command(flatten)]
    place: Place,
    /// Let the server say what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take over fields that others have set to something else
    #[arg(long)]
    force_conflicts: bool,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Created,
    Configured,
    Unchanged,
}

/// Applies all objects of some files. Those that are refused stay as they are, and the others are applied none the less.
pub(crate) async fn run(flags: ApplyFlags) -> anyhow::Result<()> {
    let manifests = manifest::read(&flags.files, flags.recursive)?;
    let cluster = flags.place.cluster().await?;
    let mut progress = Progress::new("applied", manifests.len());
    let (mut errors, mut warned) = (Vec::new(), Vec::new());
    for manifest in &manifests {
        match one(&cluster, &flags, manifest, &mut warned).await {
            Ok((resource, outcome)) => {
                progress.clear();
                told(&resource, manifest, outcome, flags.dry_run)?;
            }
            Err(error) => {
                let unreachable = is_unreachable(&error);
                errors.push(error);
                // The next one would hear the same.
                if unreachable {
                    break;
                }
            }
        }
        progress.step();
    }
    progress.clear();
    failures(errors)
}

async fn one(
    cluster: &Cluster,
    flags: &ApplyFlags,
    manifest: &Manifest,
    warned: &mut Vec<String>,
) -> anyhow::Result<(Resource, Outcome)> {
    let (version, kind) = (manifest.object.text("apiVersion"), manifest.object.text("kind"));
    let resource = kinds::of_manifest(cluster, version, kind).await;
    let resource = resource.with_context(|| manifest.at("kind"))?;
    let namespace = namespace(cluster, &flags.place, &resource, manifest)?;
    let mut object = manifest.object.clone();
    if !namespace.is_empty() {
        object["metadata"].set("namespace", namespace.as_str());
    }
    let path = format!("{}/{}", resource.path(&namespace), encode(object.at("metadata").text("name")));
    let before = match cluster.request(Method::GET, &path, None).await {
        Ok(object) => object.at("metadata").text("resourceVersion").to_owned(),
        Err(Error::NotFound(_)) => String::new(),
        Err(error) => return Err(explained(manifest, error)),
    };
    let force = if flags.force_conflicts { "&force=true" } else { "" };
    let dry_run = if flags.dry_run { "&dryRun=All" } else { "" };
    let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict{force}{dry_run}");
    let ask = Ask { method: &Method::PATCH, path: &path, form: Form::Whole, body: Some((APPLY, &object)) };
    let answer = cluster.ask(ask).await.map_err(|error| explained(manifest, error))?;
    warn(&answer.warnings, warned);
    Ok((resource, outcome(&before, &answer)))
}

fn outcome(before: &str, answer: &Answer) -> Outcome {
    match answer.body.at("metadata").text("resourceVersion") {
        _ if before.is_empty() || answer.created => Outcome::Created,
        after if after == before => Outcome::Unchanged,
        _ => Outcome::Configured,
    }
}

/// The namespace of an object: what it says, unless somebody says otherwise.
fn namespace(cluster: &Cluster, place: &Place, resource: &Resource, manifest: &Manifest) -> anyhow::Result<String> {
    if !resource.namespaced {
        return Ok(String::new());
    }
    match (manifest.object.at("metadata").text("namespace"), &place.namespace) {
        ("", _) => Ok(place.namespace(cluster)),
        (own, Some(said)) if own != said => {
            bail!(
                "{}: {} is in namespace {own:?}, and -n says {said:?}",
                manifest.at("metadata.namespace"),
                manifest.name()
            )
        }
        (own, _) => Ok(own.to_owned()),
    }
}

fn told(resource: &Resource, manifest: &Manifest, outcome: Outcome, dry_run: bool) -> anyhow::Result<()> {
    let name = format!("{}/{}", kinds::told(resource), manifest.object.at("metadata").text("name"));
    let (word, tone) = match outcome {
        Outcome::Created => ("created", Tone::Good),
        Outcome::Configured => ("configured", Tone::Good),
        Outcome::Unchanged => ("unchanged", Tone::Faint),
    };
    let word = Paint::stdout().tone(tone, word);
    writeln!(std::io::stdout(), "{name} {word}{}", if dry_run { " (server dry run)" } else { "" })
        .map_err(|error| anyhow!(error))
}

fn is_unreachable(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error| matches!(error, Error::Unavailable { .. }))
}
