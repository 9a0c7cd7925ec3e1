//! `fairlead delete`: objects by name, by selector or by file, and a wait until they are gone.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use fairlead_api::Look;
use fairlead_cluster::browse::{Form, Query};
use fairlead_cluster::{Cluster, Delete, Error, Method, Propagation, Resource, encode};

use super::asked::{Scope, asked, failures, forgiven};
use super::progress::Progress;
use super::{Place, Selectors, kinds, manifest};

pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead delete svc/web           an object
  fairlead delete pods -l app=web   all that match
  fairlead delete -f web.yaml       what a file has";

/// How often an object that goes is looked at, at first and at most.
const PACE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// After so long it is said what an object waits for.
const SLOW: Duration = Duration::from_secs(5);

/// The options of `fairlead delete`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeleteFlags {
    /// KIND NAME… or KIND/NAME…, or KIND with -l or --all
    #[arg(value_name = "WHAT", required_unless_present = "files", conflicts_with = "files")]
    words: Vec<String>,
    /// What this file or directory has, or - for standard input
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Directories in directories, too
    #[arg(long, short = 'R')]
    recursive: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    selectors: Selectors,
    /// All of a kind in the namespace
    #[arg(long)]
    all: bool,
    /// How long they may take to end, in seconds [default: what each says]
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
    /// What becomes of objects they own
    #[arg(long, value_name = "WAY", default_value = "background")]
    cascade: Cascade,
    /// Do not wait until they are gone
    #[arg(long)]
    no_wait: bool,
    /// Wait so long at most, in seconds [default: as long as it takes]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// An object that is not there is no mistake
    #[arg(long)]
    ignore_not_found: bool,
    /// Let the server say what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cascade {
    /// They go afterwards
    Background,
    /// They go first
    Foreground,
    /// They stay
    Orphan,
}

/// An object that is to go.
struct Target {
    resource: Resource,
    namespace: String,
    name: String,
}

