//! Programs that others wrote: curl in front, nginx and HAProxy behind.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use fairlead_balancer::spec::Speaks;
use fairlead_balancer::tls::ClientTls;
use fairlead_testkit::need;

use crate::lab::{Server, Wish, in_lab, tls, until};

/// A program that runs until the test is over.
struct Program(Child);

impl Program {
    fn start(name: &str, arguments: &[&str], port: u16) -> Program {
        let path = fairlead_testkit::need::program(name).unwrap();
        let child = Command::new(path).args(arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let program = Program(child);
        until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        program
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn curl(arguments: &[&str]) -> String {
    let out = Command::new("curl").args(["-skS", "--max-time", "20"]).args(arguments).output().unwrap();
    assert!(out.status.success(), "curl {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const VERSION: &str = " %{http_version} %{response_code}";

#[test]
fn curl_is_served_in_each_version() {
    let test = "curl_is_served_in_each_version";
    if !need(test, "curl") {
        return;
    }
    in_lab(test, || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let engine = wish.start();
        let secure = Wish { port: 7443, tls: Some(tls().0), ..wish.clone() };
        secure.serve(&engine);
        let (plain, secure) = ("http://127.0.0.1:7000/", "https://127.0.0.1:7443/");
        let cases = [
            (vec!["--http1.1", plain], "one 1.1 200"),
            (vec!["--http1.0", plain], "one 1.1 200"),
            (vec!["--http2-prior-knowledge", plain], "one 2 200"),
            (vec!["--http2", plain], "one 1.1 200"),
            (vec!["--http1.1", secure], "one 1.1 200"),
            (vec!["--http2", secure], "one 2 200"),
            (vec!["--http2", "-d", "body", secure], "one 2 200"),
            (vec!["--http2", "-I", "-o", "/dev/null", secure], " 2 200"),
            (vec!["-d", "body", "-H", "Expect: 100-continue", plain], "one 1.1 200"),
            (vec!["-d", "body", "-H", "Transfer-Encoding: chunked", plain], "one 1.1 200"),
        ];
        for (arguments, expected) in cases {
            let heard = curl(&[&["-w", VERSION][..], &arguments].concat());
            assert_eq!(heard, expected, "{arguments:?}");
        }
        let protos: Vec<bool> = server.heads().iter().map(|head| head.contains("X-Forwarded-Proto: https")).collect();
        assert_eq!(protos.iter().filter(|https| **https).count(), 4, "{:?}", server.heads());
    });
}

#[test]
fn nginx_and_haproxy_are_served_from() {
    let test = "nginx_and_haproxy_are_served_from";
    if !need(test, "curl") || !need(test, "nginx") || !need(test, "haproxy") {
        return;
    }
    in_lab(test, || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let made = rcgen::generate_simple_self_signed(["web.example".to_owned()]).unwrap();
        fs::write(dir.path().join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(dir.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let large: String = (0..300_000).map(|index| char::from(b'a' + (index % 23) as u8)).collect();
        fs::create_dir(dir.path().join("www")).unwrap();
        fs::write(dir.path().join("www/large"), &large).unwrap();
        let nginx = format!(
            "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\nevents {{}}\nhttp {{\n\
             access_log off; client_body_temp_path {path}/body; proxy_temp_path {path}/proxy; fastcgi_temp_path {path}/f;\n\
             uwsgi_temp_path {path}/u; scgi_temp_path {path}/s;\n\
             server {{ listen 127.0.0.1:8001; listen 127.0.0.1:8002 ssl; ssl_certificate {path}/cert.pem;\n\
             ssl_certificate_key {path}/key.pem; root {path}/www;\n\
             location = /who {{ return 200 \"nginx $http_x_forwarded_for $scheme\"; }} }} }}\n"
        );
        fs::write(dir.path().join("nginx.conf"), nginx).unwrap();
        let haproxy = "defaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 5s\n\
                       frontend f\n bind 127.0.0.1:8003\n \
                       http-request return status 200 content-type text/plain lf-string \"haproxy %[req.hdr(x-forwarded-for)]\"\n";
        fs::write(dir.path().join("haproxy.cfg"), haproxy).unwrap();
        let _nginx = Program::start("nginx", &["-c", &format!("{path}/nginx.conf"), "-p", &path], 8001);
        let _haproxy = Program::start("haproxy", &["-db", "-f", &format!("{path}/haproxy.cfg")], 8003);
        let wish = Wish::to(&["127.0.0.1:8001".parse().unwrap()]);
        let engine = wish.start();
        Wish { port: 7443, tls: Some(tls().0), ..wish.clone() }.serve(&engine);
        for front in ["http://127.0.0.1:7000", "https://127.0.0.1:7443"] {
            assert_eq!(curl(&[&format!("{front}/who")]), "nginx 127.0.0.1 http");
            assert!(curl(&[&format!("{front}/large")]) == large);
            assert!(curl(&["--http1.1", &format!("{front}/large")]) == large);
            assert!(curl(&["-r", "100-199", &format!("{front}/large")]) == large[100..200]);
            assert_eq!(curl(&["-o", "/dev/null", "-w", "%{response_code}", &format!("{front}/none")]), "404");
        }
        wish.set(&["127.0.0.1:8003".parse().unwrap()]);
        assert_eq!(curl(&["--http2-prior-knowledge", "http://127.0.0.1:7000/"]), "haproxy 127.0.0.1");
        let reencrypt = Some(Arc::new(ClientTls::new(None, &[], &["http/1.1"]).unwrap()));
        let again = Wish { port: 7001, reencrypt, ..Wish::to(&["127.0.0.1:8002".parse().unwrap()]) };
        again.serve(&engine);
        for _ in 0..3 {
            assert_eq!(curl(&["http://127.0.0.1:7001/who"]), "nginx 127.0.0.1 https");
        }
        assert!(curl(&["http://127.0.0.1:7001/large"]) == large);
    });
}

#[test]
fn haproxy_is_served_from_by_http_2() {
    let test = "haproxy_is_served_from_by_http_2";
    if !need(test, "curl") || !need(test, "haproxy") {
        return;
    }
    in_lab(test, || {
        let dir = tempfile::tempdir().unwrap();
        // It is to hear a request out: otherwise it cancels the stream, which curl 7 takes for an error.
        let haproxy = "defaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 5s\n \
                       option http-buffer-request\n\
                       frontend f\n bind 127.0.0.1:8003 proto h2\n \
                       http-request return status 200 content-type text/plain lf-string \"%HV %[req.hdr(x-forwarded-for)]\"\n";
        fs::write(dir.path().join("haproxy.cfg"), haproxy).unwrap();
        let config = dir.path().join("haproxy.cfg").display().to_string();
        let _haproxy = Program::start("haproxy", &["-db", "-f", &config], 8003);
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&["127.0.0.1:8003".parse().unwrap()]) };
        let _engine = wish.start();
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            assert_eq!(curl(&[version, "http://127.0.0.1:7000/"]), "HTTP/2.0 127.0.0.1");
            assert_eq!(curl(&[version, "-d", "abc", "http://127.0.0.1:7000/"]), "HTTP/2.0 127.0.0.1");
        }
    });
}
