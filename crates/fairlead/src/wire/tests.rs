//! The whole program in process: starts, writes a kubeconfig that works, answers, stops.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::*;
use crate::cli::{Cli, Command};
use crate::config::{self, Environment};

/// A program that runs.
struct Program {
    started: Started,
    stop: CancellationToken,
    ended: tokio::task::JoinHandle<anyhow::Result<()>>,
}

async fn program(data: &Path, arguments: &[&str]) -> Program {
    let dir = data.display().to_string();
    let base = ["fairlead", "server", "--secure-port=0", "--store=memory", "--data-dir", &dir];
    let Command::Server(flags) = Cli::parse_from(base.iter().chain(arguments)).command else { panic!("not a server") };
    let config = config::load(*flags, config::Role::Server, &Environment::default()).expect("a configuration");
    let (stop, (tell, told)) = (CancellationToken::new(), oneshot::channel());
    let ready = move |started: &Started| {
        let Started { url, page, kubeconfig, milliseconds, joinable } = started;
        let _ = tell.send(Started {
            url: url.clone(),
            page: page.clone(),
            kubeconfig: kubeconfig.clone(),
            milliseconds: *milliseconds,
            joinable: *joinable,
        });
    };
    let ended = tokio::spawn(start(config, stop.clone(), ready));
    Program { started: told.await.expect("it starts"), stop, ended }
}

/// What a kubeconfig says under a key.
fn field(kubeconfig: &str, key: &str) -> Vec<u8> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: "))).expect(key);
    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, line)
        .unwrap_or_else(|_| line.as_bytes().to_vec())
}

impl Program {
    fn kubeconfig(&self) -> String {
        std::fs::read_to_string(&self.started.kubeconfig).expect("a kubeconfig")
    }

    /// The answer to a request, sent as a client with this kubeconfig would.
    async fn get(&self, path: &str, known: bool, header: &str) -> (u16, String) {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
        let kubeconfig = self.kubeconfig();
        let pem = |key: &str| field(&kubeconfig, key);
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&pem("certificate-authority-data")) {
            roots.add(root.expect("a certificate")).expect("a root");
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        let config = if known {
            let chain = CertificateDer::pem_slice_iter(&pem("client-certificate-data")).collect::<Result<_, _>>();
            let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data")).expect("a key");
            builder.with_client_auth_cert(chain.expect("a certificate"), key).expect("a pair")
        } else {
            builder.with_no_client_auth()
        };
        let address = self.started.url.strip_prefix("https://").expect("a URL").to_owned();
        let stream = TcpStream::connect(&address).await.expect("a connection");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS");
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    async fn stop(self) {
        self.stop.cancel();
        self.ended.await.expect("it ends").expect("it ends well");
    }
}

#[tokio::test]
async fn the_program_starts_answers_and_stops() {
    let dir = tempfile::tempdir().expect("a directory");
    let program = program(dir.path(), &[]).await;
    assert_eq!(program.get("/readyz", false, "").await, (200, "ok".to_owned()));
    assert_eq!(program.get("/readyz", true, "").await, (200, "ok".to_owned()));
    let (code, body) = program.get("/api/v1/services", false, "").await;
    let status: Value = serde_json::from_str(&body).expect("a Status");
    assert_eq!((code, &status["message"]), (401, &"Unauthorized".into()));
    let (code, body) = program.get("/metrics", true, "impersonate-user: ann\r\n").await;
    let status: Value = serde_json::from_str(&body).expect("a Status");
    assert_eq!((code, &status["message"]), (403, &"forbidden: User \"ann\" cannot get path \"/metrics\"".into()));
    let mode = std::fs::metadata(&program.started.kubeconfig).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    program.stop().await;
}

#[tokio::test]
async fn a_second_start_keeps_the_certificates() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut texts = Vec::new();
    for _ in 0..2 {
        let program = program(dir.path(), &[]).await;
        let kubeconfig = program.kubeconfig();
        texts.push(["certificate-authority-data", "client-certificate-data"].map(|key| field(&kubeconfig, key)));
        assert_eq!(program.get("/livez", true, "").await.0, 200);
        program.stop().await;
    }
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test]
async fn tokens_and_open_doors_are_chosen_by_flags() {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "secret,ann,1,system:monitoring\n").expect("a file");
    let flag = format!("--token-auth-file={}", tokens.display());
    let program = program(dir.path(), &[&flag, "--anonymous-auth=true"]).await;
    let bearer = "authorization: Bearer secret\r\n";
    assert_eq!(program.get("/metrics", false, bearer).await.0, 200);
    assert_eq!(program.get("/metrics", false, "").await.0, 403);
    assert_eq!(program.get("/metrics", false, "authorization: Bearer wrong\r\n").await.0, 401);
    program.stop().await;
    let program = self::program(dir.path(), &["--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]).await;
    assert_eq!(program.get("/readyz", false, "").await.0, 401);
    assert_eq!(program.get("/metrics", true, "").await.0, 200);
    program.stop().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_said_with_its_flag() {
    let dir = tempfile::tempdir().expect("a directory");
    let busy = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = format!("--secure-port={}", busy.local_addr().expect("an address").port());
    let table: &[(&str, &str)] = &[
        (&port, "--bind-address, --secure-port: cannot listen at"),
        ("--client-ca-file=/nowhere", "--client-ca-file: /nowhere"),
        ("--token-auth-file=/nowhere", "--token-auth-file: /nowhere"),
        ("--service-account-signing-key-file=/nowhere", "--service-account-signing-key-file: /nowhere"),
        ("--service-account-key-file=/nowhere", "--service-account-key-file: /nowhere"),
        ("--audit-log-path=/nowhere/a", "--audit-log-path: /nowhere/a"),
        ("--data-dir=/proc/nowhere", "--data-dir: /proc/nowhere"),
    ];
    for (flag, message) in table {
        let data = format!("--data-dir={}", dir.path().display());
        let arguments = ["fairlead", "server", &data, "--secure-port=0", flag];
        let Command::Server(flags) = Cli::parse_from(arguments).command else { panic!("not a server") };
        let config = config::load(*flags, config::Role::Server, &Environment::default()).expect("a configuration");
        let found = start(config, CancellationToken::new(), |_| {}).await.expect_err(flag);
        assert!(format!("{found:#}").starts_with(message), "{flag}: {found:#}");
    }
}

#[test]
fn the_line_for_the_shell_can_be_pasted() {
    for (path, expected) in
        [("/var/lib/fairlead/x", "/var/lib/fairlead/x"), ("/a b", "'/a b'"), ("/it's", "'/it'\\''s'")]
    {
        assert_eq!(quoted(path), expected);
    }
    assert_eq!(PathBuf::from(KUBECONFIG).extension().and_then(|e| e.to_str()), Some("kubeconfig"));
}
