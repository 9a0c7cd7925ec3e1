//! Keeps the server's certificate fresh: our own is made anew in time, one from files is read again when the files change.
//! New connections then see the new one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Authority, Error, Pair, Subject, ensure};
use crate::serve::{files, tls};

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(60);

/// Where the server's certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// Our own authority, in this directory.
    Own(PathBuf, Subject),
    /// Files (`--tls-cert-file`, `--tls-private-key-file`).
    Files(PathBuf, PathBuf),
}

/// What is kept fresh, and whose client certificates are of use.
#[derive(Debug)]
pub struct Renewal {
    /// The server's certificate.
    pub source: Source,
    /// Our own authority.
    pub authority: Authority,
    /// Authorities named to clients.
    pub client_authorities: Vec<CertificateDer<'static>>,
}

impl Renewal {
    /// The certificate to use now.
    pub fn pair(&self, now: Timestamp) -> Result<Pair, Error> {
        match &self.source {
            Source::Own(dir, subject) => ensure(dir, "server", subject, &self.authority, now),
            Source::Files(certificate, key) => {
                let read = |path: &PathBuf| {
                    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
                    let text = files::read_if_there(path).and_then(|text| text.ok_or_else(missing));
                    text.map_err(|source| Error::File { path: path.clone(), source })
                };
                Ok(Pair { certificate: read(certificate)?, key: read(key)? })
            }
        }
    }

    /// A TLS configuration with a certificate.
    pub fn config(&self, pair: &Pair) -> Result<Arc<ServerConfig>, Error> {
        let config = tls::server_config(&pair.certificate, &pair.key, &self.client_authorities);
        let what = match &self.source {
            Source::Own(dir, _) => dir.join("server.crt"),
            Source::Files(certificate, _) => certificate.clone(),
        };
        config.map(Arc::new).map_err(|source| Error::Tls { what: what.display().to_string(), source })
    }

    /// Looks now and then, until told to stop. What cannot be read or used is said once and the old certificate kept: files
    /// are often replaced one after the other. `each` is called on every look, for what else must stay fresh.
    pub async fn run(
        self,
        mut current: Pair,
        configs: watch::Sender<Arc<ServerConfig>>,
        clock: Clock,
        mut each: impl FnMut(&Renewal, Timestamp) + Send,
        stop: CancellationToken,
    ) {
        let mut said = String::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = stop.cancelled() => return,
            }
            let now = clock();
            each(&self, now);
            match self.look(&current, now) {
                Ok(None) => said.clear(),
                Ok(Some((pair, config))) => {
                    tracing::info!("the server's certificate was renewed");
                    current = pair;
                    configs.send_replace(config);
                }
                Err(error) if error.to_string() == said => {}
                Err(error) => {
                    tracing::warn!(%error, "the server's certificate cannot be renewed; keeping the old one");
                    said = error.to_string();
                }
            }
        }
    }

    fn look(&self, current: &Pair, now: Timestamp) -> Result<Option<(Pair, Arc<ServerConfig>)>, Error> {
        let pair = self.pair(now)?;
        if pair == *current {
            return Ok(None);
        }
        let config = self.config(&pair)?;
        Ok(Some((pair, config)))
    }
}
