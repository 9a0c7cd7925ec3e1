//! The way to a real kube-apiserver: kubeconfig, credentials and TLS, which are kube's matter; what is sent is ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::servers::Servers;
use crate::{OpenError, Requests, boxed};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to an API server.
pub(crate) struct Connected {
    pub(crate) requests: Requests,
    pub(crate) servers: Arc<Servers>,
    /// Where it is.
    pub(crate) url: String,
    /// The namespace that is meant where none is said.
    pub(crate) namespace: String,
    /// Certificates by which the API server is known, in PEM, if the kubeconfig names any.
    pub(crate) authorities: Option<String>,
}

/// The way to the API server that a kubeconfig names, or, with its credentials, to those at other
/// URLs.
pub(crate) async fn connect(kubeconfig: Option<&Path>, urls: &[String]) -> Result<Connected, OpenError> {
    for url in urls {
        parse(url)?;
    }
    let config = config(kubeconfig, urls.first().map(String::as_str)).await?;
    let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
    let authorities = config.root_cert.as_ref().filter(|all| !all.is_empty()).map(|all| pem(all));
    // The first one tells what is wrong with certificates and credentials.
    made(config.clone())?;
    let dial = move |url: &str| {
        let mut config = config.clone();
        config.cluster_url = url.parse().ok()?;
        made(config).map_err(|error| tracing::warn!("{url} cannot be used: {error}")).ok()
    };
    let urls = if urls.is_empty() { vec![url.clone()] } else { urls.to_vec() };
    let servers = Servers::new(&urls, Box::new(dial)).ok_or_else(|| OpenError::Url(url.clone()))?;
    let sending = servers.clone();
    let requests = boxed(tower::service_fn(move |request| sending.clone().send(request)));
    Ok(Connected { requests, servers, url, namespace, authorities })
}

/// Returns certificates as PEM (RFC 7468: lines of 64 characters).
fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for der in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let base64 = STANDARD.encode(der);
        for line in base64.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// The same, as kube has it.
pub(crate) async fn client(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<kube::Client, OpenError> {
    made(config(kubeconfig, url).await?)
}

fn made(config: kube::Config) -> Result<kube::Client, OpenError> {
    kube::Client::try_from(config).map_err(|error| OpenError::Client(Box::new(error)))
}

async fn config(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<kube::Config, OpenError> {
    let url = url.map(parse).transpose()?;
    let mut config = match (kubeconfig, url.clone()) {
        (Some(file), _) => read(file).await?,
        // Without credentials, as an API server may allow on a network of its own.
        (None, Some(url)) => kube::Config::new(url),
        (None, None) => kube::Config::infer().await.map_err(|error| OpenError::Nowhere(Box::new(error)))?,
    };
    if let Some(url) = url {
        config.cluster_url = url;
    }
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Watches are silent for as long as nothing happens; every request has its own deadline here.
    config.read_timeout = None;
    // Who sends a request decides whether to send it again.
    config.default_retry = false;
    Ok(config)
}

async fn read(file: &Path) -> Result<kube::Config, OpenError> {
    let wrong = |error| OpenError::Kubeconfig(Box::new(error));
    let kubeconfig = Kubeconfig::read_from(file).map_err(wrong)?;
    kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(wrong)
}

fn parse(url: &str) -> Result<http::Uri, OpenError> {
    let uri: Result<http::Uri, _> = url.parse();
    let whole = |uri: &http::Uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"));
    uri.ok().filter(whole).ok_or_else(|| OpenError::Url(url.to_owned()))
}
