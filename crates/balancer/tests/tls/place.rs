//! Authorities, listeners, backends and clients of the tests.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener as Std, TcpStream as StdStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_balancer::tls::{Certificate, Pem, ServerTls, Stream};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Somebody who signs certificates.
pub(crate) struct Authority {
    /// Its own.
    pub(crate) pem: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        Authority { pem: issuer.pem(), issuer }
    }

    /// A certificate of a P-256 key.
    pub(crate) fn certificate(&self, name: &str, hosts: &[&str]) -> Arc<Certificate> {
        read(name, self.pair(hosts, &KeyPair::generate().expect("a key")))
    }

    /// A certificate of an RSA key, which openssl makes.
    pub(crate) fn rsa(&self, name: &str, hosts: &[&str]) -> Arc<Certificate> {
        let made = Command::new("openssl").args(["genrsa", "2048"]).output().expect("openssl runs");
        let key = KeyPair::from_pem(&String::from_utf8(made.stdout).expect("PEM")).expect("a key");
        read(name, self.pair(hosts, &key))
    }

    fn pair(&self, hosts: &[&str], key: &KeyPair) -> (String, String) {
        let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, hosts[0]);
        (params.signed_by(key, &self.issuer).expect("a certificate").pem(), key.serialize_pem())
    }
}

fn read(name: &str, (chain, key): (String, String)) -> Arc<Certificate> {
    let pem = Pem { chain: chain.as_bytes(), chain_name: "chain", key: key.as_bytes(), key_name: "key" };
    Arc::new(Certificate::read(name, pem).expect("a certificate"))
}

/// A listener that answers `ask` with what was agreed on, a request of HTTP with the same, and `echo` with whatever follows.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    current: Arc<RwLock<Arc<ServerTls>>>,
    refused: Arc<AtomicUsize>,
}

impl Listener {
    pub(crate) fn start(tls: Arc<ServerTls>) -> Listener {
        let socket = Std::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("non-blocking");
        let address = socket.local_addr().expect("an address");
        let (current, refused) = (Arc::new(RwLock::new(tls)), Arc::new(AtomicUsize::new(0)));
        let (ours, count) = (current.clone(), refused.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let socket = TcpListener::from_std(socket).expect("a listener");
                while let Ok((stream, _)) = socket.accept().await {
                    let (tls, count) = (ours.read().expect("a lock").clone(), count.clone());
                    tokio::task::spawn_local(async move {
                        match tls.accept(stream).await {
                            Ok(stream) => drop(serve(stream).await),
                            Err(_) => drop(count.fetch_add(1, Ordering::SeqCst)),
                        }
                    });
                }
            });
        });
        Listener { address, current, refused }
    }

    pub(crate) fn replace(&self, tls: Arc<ServerTls>) {
        *self.current.write().expect("a lock") = tls;
    }

    /// Waits until so many were refused: clients see the end before it is counted.
    pub(crate) fn wait_for_refused(&self, count: usize) {
        let since = Instant::now();
        while self.refused() != count {
            assert!(since.elapsed() < Duration::from_secs(20), "{} were refused, not {count}", self.refused());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many were refused so far.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// A connection of openssl's that stays.
    pub(crate) fn connect(&self) -> Connected {
        let arguments = ["s_client", "-quiet", "-servername", "old.example", "-connect"];
        let mut command = Command::new("openssl");
        command.args(arguments).arg(self.address.to_string());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut connected = Connected(child.expect("openssl runs"));
        connected.ask();
        connected
    }
}

/// What answers begin with.
pub(crate) const ANSWER: &str = "agreed: ";

async fn serve(mut stream: Stream<TcpStream>) -> io::Result<()> {
    let facts = stream.facts().clone();
    let answer = format!("{ANSWER}{} {} {}\n", facts.suite, facts.version, facts.sni.as_deref().unwrap_or("-"));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        match &buffer[..count] {
            [] => return stream.shutdown().await,
            ask if ask.starts_with(b"ask") => stream.write_all(answer.as_bytes()).await?,
            get if get.starts_with(b"GET") => {
                let head = "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n";
                stream.write_all(format!("{head}{answer}").as_bytes()).await?;
                stream.shutdown().await?;
            }
            other => {
                stream.write_all(other).await?;
                stream.flush().await?;
            }
        }
    }
}

/// A connection of openssl's.
pub(crate) struct Connected(Child);

impl Connected {
    pub(crate) fn ask(&mut self) -> String {
        self.0.stdin.as_mut().expect("a pipe").write_all(b"ask\n").expect("sent");
        let output = self.0.stdout.as_mut().expect("a pipe");
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            output.read_exact(&mut byte).expect("an answer");
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text")
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What openssl says, given some arguments and something to send. It goes once it was answered.
pub(crate) fn openssl(arguments: &str, input: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(arguments.split(' ').filter(|argument| !argument.is_empty()));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("openssl runs");
    let _ = child.stdin.as_mut().expect("a pipe").write_all(input.as_bytes());
    let (mut said, mut part) = (Vec::new(), [0; 4096]);
    while !said.windows(ANSWER.len()).any(|window| window == ANSWER.as_bytes()) {
        match child.stdout.as_mut().expect("a pipe").read(&mut part) {
            Ok(count) if count > 0 => said.extend_from_slice(&part[..count]),
            _ => break,
        }
    }
    let output = child.wait_with_output().expect("it ends");
    let all = [said, output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// How curl ends, and what it got from a host that is at this address.
pub(crate) fn curl(authority: &Authority, host: &str, address: SocketAddr, more: &[&str]) -> (i32, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("authority.pem");
    std::fs::write(&file, &authority.pem).expect("written");
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "10", "--cacert"])
        .arg(&file)
        .args(["--resolve", &format!("{host}:{}:127.0.0.1", address.port())])
        .args(more)
        .arg(format!("https://{host}:{}/", address.port()))
        .output()
        .expect("curl runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// `openssl s_server` as a backend.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    child: Child,
    _dir: TempDir,
}

impl Backend {
    pub(crate) fn start(authority: &Authority, hosts: &[&str]) -> Backend {
        let dir = tempfile::tempdir().expect("a directory");
        let (chain, key) = authority.pair(hosts, &KeyPair::generate().expect("a key"));
        std::fs::write(dir.path().join("tls.crt"), chain).expect("written");
        std::fs::write(dir.path().join("tls.key"), key).expect("written");
        Backend::run(dir, &["-cert", "tls.crt", "-key", "tls.key", "-www"])
    }

    /// It speaks TLS without saying who it is.
    pub(crate) fn without_certificate() -> Backend {
        let dir = tempfile::tempdir().expect("a directory");
        Backend::run(dir, &["-nocert", "-cipher", "ALL:aNULL:@SECLEVEL=0", "-no_tls1_3", "-www"])
    }

    fn run(dir: TempDir, arguments: &[&str]) -> Backend {
        let address = Std::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let mut command = Command::new("openssl");
        command.current_dir(dir.path()).args(["s_server", "-accept"]).arg(address.to_string()).args(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let backend = Backend { address, child: child.expect("openssl runs"), _dir: dir };
        let since = Instant::now();
        while StdStream::connect(address).is_err() {
            assert!(since.elapsed() < Duration::from_secs(20), "openssl s_server does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        backend
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
