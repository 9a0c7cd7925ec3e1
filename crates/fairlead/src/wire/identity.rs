//! Who the server is and whom it believes: certificates, keys and tokens, from files or made by ourselves.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fairlead_server::NodeDialer;
use fairlead_server::auth::Authenticator;
use fairlead_server::auth::certificate::Authorities;
use fairlead_server::auth::keys::{SigningKey, VerifyingKey};
use fairlead_server::auth::service_account::Tokens;
use fairlead_server::auth::token_file::TokenFile;
use fairlead_server::join::Join;
use fairlead_server::serve::certificates::renewal::{Renewal, Source};
use fairlead_server::serve::certificates::{self, Purpose, Subject};
use fairlead_server::serve::{files, kubeconfig, tls};
use ipnet::IpNet;
use jiff::Timestamp;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use super::KUBECONFIG;
use crate::config::Config;

/// The directory of certificates and keys in the data directory.
const PKI: &str = "pki";

/// The server's certificates.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) renewal: Renewal,
    dir: PathBuf,
}

impl Identity {
    /// Reads what is there and makes what is missing.
    pub(super) fn prepare(config: &Config, now: Timestamp) -> anyhow::Result<Identity> {
        files::make_dir(&config.data_dir).with_context(|| format!("--data-dir: {}", config.data_dir.display()))?;
        let dir = config.data_dir.join(PKI);
        let authority = certificates::authority(&dir, now)?;
        let mut client_authorities = vec![authority.certificate.clone()];
        if let Some(file) = &config.client_ca_file {
            let pem = read("client-ca-file", file)?;
            let found = tls::certificates(&pem).with_context(|| format!("--client-ca-file: {}", file.display()))?;
            anyhow::ensure!(!found.is_empty(), "--client-ca-file: {}: no certificate found", file.display());
            client_authorities.extend(found);
        }
        let source = match &config.tls_files {
            Some((certificate, key)) => Source::Files(certificate.clone(), key.clone()),
            None => Source::Own(dir.clone(), Subject::server(names(config))),
        };
        Ok(Identity { renewal: Renewal { source, authority, client_authorities }, dir })
    }

    /// Who is believed.
    pub(super) fn authenticator(&self, config: &Config) -> anyhow::Result<Authenticator> {
        let tokens = match &config.token_auth_file {
            Some(file) => TokenFile::parse(&read("token-auth-file", file)?)
                .with_context(|| format!("--token-auth-file: {}", file.display()))?,
            None => TokenFile::default(),
        };
        Ok(Authenticator {
            certificates: Some(Authorities::new(&self.renewal.client_authorities).context("--client-ca-file")?),
            tokens,
            accounts: Some(self.accounts(config)?),
            anonymous: config.anonymous,
        })
    }

    fn accounts(&self, config: &Config) -> anyhow::Result<Tokens> {
        let (pem, name) = match &config.service_account_signing_key {
            Some(file) => (read("service-account-signing-key-file", file)?, file.display().to_string()),
            None => (certificates::token_key(&self.dir)?, "sa.key".to_owned()),
        };
        let signing =
            SigningKey::from_pem(&pem).with_context(|| format!("--service-account-signing-key-file: {name}"))?;
        let mut others = Vec::new();
        for file in &config.service_account_keys {
            let keys = VerifyingKey::all_from_pem(&read("service-account-key-file", file)?);
            others.extend(keys.with_context(|| format!("--service-account-key-file: {}", file.display()))?);
        }
        let tokens = Tokens::new(config.issuers.clone(), signing, others);
        Ok(tokens.with_jwks_uri(config.service_account_jwks_uri.clone()))
    }

    /// How machines join.
    pub(super) fn join(&self, config: &Config, now: Timestamp) -> anyhow::Result<Join> {
        let taken = match Subject::server(names(config)).purpose {
            Purpose::Server(names) => names,
            _ => BTreeSet::new(),
        };
        let texts = |ranges: &[IpNet]| ranges.iter().map(IpNet::to_string).collect::<Vec<_>>();
        let node = config.node.as_ref();
        let cluster = json!({
            "podRanges": node.map(|node| texts(&node.pod_ranges)).unwrap_or_default(),
            "dns": node.map(|node| &node.dns),
            "domain": node.map(|node| node.domain.to_string()),
            "topologyKeys": config.gates.on("ServiceTopology"),
        });
        let cluster = serde_json::from_value(cluster).context("what is said of the cluster")?;
        let authority = certificates::authority(&self.dir, now)?;
        Ok(Join { authority, authorities: self.authorities(now)?, taken, cluster })
    }

