//! How the server reaches Nodes: one in this process by a call, any other over TLS at the address its Node object names.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use fairlead_api::value::Value;
use fairlead_api::{Failure, Look};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a Node may take to accept a connection, TLS included.
const CONNECT: Duration = Duration::from_secs(10);
/// Where an agent listens that does not say.
const PORT: i64 = 10250;
/// Which of a Node's addresses is taken, best first.
const PREFERRED: [&str; 5] = ["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"];

/// A connection to the API of a Node.
pub trait NodeStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> NodeStream for T {}

/// Makes connections to a Node in this process.
type Local = Arc<dyn Fn() -> Box<dyn NodeStream> + Send + Sync>;

/// Reaches Nodes. Cheap to clone; all clones know the same.
#[derive(Clone, Default)]
pub struct NodeDialer {
    local: Arc<RwLock<HashMap<String, Local>>>,
    tls: Arc<RwLock<Option<Arc<ClientConfig>>>>,
}

impl fmt::Debug for NodeDialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeDialer").finish_non_exhaustive()
    }
}

impl NodeDialer {
    /// One that reaches only Nodes of this process, once they are added.
    pub fn local() -> NodeDialer {
        NodeDialer::default()
    }

    /// One that also reaches other machines: their certificates are of these authorities, and this is ours.
    pub fn over_tls(
        authorities: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<NodeDialer, rustls::Error> {
        let dialer = NodeDialer::local();
        dialer.use_tls(authorities, chain, key)?;
        Ok(dialer)
    }

    /// Reaches other machines from now on with this certificate.
    pub fn use_tls(
        &self,
        authorities: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        *self.tls.write().expect("no panic while it is held") = Some(Arc::new(config));
        Ok(())
    }

    /// A Node runs in this process: `connect` makes a connection to its API.
    pub fn add<S: NodeStream + 'static>(&self, node: &str, connect: impl Fn() -> S + Send + Sync + 'static) {
        let connect: Local = Arc::new(move || Box::new(connect()));
        self.local.write().expect("no panic while it is held").insert(node.to_owned(), connect);
    }

    /// A Node no longer runs here.
    pub fn remove(&self, node: &str) {
        self.local.write().expect("no panic while it is held").remove(node);
    }

    /// Connects to a Node.
    pub(crate) async fn dial(&self, node: &Value) -> Result<Box<dyn NodeStream>, Failure> {
        let name = node.at("metadata").text("name");
        let local = self.local.read().expect("no panic while it is held").get(name).cloned();
        if let Some(connect) = local {
            return Ok(connect());
        }
        let failed = |why: String| Failure::internal(format!("error dialing backend: node {name}: {why}"));
        let tls = self.tls.read().expect("no panic while it is held").clone();
        let Some(tls) = tls else {
            return Err(failed("it does not run in this process, and no other can be reached".to_owned()));
        };
        let (host, port) = address(node)?;
        let connected = tokio::time::timeout(CONNECT, connect(name, host, port, tls)).await;
        let stream = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        stream.map_err(|error| failed(format!("dial tcp {host}:{port}: {error}")))
    }
}

/// A Node's certificate has its name, and no address: which addresses a Node has, it says itself.
async fn connect(node: &str, host: &str, port: u16, tls: Arc<ClientConfig>) -> std::io::Result<Box<dyn NodeStream>> {
    let server = ServerName::try_from(node.to_owned()).map_err(std::io::Error::other)?;
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(TlsConnector::from(tls).connect(server, stream).await?))
}

/// Where a Node's agent listens.
fn address(node: &Value) -> Result<(&str, u16), Failure> {
    let status = node.at("status");
    let addresses = status.list("addresses");
    let of = |kind: &&str| addresses.iter().find(|address| address.text("type") == *kind);
    let Some(found) = PREFERRED.iter().find_map(of) else {
        let known: Vec<&str> = addresses.iter().map(|address| address.text("address")).collect();
        let why = format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
        return Err(Failure::internal(why));
    };
    let port = agent_port(node);
    let port = u16::try_from(port).map_err(|_| Failure::internal(format!("{port} is no port")))?;
    Ok((found.text("address"), port))
}

/// Returns the port at which a Node's agent listens.
pub(crate) fn agent_port(node: &Value) -> i64 {
    match node.at("status").at("daemonEndpoints").at("kubeletEndpoint").int("Port") {
        0 => PORT,
        port => port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_api::value::json;

    #[track_caller]
    fn check(status: Value, want: Result<(&str, u16), &str>) {
        let node = json!({"metadata": {"name": "n"}, "status": status});
        let got = address(&node).map_err(|failure| failure.message);
        assert_eq!(
            got.as_ref().map_err(|message| message.contains(want.err().unwrap_or("?"))).copied(),
            want.map_err(|_| true)
        );
    }

    #[test]
    fn a_node_is_reached_at_the_best_of_its_addresses_and_its_port() {
        let addresses =
            json!([{"type": "Hostname", "address": "n.example"}, {"type": "InternalIP", "address": "192.0.2.1"}]);
        check(json!({"addresses": addresses}), Ok(("192.0.2.1", 10250)));
        let port = json!({"kubeletEndpoint": {"Port": 10999}});
        check(json!({"addresses": [addresses[0]], "daemonEndpoints": port}), Ok(("n.example", 10999)));
        check(json!({}), Err("no preferred addresses found"));
    }
}
