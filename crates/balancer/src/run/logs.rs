//! Where do access logs go? The buckets that Services name, as the writer of logs takes them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::config::{Bucket, Config};
use crate::log::{self, Destination, Log, Logs, Target};
use crate::spec::Spec;

/// The logs of all load balancers; the thread that writes them is started for the first.
pub(super) struct AccessLogs {
    spool: PathBuf,
    logs: OnceLock<Option<Logs>>,
}

impl AccessLogs {
    pub(super) fn new(spool: PathBuf) -> AccessLogs {
        AccessLogs { spool, logs: OnceLock::new() }
    }

    /// The log of a load balancer, if it is to have one.
    pub(super) fn open(&self, config: &Config, spec: &Spec, address: IpAddr) -> Option<Log> {
        let wanted = spec.access_log.as_ref()?;
        let target = match target(config.bucket(spec)?, &wanted.bucket) {
            Ok(target) => target,
            Err(why) => {
                tracing::warn!(service = %spec.service, "there is no access log: {why}");
                return None;
            }
        };
        let (prefix, interval) = (wanted.prefix.clone(), wanted.interval);
        Some(self.logs()?.open(&Destination { name: spec.name.clone(), address, target, prefix, interval }))
    }

    /// Finishes all files.
    pub(super) async fn stop(self) {
        if let Some(Some(logs)) = self.logs.into_inner() {
            logs.stop().await;
        }
    }

    fn logs(&self) -> Option<&Logs> {
        let start = || {
            let settings = log::Settings { spool: self.spool.clone(), ..log::Settings::default() };
            Logs::start(settings).inspect_err(|error| tracing::error!("there are no access logs: {error}")).ok()
        };
        self.logs.get_or_init(start).as_ref()
    }
}

fn target(bucket: &Bucket, name: &str) -> Result<Target, String> {
    match bucket {
        Bucket::Directory(directory) => Ok(Target::Directory(directory.clone())),
        Bucket::S3 { endpoint, region, credentials } => {
            let (access_key, secret_key) = keys(credentials)?;
            Ok(Target::S3(log::Bucket {
                endpoint: endpoint.clone(),
                name: name.to_owned(),
                region: region.clone(),
                access_key,
                secret_key,
                authority: None,
            }))
        }
    }
}

/// Reads a file of credentials: ours, or one that AWS' tools use.
fn keys(file: &Path) -> Result<(String, String), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    credentials(&text).ok_or_else(|| format!("{}: want lines with access-key-id and secret-access-key", file.display()))
}

fn credentials(text: &str) -> Option<(String, String)> {
    let value = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(['=', ':'])?;
            let name = name.trim().to_lowercase().replace('_', "-");
            (name.trim_start_matches("aws-") == wanted).then(|| value.trim().to_owned())
        })
    };
    Some((value("access-key-id")?, value("secret-access-key")?))
}

#[cfg(test)]
mod tests {
    use super::credentials;

    #[test]
    fn credentials_are_read_as_ours_and_as_awss() {
        let check = |text: &str, found: bool| {
            let keys = credentials(text);
            assert_eq!(keys, found.then(|| ("AK".to_owned(), "S=K".to_owned())), "{text}");
        };
        check("access-key-id: AK\nsecret-access-key: S=K\n", true);
        check("[default]\naws_access_key_id = AK\naws_secret_access_key = S=K\n", true);
        check("access-key-id: AK\n", false);
        check("", false);
    }
}
