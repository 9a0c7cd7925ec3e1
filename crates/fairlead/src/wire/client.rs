//! Asks a server: the one that runs on this machine, as the administrator of its data directory; or one elsewhere, to join it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use base64::Engine;
use bytes::Bytes;
use fairlead_api::Look;
use fairlead_server::serve::certificates::Pair;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::KUBECONFIG;

/// How long a question may take, and the longest answer to it.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: usize = 1 << 20;

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

/// A way to a server. One request goes over it.
pub(super) struct Access {
    server: String,
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
        let roots = roots(&pem(cluster, "certificate-authority-data")?)?;
        let tls = builder()?.with_root_certificates(roots);
        let tls = with_certificate(tls, &pem(user, "client-certificate-data")?, &pem(user, "client-key-data")?)?;
        Ok(Access { server: cluster.text("server").to_owned(), tls })
    }

    /// A server whose authorities are known, as somebody with a certificate or as nobody yet.
    pub(super) fn known(server: &str, authorities: &str, pair: Option<&Pair>) -> anyhow::Result<Access> {
        let tls = builder()?.with_root_certificates(roots(authorities.as_bytes())?);
        let tls = match pair {
            Some(pair) => with_certificate(tls, pair.certificate.as_bytes(), pair.key.as_bytes())?,
            None => tls.with_no_client_auth(),
        };
        Ok(Access { server: server.to_owned(), tls })
    }

    /// Whoever answers there. What they say is to be compared with what is known of them, and nothing is to be told them.
    pub(super) fn unverified(server: &str) -> anyhow::Result<Access> {
        let tls = builder()?.dangerous().with_custom_certificate_verifier(Arc::new(Anybody));
        Ok(Access { server: server.to_owned(), tls: tls.with_no_client_auth() })
    }

    async fn get(self, path: &str) -> anyhow::Result<http::Response<hyper::body::Incoming>> {
        self.send(Request::get(path).body(Full::default())?).await
    }

    /// Asks something small, and returns how it ended and what was said.
    pub(super) async fn ask(
        self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: String,
    ) -> anyhow::Result<(StatusCode, String)> {
        let mut request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::from(body))?;
        let asked = async {
            let answer = self.send(request).await?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LONGEST).collect().await.map_err(|error| anyhow!("{error}"))?;
            anyhow::Ok((parts.status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
        };
        tokio::time::timeout(PATIENCE, asked).await.with_context(|| format!("no answer in {PATIENCE:?}"))?
    }

    async fn send(self, mut request: Request<Full<Bytes>>) -> anyhow::Result<http::Response<hyper::body::Incoming>> {
        let (host, port) = place(&self.server)?;
        let stream = TcpStream::connect((host.as_str(), port)).await.with_context(|| format!("{host}:{port}"))?;
        let name = ServerName::try_from(host.clone())?;
        let stream = TlsConnector::from(Arc::new(self.tls)).connect(name, stream).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        request.headers_mut().insert(header::HOST, host.parse()?);
        Ok(sender.send_request(request).await?)
    }
}

/// Host and port of a server's URL.
pub(super) fn place(url: &str) -> anyhow::Result<(String, u16)> {
    let uri: Uri = url.parse().with_context(|| url.to_owned())?;
    let host = uri.host().with_context(|| format!("{url} names no server"))?.trim_matches(['[', ']']).to_owned();
    Ok((host, uri.port_u16().unwrap_or(443)))
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

fn roots(pem: &[u8]) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(pem) {
        roots.add(root?)?;
    }
    Ok(roots)
}

fn with_certificate(
    tls: ConfigBuilder<ClientConfig, WantsClientCert>,
    certificate: &[u8],
    key: &[u8],
) -> anyhow::Result<ClientConfig> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>()?;
    Ok(tls.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key)?)?)
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
