//! The store a configuration asks for, and copies of the embedded one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fairlead_server::backup::Backup;
use fairlead_server::read_foreign;
use fairlead_store::{Backend, Embedded, Etcd, EtcdOptions, EtcdTls, Memory};

use super::client;
use crate::config::{self, Config, Store};

/// How often etcd forgets old revisions, as with kube-apiserver.
const COMPACTION: Duration = Duration::from_secs(300);

/// Opens the store; with it comes how to copy it while it is open, if it can be.
pub(super) async fn open(config: &Config) -> anyhow::Result<(Arc<dyn Backend>, Option<Backup>)> {
    Ok(match &config.store {
        Store::Memory => (Arc::new(Memory::default()), None),
        Store::Embedded => {
            let store = Arc::new(Embedded::open(&config.data_dir).context("--data-dir")?);
            let copied = store.clone();
            let copy = move |file: &Path| copied.backup(file).map_err(|error| error.to_string());
            (store, Some(Backup { copy: Arc::new(copy), dir: config.data_dir.clone() }))
        }
        Store::Etcd(etcd) => (connect(etcd).await?, None),
    })
}

async fn connect(etcd: &config::Etcd) -> anyhow::Result<Arc<dyn Backend>> {
    let options = EtcdOptions {
        endpoints: etcd.servers.clone(),
        prefix: etcd.prefix.clone(),
        tls: EtcdTls {
            ca: etcd.ca_file.as_deref().map(|file| read("etcd-cafile", file)).transpose()?,
            client: match &etcd.client_files {
                Some((certificate, key)) => Some((read("etcd-certfile", certificate)?, read("etcd-keyfile", key)?)),
                None => None,
            },
        },
        ..EtcdOptions::default()
    };
    let store = Etcd::connect(&options, read_foreign).await.context("--etcd-servers")?;
    let store = Arc::new(store);
    let compacted = store.clone();
    tokio::spawn(async move { compacted.compact_every(COMPACTION).await });
    Ok(store)
}

fn read(flag: &str, file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("--{flag}: {}", file.display()))
}

/// Copies the embedded store into a file: through the server if one runs, else by ourselves.
pub(super) async fn backup(config: &Config, file: &Path) -> anyhow::Result<()> {
    embedded_only(config)?;
    anyhow::ensure!(!file.exists(), "{} is already there; a copy never overwrites a file", file.display());
    let dir = &config.data_dir;
    anyhow::ensure!(dir.exists(), "--data-dir: {} is not there, so there is nothing to copy", dir.display());
    match Embedded::open(&config.data_dir) {
        Ok(store) => store.backup(file).with_context(|| format!("backup to {}", file.display())),
        Err(fairlead_store::Error::Unusable(why)) => client::backup(&config.data_dir, file)
            .await
            .with_context(|| format!("the store is in use ({why}), and the server that uses it could not be asked")),
        Err(error) => Err(error).context("--data-dir"),
    }
}

/// Makes the embedded store from a copy.
pub(super) fn restore(config: &Config, file: &Path) -> anyhow::Result<()> {
    embedded_only(config)?;
    fairlead_store::restore(file, &config.data_dir).with_context(|| format!("restore from {}", file.display()))
}

fn embedded_only(config: &Config) -> anyhow::Result<()> {
    match config.store {
        Store::Embedded => Ok(()),
        Store::Memory => anyhow::bail!("--store=memory keeps nothing that could be copied"),
        Store::Etcd(_) => anyhow::bail!("objects are kept in etcd: use etcdctl snapshot save and restore"),
    }
}
