//! The store a configuration asks for, and copies of the embedded one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fairlead_server::read_foreign;
use fairlead_store::{Backend, Embedded, Etcd, EtcdOptions, EtcdTls, Memory};

use crate::config::{self, Config, Store};

/// How often etcd forgets old revisions, as with kube-apiserver.
const COMPACTION: Duration = Duration::from_secs(300);

/// Opens the store.
pub(super) async fn open(config: &Config) -> anyhow::Result<Arc<dyn Backend>> {
    Ok(match &config.store {
        Store::Memory => Arc::new(Memory::default()),
        Store::Embedded => Arc::new(Embedded::open(&config.data_dir).context("--data-dir")?),
        Store::Etcd(etcd) => connect(etcd).await?,
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

/// Copies the embedded store into a file.
pub(super) fn backup(config: &Config, file: &Path) -> anyhow::Result<()> {
    embedded_only(config)?;
    let store = Embedded::open(&config.data_dir).context("--data-dir")?;
    store.backup(file).with_context(|| format!("backup to {}", file.display()))
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
