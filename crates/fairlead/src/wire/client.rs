//! Asks the server that runs on this machine, as the administrator of its data directory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use bytes::Bytes;
use fairlead_api::Look;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::KUBECONFIG;

/// Fetches a copy of the store into a file. The file appears when it is whole.
pub(super) async fn backup(data_dir: &Path, file: &Path) -> anyhow::Result<()> {
    let access = Access::read(&data_dir.join(KUBECONFIG))?;
    let mut answer = access.get(fairlead_server::backup::PATH).await?;
    if answer.status() != StatusCode::OK {
        let text = answer.into_body().collect().await?.to_bytes();
        let status: Value = serde_json::from_slice(&text).unwrap_or_default();
        anyhow::bail!("the server refused: {}", status.text("message"));
    }
    let partial = file.with_extension("partial");
    // Secrets are in it: from the first byte on, nobody but its owner reads it.
    let opened = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).await;
    let mut out = opened.with_context(|| partial.display().to_string())?;
    while let Some(frame) = answer.frame().await {
        if let Ok(data) = frame?.into_data() {
            out.write_all(&data).await?;
        }
    }
    out.sync_all().await?;
    tokio::fs::rename(&partial, file).await.with_context(|| file.display().to_string())
}

/// What a kubeconfig of ours says.
struct Access {
    server: Uri,
    tls: ClientConfig,
}

impl Access {
    fn read(kubeconfig: &Path) -> anyhow::Result<Access> {
        let text = std::fs::read_to_string(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
        let value: Value = serde_saphyr::from_str(&text).with_context(|| kubeconfig.display().to_string())?;
        let cluster = &value["clusters"][0]["cluster"];
        let user = &value["users"][0]["user"];
        let pem = |from: &Value, name: &str| {
            base64::engine::general_purpose::STANDARD
                .decode(from.text(name))
                .with_context(|| format!("{name} is damaged"))
        };
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&pem(cluster, "certificate-authority-data")?) {
            roots.add(root?)?;
        }
        let chain =
            CertificateDer::pem_slice_iter(&pem(user, "client-certificate-data")?).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(&pem(user, "client-key-data")?)?;
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        Ok(Access { server: cluster.text("server").parse()?, tls })
    }

    async fn get(self, path: &str) -> anyhow::Result<http::Response<hyper::body::Incoming>> {
        let host = self.server.host().context("the kubeconfig names no server")?.trim_matches(['[', ']']).to_owned();
        let port = self.server.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host.as_str(), port)).await.with_context(|| format!("{host}:{port}"))?;
        let name = ServerName::try_from(host.clone())?;
        let stream = TlsConnector::from(Arc::new(self.tls)).connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::get(path).header(header::HOST, host).body(Empty::<Bytes>::new())?;
        Ok(sender.send_request(request).await?)
    }
}
