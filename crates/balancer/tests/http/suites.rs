//! Test suites of other projects against a listener: h2spec, sslscan, slowhttptest. docs/suites.md
//! has the results.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fairlead_balancer::spec::TlsPolicy;
use fairlead_balancer::tls::{ALPN_HTTP, Certificate, Pem, ServerTls};
use fairlead_testkit::need;
use fairlead_testkit::suites::{h2spec, need_long, run, slowhttptest, sslscan, sslscan_findings, suite};

use crate::lab::{Client, Server, Wish, in_lab, status, tls};

#[test]
#[allow(clippy::print_stdout, reason = "the score is worth knowing")]
fn h2spec_passes_at_a_listener_with_and_without_tls() {
    let test = "h2spec_passes_at_a_listener_with_and_without_tls";
    if !need(test, "h2spec") {
        return;
    }
    in_lab(test, || {
        let backend = Server::named("web");
        let (certificate, _) = tls();
        let cleartext = Wish::to(&[backend.at]);
        let secured = Wish { tls: Some(certificate), ..Wish::to(&[backend.at]).beside(1) };
        let _engines = (cleartext.start(), secured.start());
        // A cleartext listener speaks HTTP/1, too: what is no preface of HTTP/2 is a malformed
        // request of HTTP/1, and is answered with 400 before the connection is closed. h2spec
        // expects frames alone.
        let cases: [(&Wish, bool, &[&str]); 2] =
            [(&cleartext, false, &["Sends invalid connection preface"]), (&secured, true, &[])];
        for (wish, secured, expected) in cases {
            let report = h2spec(wish.at(), secured, "/");
            println!("TLS {secured}: {}", report.summary);
            assert_eq!(report.failed, expected, "TLS {secured}:\n{}", report.output);
            assert!(report.summary.ends_with(&format!(" {} failed", expected.len())), "{}", report.summary);
        }
    });
}

#[test]
fn sslscan_finds_no_weak_offer_at_a_listener() {
    let test = "sslscan_finds_no_weak_offer_at_a_listener";
    if !need(test, "sslscan") {
        return;
    }
    in_lab(test, || {
        let backend = Server::named("web");
        let (certificate, _) = tls();
        let wish = Wish { tls: Some(certificate), ..Wish::to(&[backend.at]) };
        let _engine = wish.start();
        let report = sslscan(wish.at(), "web.example");
        assert!(report.contains("TLSv1.3   enabled"), "{report}");
        assert_eq!(sslscan_findings(&report), Vec::<String>::new(), "{report}");
    });
}

#[test]
#[allow(clippy::print_stdout, reason = "the score is worth knowing")]
fn handshakes_of_tlslite_are_answered_or_refused() {
    let test = "handshakes_of_tlslite_are_answered_or_refused";
    if !need(test, "suites-python") || !need(test, "openssl") {
        return;
    }
    in_lab(test, || {
        let backend = Server::named("web");
        let wish = Wish { tls: Some(rsa_tls()), ..Wish::to(&[backend.at]) };
        let _engine = wish.start();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/handshakes.py");
        let mut command = suite("suites-python");
        command.arg(script).args([wish.at().ip().to_string(), wish.at().port().to_string()]);
        let run = run(&mut command);
        println!("{}", run.output.lines().last().unwrap_or_default());
        assert!(run.success, "{}", run.output);
    });
}

/// Returns TLS with a self-signed certificate of an RSA key, which openssl makes.
fn rsa_tls() -> Arc<ServerTls> {
    let made = Command::new("openssl").args(["genrsa", "2048"]).output().unwrap();
    let key = String::from_utf8(made.stdout).unwrap();
    let params = rcgen::CertificateParams::new(vec!["web.example".to_owned()]).unwrap();
    let certificate = params.self_signed(&rcgen::KeyPair::from_pem(&key).unwrap()).unwrap().pem();
    let pem = Pem { chain: certificate.as_bytes(), chain_name: "tls.crt", key: key.as_bytes(), key_name: "tls.key" };
    let read = Arc::new(Certificate::read("web", pem).unwrap());
    Arc::new(ServerTls::new(&[read], &TlsPolicy { name: String::new() }, ALPN_HTTP).unwrap())
}

#[test]
fn a_polite_client_is_answered_beside_slow_ones_of_slowhttptest() {
    let test = "a_polite_client_is_answered_beside_slow_ones_of_slowhttptest";
    if !need_long(test, "slowhttptest") {
        return;
    }
    in_lab(test, || {
        let backend =
            Server::answering(&format!("HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n{}", "x".repeat(65536)));
        let wish = Wish::to(&[backend.at]);
        let _engine = wish.start();
        for mode in ["-H", "-B", "-X"] {
            let over = AtomicBool::new(false);
            let answered = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let (head, body) = Client::to(wish.at()).get("/").expect("an answer");
                        assert_eq!((status(&head), body.len()), (200, 65536), "{mode}");
                        answered.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(20));
                    }
                });
                let output = slowhttptest(mode, 1000, Duration::from_secs(30), &format!("http://{}/", wish.at()));
                over.store(true, Ordering::Relaxed);
                assert!(output.contains("connected"), "{output}");
            });
            assert!(answered.load(Ordering::Relaxed) > 0, "{mode}: no request was answered");
        }
    });
}
