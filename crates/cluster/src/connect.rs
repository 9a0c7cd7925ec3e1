//! The way to a real kube-apiserver: kubeconfig, credentials and TLS, which are kube's matter; what is sent is ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::BoxError;

use crate::request::whole;
use crate::{OpenError, Requests, boxed};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to an API server.
pub(crate) struct Connected {
    pub(crate) requests: Requests,
    /// Where it is.
    pub(crate) url: String,
    /// The namespace that is meant where none is said.
    pub(crate) namespace: String,
    /// Certificates by which the API server is known, in PEM, if the kubeconfig names any.
    pub(crate) authorities: Option<String>,
}

/// The way to the API server that a kubeconfig names, or, with its credentials, to the one at another URL.
pub(crate) async fn connect(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<Connected, OpenError> {
    let config = config(kubeconfig, url).await?;
    let (url, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
    let authorities = config.root_cert.as_ref().filter(|all| !all.is_empty()).map(|all| pem(all));
    let client = made(config)?;
    let told: Arc<str> = url.trim_end_matches('/').into();
    let requests = boxed(tower::service_fn(move |request| send(client.clone(), told.clone(), request)));
    Ok(Connected { requests, url, namespace, authorities })
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

async fn send(
    client: kube::Client,
    url: Arc<str>,
    request: Request<Full<Bytes>>,
) -> Result<http::Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let answer = client.send(Request::from_parts(parts, Body::from(body))).await;
    // Whoever reads it has to know where to look.
    answer.map_err(|error| format!("{url} does not answer: {}", whole(&error).replacen("ServiceError: ", "", 1)).into())
}
