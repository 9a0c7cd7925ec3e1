//! The listener on real sockets with real certificates.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::{http1, http2};
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as ClientStream;

use super::certificates::renewal::{Renewal, Source};
use super::certificates::{Pair, Purpose, Subject, authority, make};
use super::*;
use crate::auth::certificate::Authorities;
use crate::auth::{AUTHENTICATED, Authenticator};

mod strangers;

/// A server with its own authority.
struct House {
    dir: TempDir,
    renewal: Renewal,
    address: SocketAddr,
    configs: watch::Sender<Arc<ServerConfig>>,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<()>,
}

fn now() -> Timestamp {
    Timestamp::now()
}

/// Serves with a function that gets the request and gives code and text.
async fn house<F, A>(limits: Limits, answer: F) -> House
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = (u16, String)> + Send + 'static,
{
    let service = tower::service_fn(move |request| {
        let answer = answer(request);
        async move {
            let (code, text) = answer.await;
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = StatusCode::from_u16(code).expect("a code");
            Ok::<_, Infallible>(response)
        }
    });
    house_of(limits, service).await
}

async fn house_of<S, B>(limits: Limits, service: S) -> House
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let dir = tempfile::tempdir().expect("a directory");
    let authority = authority(dir.path(), now()).expect("an authority");
    let client_authorities = vec![authority.certificate.clone()];
    let source = Source::Own(dir.path().to_owned(), Subject::server([]));
    let renewal = Renewal { source, authority, client_authorities };
    let pair = renewal.pair(now()).expect("a certificate");
    let (configs, tls) = watch::channel(renewal.config(&pair).expect("a configuration"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (address, stop) = (listener.local_addr().expect("an address"), CancellationToken::new());
    let served = tokio::spawn(serve(listener, tls, service, limits, stop.clone()));
    House { dir, renewal, address, configs, stop, served }
}

impl House {
    fn client(&self, name: &str, group: &str) -> Pair {
        let subject = Subject { name: name.to_owned(), purpose: Purpose::Client(group.to_owned()) };
        make(&subject, &self.renewal.authority, now()).expect("a certificate")
    }

    async fn connect(&self, client: Option<&Pair>, alpn: &[u8]) -> std::io::Result<ClientStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.renewal.authority.certificate.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        let mut config = match client {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
                let chain = tls::certificates(&pair.certificate).expect("a certificate");
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Sends one request on a connection of its own.
    async fn get(&self, client: Option<&Pair>, alpn: &[u8], path: &str) -> (u16, http::HeaderMap, String) {
        let stream = TokioIo::new(self.connect(client, alpn).await.expect("a connection"));
        let request = Request::builder().uri(format!("https://localhost{path}")).header("host", "localhost");
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let response = if alpn == b"h2" {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
            tokio::spawn(connection);
            sender.send_request(request).await.expect("an answer")
        } else {
            let (mut sender, connection) = http1::handshake(stream).await.expect("HTTP/1.1");
            tokio::spawn(connection);
            sender.send_request(request).await.expect("an answer")
        };
        let (parts, body) = response.into_parts();
        let text = body.collect().await.expect("a body").to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&text).into_owned())
    }
}

/// Answers who asks.
async fn identity(request: Request<Incoming>, authorities: Authorities) -> (u16, String) {
    struct Nothing;
    impl crate::auth::Objects for Nothing {
        fn find<'a>(
            &'a self,
            _kind: &'static fairlead_api::Kind,
            _namespace: &'a str,
            _name: &'a str,
        ) -> futures_util::future::BoxFuture<'a, Result<Option<fairlead_api::value::Value>, fairlead_api::Failure>>
        {
            Box::pin(async { Ok(None) })
        }
    }
    let authenticator = Authenticator { certificates: Some(authorities), ..Authenticator::default() };
    match authenticator.authenticate(&request.into_parts().0, &Nothing, now()).await {
        Ok(user) => (200, format!("{} {:?} {}", user.name, user.groups, user.extra.len())),
        Err(failure) => (failure.code, failure.message),
    }
}

#[tokio::test]
async fn a_client_certificate_names_its_user_on_both_protocols() {
    // The authority is known only once the server is there.
    let known: Arc<std::sync::OnceLock<Authorities>> = Arc::default();
    let later = known.clone();
    let house = house(Limits::default(), move |request| {
        let authorities = later.get().expect("set below").clone();
        identity(request, authorities)
    })
    .await;
    known.set(Authorities::new(&house.renewal.client_authorities).expect("authorities")).expect("once");
    let ann = house.client("ann", "devs");
    let stranger = {
        let dir = tempfile::tempdir().expect("a directory");
        let other = authority(dir.path(), now()).expect("an authority");
        let subject = Subject { name: "root".to_owned(), purpose: Purpose::Client("system:masters".to_owned()) };
        make(&subject, &other, now()).expect("a certificate")
    };
    let expired = {
        let subject = Subject { name: "old".to_owned(), purpose: Purpose::Client("devs".to_owned()) };
        let before = now() - jiff::SignedDuration::from_hours(24 * 400);
        make(&subject, &house.renewal.authority, before).expect("a certificate")
    };
    let server = house.renewal.pair(now()).expect("the server's own");
    for alpn in [b"h2".as_slice(), b"http/1.1"] {
        let (code, _, text) = house.get(Some(&ann), alpn, "/api").await;
        assert_eq!((code, text), (200, format!("ann [\"devs\", \"{AUTHENTICATED}\"] 1")));
        assert_eq!(house.get(None, alpn, "/api").await.0, 401);
        assert_eq!(house.get(None, alpn, "/readyz").await.0, 200);
        for bad in [&stranger, &expired, &server] {
            assert_eq!(house.get(Some(bad), alpn, "/api").await.0, 401);
            assert_eq!(house.get(Some(bad), alpn, "/readyz").await.0, 401);
        }
    }
}

