//! How does a file get into an object store? One signed PUT of S3, over HTTP or HTTPS.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::sign::{self, Signer};
use crate::tls::ClientTls;

/// A bucket of an object store.
#[derive(Clone, PartialEq, Eq)]
pub struct Bucket {
    /// `https://s3.example.com:9000`, with a path if the store has one.
    pub endpoint: String,
    /// Its name there.
    pub name: String,
    /// Such as `us-east-1`.
    pub region: String,
    /// Who we are.
    pub access_key: String,
    /// What proves it.
    pub secret_key: String,
    /// The authority of the store's certificate, PEM; `None`: those the system trusts.
    pub authority: Option<String>,
}

/// Never the secret.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bucket { endpoint, name, region, access_key, .. } = self;
        write!(f, "Bucket {{ {endpoint}/{name} in {region} as {access_key} }}")
    }
}

/// Why a file did not get there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The endpoint is no URL.
    #[error("{0:?} is no URL of an object store: http://HOST[:PORT] or https://HOST[:PORT] is")]
    Endpoint(String),
    /// The store cannot be reached, or its certificate is not to be trusted.
    #[error("the object store cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
    /// The conversation broke off.
    #[error("the object store broke off: {0}")]
    Broken(#[from] hyper::Error),
    /// It took too long.
    #[error("the object store did not answer in {} seconds", PATIENCE.as_secs())]
    Slow,
    /// It said no.
    #[error("the object store answered {0}: {1}")]
    Refused(u16, String),
}

/// For one file, from the connection to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of what a store says no with, so much is read.
const LONGEST_REASON: usize = 4096;
/// Letters of it that are shown.
const LONGEST_SHOWN: usize = 300;

/// Where systems keep the authorities they trust.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

impl Bucket {
    /// Puts an object there.
    pub(super) async fn put(&self, key: &str, content: Bytes) -> Result<(), Error> {
        timeout(PATIENCE, self.put_patiently(key, content)).await.map_err(|_| Error::Slow)?
    }

    async fn put_patiently(&self, key: &str, content: Bytes) -> Result<(), Error> {
        let place = Place::of(&self.endpoint).ok_or_else(|| Error::Endpoint(self.endpoint.clone()))?;
        let socket = TcpStream::connect((&*place.host, place.port)).await?;
        let request = self.request(&place, key, content, Timestamp::now());
        if !place.secure {
            return exchange(socket, request).await;
        }
        let address = socket.peer_addr()?.ip();
        let authority = self.authority.clone().map(Ok).unwrap_or_else(system_authorities)?;
        let tls = ClientTls::new(Some(authority.as_bytes()), &[place.host], &["http/1.1"]).map_err(io::Error::other)?;
        exchange(tls.connect(socket, address).await?, request).await
    }

    fn request(&self, place: &Place, key: &str, content: Bytes, now: Timestamp) -> Request<Full<Bytes>> {
        let path = sign::encode(&format!("{}/{}/{key}", place.path, self.name));
        let (date, hash) = (sign::date(now), sign::hash(&content));
        let (access_key, secret_key, region) = (&*self.access_key, &*self.secret_key, &*self.region);
        let signer = Signer { access_key, secret_key, region, service: "s3" };
        let headers = [("host", &*place.authority), ("x-amz-content-sha256", &*hash), ("x-amz-date", &*date)];
        let signed = sign::Request { method: "PUT", path: &path, query: "", headers: &headers, body: &hash };
        let mut request = Request::builder().method("PUT").uri(&path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = request.header("authorization", signer.authorization(&signed, &date));
        request
            .header("content-type", "text/plain")
            .body(Full::new(content))
            .expect("an encoded path, and headers of ASCII")
    }
}

/// Where a store is.
#[derive(Debug)]
struct Place {
    secure: bool,
    host: String,
    port: u16,
    /// As the header `Host` has it.
    authority: String,
    path: String,
}

impl Place {
    fn of(endpoint: &str) -> Option<Place> {
        let uri: Uri = endpoint.parse().ok()?;
        let secure = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let path = uri.path().trim_end_matches('/').to_owned();
        Some(Place { secure, host, port, authority: uri.authority()?.to_string(), path })
    }
}

async fn exchange<T>(socket: T, request: Request<Full<Bytes>>) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    let answered = async {
        let answer = sender.send_request(request).await?;
        let (status, body) = (answer.status(), answer.into_body());
        if status.is_success() {
            return Ok(());
        }
        let reason = Limited::new(body, LONGEST_REASON).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Err(Error::Refused(status.as_u16(), printable(&reason)))
    };
    tokio::select! {
        result = answered => result,
        // It ends with the answer at the latest; if it ends without one, that says why.
        Err(error) = connection => Err(error.into()),
    }
}

/// Returns the beginning of what a store says as one line without control characters: it goes into
/// a log, where a store must not write lines of its own.
fn printable(reason: &[u8]) -> String {
    let text = String::from_utf8_lossy(reason);
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(LONGEST_SHOWN).collect()
}

fn system_authorities() -> io::Result<String> {
    let found = AUTHORITIES.iter().find_map(|path| std::fs::read_to_string(path).ok());
    found.ok_or_else(|| io::Error::other("this system has no authorities it trusts; name one for the bucket"))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_SHOWN, printable};

    #[test]
    fn what_a_store_says_is_one_line() {
        assert_eq!(printable(b"no\r\n2026-01-01 ERROR all is lost\x1b[2J"), "no  2026-01-01 ERROR all is lost [2J");
        assert_eq!(printable(&[b'x'; 4096]).len(), LONGEST_SHOWN);
    }
}