    /// By whom clients know the server, as PEM.
    pub(super) fn authorities(&self, now: Timestamp) -> anyhow::Result<String> {
        authorities(&self.renewal, now)
    }

    /// How Nodes on other machines are reached.
    pub(super) fn dialer(&self, now: Timestamp) -> anyhow::Result<NodeDialer> {
        let dialer = NodeDialer::local();
        let dir = self.dir.parent().unwrap_or(&self.dir);
        renew_dialer(&self.renewal, dir, &dialer, now)?;
        Ok(dialer)
    }

    /// Writes the administrator's kubeconfig if it says anything else.
    pub(super) fn write_kubeconfig(&self, data_dir: &Path, url: &str, now: Timestamp) -> anyhow::Result<()> {
        write_kubeconfig(&self.renewal, data_dir, url, now)
    }
}

/// The same, for the task that keeps certificates fresh.
pub(super) fn write_kubeconfig(renewal: &Renewal, data_dir: &Path, url: &str, now: Timestamp) -> anyhow::Result<()> {
    let admin = certificates::ensure(&data_dir.join(PKI), "admin", &Subject::admin(), &renewal.authority, now)?;
    let text = kubeconfig::render(url, &authorities(renewal, now)?, &admin);
    let path = data_dir.join(KUBECONFIG);
    // The server answers without the file, and a full disk is no reason to end.
    if let Err(error) = files::write_secret(&path, text.as_bytes()) {
        tracing::warn!("{} cannot be written: {error}", path.display());
    }
    Ok(())
}

fn authorities(renewal: &Renewal, now: Timestamp) -> anyhow::Result<String> {
    let mut authorities = renewal.authority.pem.clone();
    // Who signed a certificate from files we cannot know; clients may trust the certificate itself.
    if let Source::Files(..) = renewal.source {
        authorities.push_str(&renewal.pair(now)?.certificate);
    }
    Ok(authorities)
}

/// Reaches Nodes with a certificate that is fresh.
pub(super) fn renew_dialer(
    renewal: &Renewal,
    data_dir: &Path,
    dialer: &NodeDialer,
    now: Timestamp,
) -> anyhow::Result<()> {
    let dir = data_dir.join(PKI);
    let pair = certificates::ensure(&dir, "node-client", &Subject::node_client(), &renewal.authority, now)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    dialer.use_tls(vec![renewal.authority.certificate.clone()], tls::certificates(&pair.certificate)?, key)?;
    Ok(())
}

/// What else the server is called: its machine, its addresses, the first address of each range, and
/// what was asked for.
fn names(config: &Config) -> Vec<String> {
    let mut names = config.tls_sans.clone();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // A name that cannot stand in a certificate must not keep the server from starting.
    names.extend(Some(host.trim().to_lowercase()).filter(|host| fairlead_api::names::subdomain(host).is_empty()));
    // Clients learn the second from the Service `kubernetes`.
    let addresses = [Some(config.bind_address), super::reachable(config)];
    names.extend(addresses.iter().flatten().filter(|ip| !ip.is_unspecified()).map(IpAddr::to_string));
    names.extend(config.service_ranges.iter().filter_map(first_address).map(|ip| ip.to_string()));
    names
}

/// The address of the Service `kubernetes`: the one after the range's own.
fn first_address(range: &IpNet) -> Option<IpAddr> {
    match range.network() {
        IpAddr::V4(ip) => u32::from(ip).checked_add(1).map(|ip| IpAddr::V4(ip.into())),
        IpAddr::V6(ip) => u128::from(ip).checked_add(1).map(|ip| IpAddr::V6(ip.into())),
    }
}

fn read(flag: &str, file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("--{flag}: {}", file.display()))
}
