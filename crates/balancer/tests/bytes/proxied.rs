//! PROXY headers: those we send are read by HAProxy, those we take come from trusted fronts alone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::process::{Child, Command};

use fairlead_balancer::spec::ProxyVersion;

use crate::lab::{Server, Wish, ask, connect, engine, hear, in_lab, until};

/// HAProxy, ended with this.
struct HaProxy(Child);

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An HAProxy that takes the header and answers with the client's address and the one it meant.
fn haproxy(folder: &std::path::Path) -> HaProxy {
    let config = "global\n  log stderr format raw local0 emerg\ndefaults\n  mode http\n  timeout client 5s\n  \
                  timeout server 5s\n  timeout connect 5s\nfrontend f\n  bind 127.0.0.9:9000 accept-proxy\n  bind [::1]:9000 \
                  accept-proxy v6only\n  http-request return status 200 content-type text/plain lf-string \
                  \"%[src]:%[src_port] %[dst]:%[dst_port] %[fc_pp_authority]\"\n";
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, config).unwrap();
    let program = fairlead_testkit::need::program("haproxy").unwrap();
    let child = HaProxy(Command::new(program).arg("-db").arg("-f").arg(&file).spawn().unwrap());
    until("haproxy listens", || std::net::TcpStream::connect("127.0.0.9:9000").is_ok());
    child
}

#[test]
fn haproxy_reads_the_headers_we_write() {
    let test = "haproxy_reads_the_headers_we_write";
    if !fairlead_testkit::need(test, "haproxy") {
        return;
    }
    in_lab(test, || {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _haproxy) = (engine(), haproxy(folder.path()));
        for version in [ProxyVersion::V1, ProxyVersion::V2] {
            for (address, backend) in
                [("127.0.0.1", "127.0.0.9:9000"), ("::1", "127.0.0.9:9000"), ("::1", "[::1]:9000")]
            {
                let backend: SocketAddr = backend.parse().unwrap();
                let addresses = vec![address.parse().unwrap()];
                let wish = Wish { addresses, send_proxy: Some(version), ..Wish::to(&[backend]) };
                wish.serve(&engine);
                let mut stream = connect(wish.at());
                stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
                let me = stream.local_addr().unwrap();
                let plain = |at: SocketAddr| format!("{}:{}", at.ip(), at.port());
                let expected = format!("{} {} ", plain(me), plain(wish.at()));
                let answer = hear(&stream).unwrap();
                assert!(answer.ends_with(&expected), "{version:?} {address} {backend}: {answer:?} is not {expected:?}");
            }
        }
    });
}

/// A backend that says what it got before the client's end.
fn mirror() -> Server {
    Server::start("127.0.0.1:0", |mut stream| {
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = stream.write_all(&got);
    })
}

#[test]
fn the_word_of_a_trusted_front_is_taken_and_of_nobody_else() {
    in_lab("the_word_of_a_trusted_front_is_taken_and_of_nobody_else", || {
        let (engine, mirror) = (engine(), mirror());
        let header = "PROXY TCP4 198.51.100.7 203.0.113.1 4711 443\r\n";
        let base = Wish { accept_proxy: true, send_proxy: Some(ProxyVersion::V1), ..Wish::to(&[mirror.at]) };
        let trusting = Wish { trusted: vec!["127.0.0.0/8".parse().unwrap()], ..base.clone() };
        trusting.serve(&engine);
        // Taken, and passed on as ours.
        assert_eq!(ask(base.at(), &format!("{header}hello")).unwrap(), format!("{header}hello"));
        // In pieces.
        let mut stream = connect(base.at());
        for piece in ["PRO", "XY TCP4 198.51.100.7 203.0", ".113.1 4711 443\r", "\nhel", "lo"] {
            stream.write_all(piece.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(hear(&stream).unwrap(), format!("{header}hello"));
        // A trusted front that sends none, or nonsense, is not served.
        assert_ne!(ask(base.at(), "GET / HTTP/1.1\r\n\r\n").ok().as_deref(), Some("GET / HTTP/1.1\r\n\r\n"));
        until("it is counted", || engine.look()[0].totals.bad_proxy_headers == 1);
        // One that is not trusted may not say such things, in whatever pieces; what else it says is carried.
        Wish { trusted: vec!["192.0.2.0/24".parse().unwrap()], ..base.clone() }.serve(&engine);
        assert!(ask(base.at(), &format!("{header}hello")).is_err());
        until("it is counted", || engine.look()[0].totals.bad_proxy_headers == 2);
        let mut stream = connect(base.at());
        for piece in ["PRO", "XY TCP4 198.51.100.7"] {
            stream.write_all(piece.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(hear(&stream).is_err());
        until("it is counted", || engine.look()[0].totals.bad_proxy_headers == 3);
        assert_eq!(engine.look()[0].totals.broken, 0, "it is counted once");
        let answer = ask(base.at(), "PROX, and more").unwrap();
        assert!(answer.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{answer}");
        assert!(answer.ends_with("\r\nPROX, and more"), "{answer}");
        // Where no header is awaited, bytes are bytes.
        Wish { accept_proxy: false, ..trusting.clone() }.serve(&engine);
        let answer = ask(base.at(), &format!("{header}hello")).unwrap();
        assert!(answer.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 "), "{answer}");
        assert!(answer.ends_with(&format!("\r\n{header}hello")), "{answer}");
    });
}

#[test]
fn nobody_waits_for_the_first_bytes_of_a_stranger() {
    in_lab("nobody_waits_for_the_first_bytes_of_a_stranger", || {
        let (engine, greeter) = (engine(), Server::says("220 hello"));
        let trusted = vec!["192.0.2.0/24".parse().unwrap()];
        let wish = Wish { accept_proxy: true, trusted, ..Wish::to(&[greeter.at]) };
        wish.serve(&engine);
        assert_eq!(hear(&connect(wish.at())).unwrap(), "220 hello");
    });
}

#[test]
fn ranges_are_asked_of_the_client_a_front_names() {
    in_lab("ranges_are_asked_of_the_client_a_front_names", || {
        let (engine, mirror) = (engine(), mirror());
        let range = vec!["198.51.100.0/24".parse().unwrap()];
        let trusted = vec!["127.0.0.0/8".parse().unwrap()];
        let wish = Wish { accept_proxy: true, trusted, sources: Some(range.clone()), ..Wish::to(&[mirror.at]) };
        wish.serve(&engine);
        let from = |client: &str| ask(wish.at(), &format!("PROXY TCP4 {client} 203.0.113.1 4711 443\r\nhello"));
        assert_eq!(from("198.51.100.7").unwrap(), "hello");
        assert_ne!(from("198.51.101.7").ok().as_deref(), Some("hello"));
        Wish { accept_proxy: false, ..wish.clone() }.serve(&engine);
        assert_ne!(from("198.51.100.7").ok().as_deref(), Some("hello"), "127.0.0.1 is in no range");
        until("they are counted", || engine.look()[0].totals.refused == 2);
    });
}