/// Deletes objects, and waits until they are gone.
pub(crate) async fn run(flags: DeleteFlags) -> anyhow::Result<()> {
    let cluster = flags.place.cluster().await?;
    let targets = targets(&cluster, &flags).await?;
    if targets.is_empty() {
        writeln!(std::io::stdout(), "No resources found")?;
        return Ok(());
    }
    let (mut errors, mut going) = (Vec::new(), Vec::new());
    for target in &targets {
        match delete(&cluster, &flags, target).await {
            Ok(uid) => {
                writeln!(std::io::stdout(), "{}", target.told(&flags))?;
                going.push((target, uid));
            }
            Err(error) if forgiven(&error, flags.ignore_not_found) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    if !flags.no_wait && !flags.dry_run {
        let deadline = flags.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut progress = Progress::new("deleted", going.len());
        for (target, uid) in going {
            if let Err(error) = gone(&cluster, target, &uid, deadline, &mut progress).await {
                errors.push(error);
            }
            progress.step();
        }
    }
    failures(errors)
}

async fn targets(cluster: &Cluster, flags: &DeleteFlags) -> anyhow::Result<Vec<Target>> {
    if !flags.files.is_empty() {
        return of_files(cluster, flags).await;
    }
    let scope = Scope { place: flags.place.clone(), all_namespaces: false, selectors: flags.selectors.clone() };
    let selected = flags.selectors.selector.is_some() || flags.selectors.field_selector.is_some();
    let mut targets = Vec::new();
    for one in asked(cluster, &flags.words, &scope).await? {
        if !one.query.name.is_empty() {
            if flags.all {
                bail!("--all means all of a kind: leave out the name");
            }
            targets.push(Target { resource: one.resource, namespace: one.query.namespace, name: one.query.name });
            continue;
        }
        if !flags.all && !selected {
            bail!("which {}? Name them, select some with -l, or say --all", one.resource.name);
        }
        targets.extend(selection(cluster, one.resource, &one.query).await?);
    }
    Ok(targets)
}

/// The objects a query finds.
async fn selection(cluster: &Cluster, resource: Resource, query: &Query) -> anyhow::Result<Vec<Target>> {
    let mut targets = Vec::new();
    for page in cluster.look(&resource, query, Form::Whole).await? {
        for object in kinds::items(page.body, &resource) {
            let metadata = object.at("metadata");
            let (namespace, name) = (metadata.text("namespace").to_owned(), metadata.text("name").to_owned());
            targets.push(Target { resource: resource.clone(), namespace, name });
        }
    }
    Ok(targets)
}

async fn of_files(cluster: &Cluster, flags: &DeleteFlags) -> anyhow::Result<Vec<Target>> {
    let mut targets = Vec::new();
    for manifest in manifest::read(&flags.files, flags.recursive)? {
        let object = &manifest.object;
        let resource = kinds::of_manifest(cluster, object.text("apiVersion"), object.text("kind")).await;
        let resource = resource.with_context(|| manifest.at("kind"))?;
        let metadata = object.at("metadata");
        let own = Some(metadata.text("namespace")).filter(|own| !own.is_empty());
        let namespace = match (resource.namespaced, own) {
            (false, _) => String::new(),
            (true, Some(own)) => own.to_owned(),
            (true, None) => flags.place.namespace(cluster),
        };
        targets.push(Target { resource, namespace, name: metadata.text("name").to_owned() });
    }
    Ok(targets)
}

impl Target {
    fn path(&self) -> String {
        format!("{}/{}", self.resource.path(&self.namespace), encode(&self.name))
    }

    /// `service "web" deleted from default namespace`
    fn told(&self, flags: &DeleteFlags) -> String {
        let deleted = if flags.grace_period == Some(0) { "force deleted" } else { "deleted" };
        let from = match self.resource.namespaced {
            true => format!(" from {} namespace", self.namespace),
            false => String::new(),
        };
        let dry = if flags.dry_run { " (server dry run)" } else { "" };
        format!("{} \"{}\" {deleted}{from}{dry}", kinds::told(&self.resource), self.name)
    }
}

/// Begins to delete an object, and says which one it was.
async fn delete(cluster: &Cluster, flags: &DeleteFlags, target: &Target) -> Result<String, Error> {
    let propagation = Some(match flags.cascade {
        Cascade::Background => Propagation::Background,
        Cascade::Foreground => Propagation::Foreground,
        Cascade::Orphan => Propagation::Orphan,
    });
    let how = Delete { grace_seconds: flags.grace_period, propagation, ..Delete::default() };
    let path = format!("{}{}", target.path(), if flags.dry_run { "?dryRun=All" } else { "" });
    let answer = cluster.request(Method::DELETE, &path, Some(&how.body())).await?;
    let uid = answer.at("metadata").text_opt("uid").or_else(|| answer.at("details").text_opt("uid"));
    Ok(uid.unwrap_or_default().to_owned())
}

/// Waits until an object is gone; another one of its name is another one.
async fn gone(
    cluster: &Cluster,
    target: &Target,
    uid: &str,
    deadline: Option<Instant>,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (began, mut pace, mut said) = (Instant::now(), PACE.0, false);
    loop {
        let object = match cluster.request(Method::GET, &target.path(), None).await {
            Ok(object) => object,
            Err(Error::NotFound(_)) => return Ok(()),
            // Who may delete need not be allowed to look.
            Err(Error::Forbidden(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let metadata = object.at("metadata");
        if !uid.is_empty() && metadata.text("uid") != uid {
            return Ok(());
        }
        let waits = format!("{}/{}{}", kinds::told(&target.resource), target.name, held(metadata));
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(anyhow!("--timeout: still there: {waits}"));
        }
        progress.say(&format!("waiting for {waits}"));
        if began.elapsed() > SLOW && !std::mem::replace(&mut said, true) {
            progress.clear();
            writeln!(std::io::stderr(), "waiting for {waits}")?;
        }
        tokio::time::sleep(pace).await;
        pace = (pace * 2).min(PACE.1);
    }
}

/// What keeps an object.
fn held(metadata: &serde_json::Value) -> String {
    match metadata.texts("finalizers")[..] {
        [] => String::new(),
        ref finalizers => format!(", held by finalizers: {}", finalizers.join(", ")),
    }
}
