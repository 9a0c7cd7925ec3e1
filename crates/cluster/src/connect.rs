//! The way to a real kube-apiserver: kubeconfig, credentials and TLS, which are kube's matter; what is sent is ours.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::BoxError;

use crate::{OpenError, Requests, boxed};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Who answers requests: the API server that a kubeconfig names, or, with its credentials, the one at another URL.
pub(crate) async fn requests(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<Requests, OpenError> {
    let client = client(kubeconfig, url).await?;
    Ok(boxed(tower::service_fn(move |request| send(client.clone(), request))))
}

/// The same, as kube has it.
pub(crate) async fn client(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<kube::Client, OpenError> {
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
    kube::Client::try_from(config).map_err(|error| OpenError::Client(Box::new(error)))
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

async fn send(client: kube::Client, request: Request<Full<Bytes>>) -> Result<http::Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(client.send(Request::from_parts(parts, Body::from(body))).await?)
}
