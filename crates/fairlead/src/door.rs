//! Which cluster does somebody mean who types a command? The one they name, or `$KUBECONFIG` does, or that of `fairlead up` on this
//! machine, or kubectl's.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use fairlead_api::Look;
use fairlead_cluster::streams::Streams;
use fairlead_cluster::{Cluster, Error, OpenError};

use crate::config::{Environment, ROOT_DATA_DIR};
use crate::wire::KUBECONFIG;

#[cfg(test)]
mod tests;

/// The door to the cluster; `said` is the kubeconfig they name.
pub(crate) async fn open(said: Option<&Path>) -> anyhow::Result<Cluster> {
    let file = kubeconfig(said);
    Cluster::connect(file.as_deref()).await.map_err(|error| explained(error, file.as_deref()))
}

/// The way to the Pods of a namespace of it.
pub(crate) async fn streams(said: Option<&Path>, namespace: &str) -> anyhow::Result<Streams> {
    let file = kubeconfig(said);
    Streams::connect(file.as_deref(), namespace).await.map_err(|error| explained(error, file.as_deref()))
}

/// The kubeconfig to use; `None`: as kubectl finds it.
fn kubeconfig(said: Option<&Path>) -> Option<PathBuf> {
    if let Some(file) = said {
        return Some(file.to_owned());
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty()) {
        return None;
    }
    let own = Environment::read().data_dir().ok()?.join(KUBECONFIG);
    // One that only others may read is not meant.
    File::open(&own).is_ok().then_some(own)
}

/// Why there is no door, and what to do.
fn explained(error: OpenError, said: Option<&Path>) -> anyhow::Error {
    let from = match (said, std::env::var("KUBECONFIG").ok().filter(|value| !value.is_empty())) {
        (Some(file), _) => format!("--kubeconfig {}", file.display()),
        (None, Some(files)) => format!("$KUBECONFIG={files}"),
        (None, None) => "kubeconfig".to_owned(),
    };
    match error {
        OpenError::Nowhere(_) if from == "kubeconfig" => anyhow!("{}", nowhere()),
        OpenError::Nowhere(error) => {
            anyhow!("{from}: {}; name another file, or unset it", last_cause(&error.to_string()))
        }
        OpenError::Kubeconfig(error) => anyhow!("{from}: {}", last_cause(&error.to_string())),
        OpenError::Client(error) => {
            anyhow!("{from}: its credentials cannot be used: {}", last_cause(&error.to_string()))
        }
        other => anyhow!("{from}: {other}"),
    }
}

/// There is no cluster to speak of.
fn nowhere() -> String {
    let environment = Environment::read();
    let foreign = !environment.root && Path::new(ROOT_DATA_DIR).exists();
    let advice = match foreign {
        true => {
            "`fairlead up` has run here as root: call this with sudo, or name a kubeconfig you may read with --kubeconfig"
        }
        false => "run `fairlead up` on this machine, or name the kubeconfig of a cluster with --kubeconfig",
    };
    format!(
        "which cluster? There is no kubeconfig of `fairlead up` here, nor $KUBECONFIG, nor ~/.kube/config; {advice}"
    )
}

/// What went wrong in the end, on one line: errors of kubeconfigs come wrapped in others.
fn last_cause(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split("kubeconfig: (").last().unwrap_or(line).trim_end_matches(')');
    let line =
        line.split_once("': ").filter(|_| line.starts_with("failed to read kubeconfig")).map_or(line, |(_, why)| why);
    let known = ["Failed to infer provided configuration: ", "failed to parse kubeconfig YAML: ", "error: "];
    known.iter().fold(line.to_owned(), |line, prefix| line.replacen(prefix, "", 1))
}

/// What somebody can do about a failure, if we know.
pub(crate) fn advice(error: &anyhow::Error) -> Option<String> {
    let Some(failure) = error.chain().find_map(|cause| cause.downcast_ref::<Error>()) else {
        return needs_root(&format!("{error:#}"), Environment::read().root);
    };
    match failure {
        Error::Unavailable { message, .. } => unreachable(message),
        Error::NotFound(failure) => {
            let details = failure.details.as_ref()?;
            let kind = details.text_opt("kind").filter(|kind| !kind.is_empty())?;
            Some(format!("`fairlead get {kind} -A` shows which there are"))
        }
        Error::Forbidden(failure) if failure.code == 401 => Some(
            "the server does not know whom this kubeconfig stands for: name another with --kubeconfig or $KUBECONFIG; \
             `fairlead up` writes one for its administrator"
                .to_owned(),
        ),
        // Other refusals are the same for everybody.
        Error::Forbidden(failure) if failure.message.contains(": User \"") => Some(
            "this takes a role that allows it (see docs/security.md), or the kubeconfig of somebody who has one: --kubeconfig"
                .to_owned(),
        ),
        _ => None,
    }
}

/// What the kernel keeps from ordinary people.
fn needs_root(error: &str, root: bool) -> Option<String> {
    let denied = ["Operation not permitted", "Permission denied"].iter().any(|words| error.contains(words));
    let silent = !error.contains("as root");
    (denied && silent && !root).then(|| "this takes root: call it with sudo".to_owned())
}

/// Why nobody answered.
fn unreachable(message: &str) -> Option<String> {
    let lower = message.to_lowercase();
    if lower.contains("refused") {
        return Some(
            "nothing listens there: start it with `fairlead up`, or name the kubeconfig of another cluster".to_owned(),
        );
    }
    if lower.contains("certificate") {
        return Some(
            "the server is not the one this kubeconfig was written for: use the newest one of its data directory"
                .to_owned(),
        );
    }
    if lower.contains("did not answer in time") || lower.contains("timed out") {
        return Some(
            "is the machine of the API server reachable, and is nothing between us that drops packets?".to_owned(),
        );
    }
    None
}