#[tokio::test]
async fn a_certificate_that_ends_is_refused_on_an_open_connection() {
    let house = house(Limits::default(), |_| async { (200, String::new()) }).await;
    let ann = tls::certificates(&house.client("ann", "devs").certificate).expect("a certificate");
    let authorities = Authorities::new(&house.renewal.client_authorities).expect("authorities");
    let connection = Connection::new(house.address, ann.into());
    let name = |later| {
        let time = now() + jiff::SignedDuration::from_hours(later);
        authorities.identify(&connection, time).map(|user| user.map(|user| user.name))
    };
    assert_eq!(name(0), Ok(Some("ann".to_owned())));
    assert_eq!(name(1), Ok(Some("ann".to_owned())));
    assert!(name(24 * 366).is_err());
}

#[tokio::test]
async fn a_client_must_have_the_key_of_its_certificate() {
    let house = house(Limits::default(), |_| async { (200, "in".to_owned()) }).await;
    let (ann, bob) = (house.client("ann", "devs"), house.client("bob", "devs"));
    // rustls refuses a pair that does not fit on the client's side already; so the client lies with a resolver.
    #[derive(Debug)]
    struct Liar(Arc<rustls::sign::CertifiedKey>);
    impl rustls::client::ResolvesClientCert for Liar {
        fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<rustls::sign::CertifiedKey>> {
            Some(self.0.clone())
        }
        fn has_certs(&self) -> bool {
            true
        }
    }
    let key = PrivateKeyDer::from_pem_slice(bob.key.as_bytes()).expect("a key");
    let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
    let chain = tls::certificates(&ann.certificate).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(house.renewal.authority.certificate.clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_cert_resolver(Arc::new(Liar(Arc::new(rustls::sign::CertifiedKey::new(chain, key)))));
    let stream = TcpStream::connect(house.address).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    if let Ok(mut stream) = TlsConnector::from(Arc::new(config)).connect(name, stream).await {
        // In TLS 1.3 the client only hears of it when it reads.
        assert!(stream.read_u8().await.is_err());
    }
}

#[tokio::test]
async fn a_silent_client_is_cut_off() {
    let limits =
        Limits { handshake: Duration::from_millis(50), header: Duration::from_millis(50), ..Limits::default() };
    let house = house(limits, |_| async { (200, String::new()) }).await;
    let mut plain = TcpStream::connect(house.address).await.expect("a connection");
    assert_eq!(plain.read(&mut [0; 1]).await.ok(), Some(0));
    let mut shaken = house.connect(None, b"http/1.1").await.expect("a connection");
    assert!(matches!(shaken.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn requests_end_before_the_server_does() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, out) = (entered.clone(), leave.clone());
    let house = house(Limits::default(), move |_| {
        let (inside, out) = (inside.clone(), out.clone());
        async move {
            inside.notify_one();
            out.notified().await;
            (200, "done".to_owned())
        }
    })
    .await;
    let stop = house.stop.clone();
    let stopping = async {
        entered.notified().await;
        stop.cancel();
        leave.notify_one();
    };
    let (answer, ()) = tokio::join!(house.get(None, b"h2", "/"), stopping);
    assert_eq!((answer.0, answer.2.as_str()), (200, "done"));
    house.served.await.expect("the server ends");
}

#[tokio::test]
async fn requests_that_do_not_end_are_cut() {
    let entered = Arc::new(Notify::new());
    let inside = entered.clone();
    let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
    let house = house(limits, move |_| {
        inside.notify_one();
        std::future::pending()
    })
    .await;
    let stream = TokioIo::new(house.connect(None, b"http/1.1").await.expect("a connection"));
    let (mut sender, connection) = http1::handshake(stream).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let request =
        Request::builder().uri("/").header("host", "localhost").body(Empty::<Bytes>::new()).expect("a request");
    let answer = tokio::spawn(async move { sender.send_request(request).await.is_err() });
    entered.notified().await;
    house.stop.cancel();
    house.served.await.expect("the server ends");
    assert!(answer.await.expect("an end"));
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart() {
    let house = house(Limits::default(), |_| async { (200, String::new()) }).await;
    let shown = async || {
        let stream = house.connect(None, b"h2").await.expect("a connection");
        stream.get_ref().1.peer_certificates().expect("a certificate")[0].clone().into_owned()
    };
    let before = shown().await;
    assert_eq!(shown().await, before);
    std::fs::remove_file(house.dir.path().join("server.crt")).expect("a file");
    let pair = house.renewal.pair(now()).expect("another certificate");
    house.configs.send_replace(house.renewal.config(&pair).expect("a configuration"));
    assert_ne!(shown().await, before);
}
