//! The token by which machines join the server of this one: made once, kept in a file that only its owner reads and as a Secret
//! in the cluster. Whoever deletes the Secret makes the token worthless, and a restart makes another.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use fairlead_api::{Look, kinds};
use fairlead_cluster::Cluster;
use fairlead_server::auth::{User, bootstrap_token};
use fairlead_server::serve::files;
use fairlead_server::{Server, join};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::KUBECONFIG;

/// Its name in the data directory.
const FILE: &str = "join.token";

/// Time between attempts to keep the token where it cannot be written.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the token that is there, or makes one. Where neither works, on a full disk say, the server
/// goes on without, and tries again until it works.
pub(super) async fn keep_or_retry(server: &Server, data_dir: &Path, authorities: &str, stop: &CancellationToken) {
    let Err(error) = keep(server, data_dir, authorities).await else { return };
    tracing::warn!("no machine can join until the token for it can be written: {error:#}");
    let server = server.clone();
    let data_dir = data_dir.to_owned();
    let authorities = authorities.to_owned();
    let stop = stop.clone();
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(RETRY).await;
            if keep(&server, &data_dir, &authorities).await.is_ok() {
                return tracing::info!("machines can join: the token for it is written");
            }
        }
    }));
}

/// Keeps the token that is there, or makes one.
async fn keep(server: &Server, data_dir: &Path, authorities: &str) -> anyhow::Result<()> {
    let user = User {
        name: "system:fairlead".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    let cluster = Cluster::new(local.clone(), Arc::new(local));
    let path = data_dir.join(FILE);
    let old = files::read_if_there(&path).with_context(|| path.display().to_string())?.unwrap_or_default();
    let old = old.trim().split('@').next().unwrap_or_default().to_owned();
    let token = match is_known(&cluster, &old).await {
        true => old,
        false => make(&cluster).await?,
    };
    let text = format!("{token}@{}\n", join::pin(authorities));
    files::write_secret(&path, text.as_bytes()).with_context(|| path.display().to_string())
}

async fn is_known(cluster: &Cluster, token: &str) -> bool {
    let Some((id, secret)) = bootstrap_token::parse(token) else { return false };
    let name = bootstrap_token::secret_name(id);
    let there = cluster.get(&kinds::SECRET, bootstrap_token::NAMESPACE, &name).await;
    let wanted = bootstrap_token::secret(id, secret);
    there.is_ok_and(|there| there.at("data").text("token-secret") == wanted.at("data").text("token-secret"))
}

async fn make(cluster: &Cluster) -> anyhow::Result<String> {
    let token = bootstrap_token::generate().map_err(|_| anyhow!("no random numbers"))?;
    let (id, secret) = bootstrap_token::parse(&token).context("a token of our own making")?;
    let object: Value = serde_json::from_str(&bootstrap_token::secret(id, secret).to_string())?;
    cluster.create(&kinds::SECRET, &object).await.map_err(|error| anyhow!("keeping the token of machines: {error}"))?;
    Ok(token)
}

/// Prints the token, or the command it is for.
pub(crate) fn show(data_dir: &Path, command: bool) -> anyhow::Result<()> {
    let path = data_dir.join(FILE);
    let why = || {
        format!(
            "{}: no machine can join; start the server with --bind-address and an address others reach",
            path.display()
        )
    };
    let token = std::fs::read_to_string(&path).with_context(why)?;
    let mut out = std::io::stdout();
    if !command {
        return Ok(write!(out, "{token}")?);
    }
    let kubeconfig = data_dir.join(KUBECONFIG);
    let text = std::fs::read_to_string(&kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let server = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
    let server = server.with_context(|| format!("{} names no server", kubeconfig.display()))?;
    Ok(write!(out, "fairlead join --server {server} --token {token}")?)
}
