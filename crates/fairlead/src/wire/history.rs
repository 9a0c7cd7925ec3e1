//! The history beside the server: what becomes of Services, kept in the data directory.

use std::sync::Arc;
use std::thread::JoinHandle;

use fairlead_cluster::Cluster;
use fairlead_history::History;
use fairlead_server::Server;
use fairlead_server::auth::User;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// The directory of the history in the data directory.
const DIRECTORY: &str = "history";

/// Keeps the history until told to stop, if one is wanted.
pub(super) fn beside(server: &Server, config: &Config, stop: &CancellationToken) -> Option<(History, JoinHandle<()>)> {
    let user = User {
        name: "system:fairlead-history".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    let cluster = Cluster::new(local.clone(), Arc::new(local));
    let who = server.clone();
    let who = Arc::new(move |revision| who.writer(revision));
    let history = History::new(config.history?, Arc::new(Timestamp::now), Some(who));
    let keeper = history.keep(&config.data_dir.join(DIRECTORY), cluster, stop.clone());
    Some((history, keeper))
}

/// Waits until the last changes are written.
pub(super) async fn end(keeper: Option<JoinHandle<()>>) {
    let Some(keeper) = keeper else { return };
    if !matches!(tokio::task::spawn_blocking(|| keeper.join()).await, Ok(Ok(()))) {
        tracing::warn!("the history was not written to its end");
    }
}
