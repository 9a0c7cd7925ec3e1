//! TLS towards clients, towards backends, and both.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::serving::Serving;
use fairlead_balancer::spec::{Listener, ProxyVersion, Tls, TlsPolicy};
use fairlead_balancer::tls::{Certificate, ClientTls, Pem, ServerTls};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::lab::{Server, Wish, ask, connect, engine, hear, in_lab, until};

fn server_tls() -> Arc<ServerTls> {
    let made = rcgen::generate_simple_self_signed(vec!["shop.example".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let pem = Pem { chain: chain.as_bytes(), chain_name: "chain", key: key.as_bytes(), key_name: "key" };
    let certificate = Arc::new(Certificate::read("shop", pem).unwrap());
    Arc::new(ServerTls::new(&[certificate], &TlsPolicy { name: String::new() }, &[]).unwrap())
}

fn client_tls() -> Arc<ClientTls> {
    Arc::new(ClientTls::new(None, &["shop.example".to_owned()], &[]).unwrap())
}

/// A client inside TLS.
fn secured(to: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let name = "shop.example".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(client_tls().config.clone(), name).unwrap(), connect(to))
}

/// Sends back what it gets inside TLS.
fn secured_echo() -> Server {
    let tls = server_tls();
    Server::start("127.0.0.1:0", move |stream| {
        let mut stream = StreamOwned::new(ServerConnection::new(tls.config.clone()).unwrap(), stream);
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..read]).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

/// Sends megabytes piece by piece and compares what comes back, then ends and hears the end.
fn exchange<S: Read + Write>(mut stream: S, end: impl FnOnce(&mut S)) {
    let piece: Vec<u8> = (0..100_000u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut back = vec![0; piece.len()];
    for _ in 0..10 {
        stream.write_all(&piece).unwrap();
        stream.flush().unwrap();
        stream.read_exact(&mut back).unwrap();
        assert!(back == piece);
    }
    end(&mut stream);
    assert_eq!(stream.read(&mut back).unwrap(), 0);
}

#[test]
fn tls_is_taken_off_and_put_on() {
    in_lab("tls_is_taken_off_and_put_on", || {
        let (engine, plain_echo, secured_echo) = (engine(), Server::echo(), secured_echo());
        let base = Wish::default();
        let close = |stream: &mut StreamOwned<ClientConnection, TcpStream>| {
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        };
        let taken_off = Wish { tls: Some(server_tls()), ..base.clone() };
        taken_off.set(&[plain_echo.at]);
        taken_off.serve(&engine);
        exchange(secured(base.at()), close);
        let both = Wish { reencrypt: Some(client_tls()), ..taken_off.clone() };
        both.set(&[secured_echo.at]);
        both.serve(&engine);
        exchange(secured(base.at()), close);
        Wish { tls: None, ..both.clone() }.serve(&engine);
        exchange(connect(base.at()), |stream| stream.shutdown(std::net::Shutdown::Write).unwrap());
        until("all connections end", || engine.look()[0].totals.active == 0);
        let totals = engine.look()[0].totals;
        assert_eq!((totals.broken, totals.bad_handshakes, totals.received), (0, 0, 12_000_000));
    });
}

#[test]
fn a_backend_that_speaks_no_tls_is_no_backend_of_one_that_reencrypts() {
    in_lab("a_backend_that_speaks_no_tls_is_no_backend_of_one_that_reencrypts", || {
        let (engine, says) = (engine(), Server::says("plain words"));
        let wish = Wish { reencrypt: Some(client_tls()), ..Wish::to(&[says.at]) };
        wish.serve(&engine);
        let heard = hear(&connect(wish.at()));
        assert!(heard.is_err() || heard.unwrap().is_empty());
        until("it is counted", || engine.look()[0].totals.dial_failures == 1);
    });
}

#[test]
fn what_is_to_be_secret_is_not_spoken_in_the_clear() {
    in_lab("what_is_to_be_secret_is_not_spoken_in_the_clear", || {
        let (engine, says) = (engine(), Server::says("secret"));
        let wish = Wish::to(&[says.at]);
        let plain = wish.serving();
        let wanted = Some(Tls { certificate: "shop".to_owned(), policy: TlsPolicy { name: String::new() } });
        let towards_clients = Listener { tls: wanted, ..plain.listener.clone() };
        let towards_backends = Listener { reencrypt: true, ..plain.listener.clone() };
        for listener in [towards_clients, towards_backends] {
            let serving = Serving { listener, backends: wish.backends.clone(), ..copy(&plain) };
            engine.serve(wish.key(), Arc::new(serving)).unwrap();
            assert_ne!(ask(wish.at(), "").ok().as_deref(), Some("secret"));
        }
        engine.serve(wish.key(), plain).unwrap();
        assert_eq!(ask(wish.at(), "").unwrap(), "secret");
    });
}

fn copy(of: &Serving) -> Serving {
    Serving {
        spec: of.spec.clone(),
        listener: of.listener.clone(),
        addresses: of.addresses.clone(),
        backends: of.backends.clone(),
        tls: None,
        reencrypt: None,
        log: None,
        sources: None,
        trusted: of.trusted.clone(),
    }
}

#[test]
fn backends_hear_of_tls_in_the_header() {
    in_lab("backends_hear_of_tls_in_the_header", || {
        let engine = engine();
        let (sender, heard) = std::sync::mpsc::channel();
        let server = Server::start("127.0.0.1:0", move |mut stream| {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got);
            let _ = sender.send(got);
        });
        let wish = Wish { tls: Some(server_tls()), send_proxy: Some(ProxyVersion::V2), ..Wish::to(&[server.at]) };
        wish.serve(&engine);
        let mut client = secured(wish.at());
        client.write_all(b"the end").unwrap();
        client.conn.send_close_notify();
        client.flush().unwrap();
        let got = heard.recv_timeout(Duration::from_secs(10)).unwrap();
        let has = |part: &[u8]| got.windows(part.len()).any(|window| window == part);
        assert!(has(b"\x02\x00\x0cshop.example") && has(b"TLSv1.3") && got.ends_with(b"the end"), "{got:02x?}");
    });
}

#[test]
fn junk_and_silence_on_a_port_of_tls_end_soon_and_reach_no_backend() {
    in_lab("junk_and_silence_on_a_port_of_tls_end_soon_and_reach_no_backend", || {
        let options = Options { threads: 1, opening: Duration::from_millis(300), ..Options::default() };
        let (engine, echo) = (Engine::start(options).unwrap(), Server::echo());
        let wish = Wish { tls: Some(server_tls()), ..Wish::to(&[echo.at]) };
        wish.serve(&engine);
        let begun = Instant::now();
        thread::scope(|scope| {
            for junk in [
                &b"GET / HTTP/1.1\r\n\r\n"[..],
                b"\x16\x03\x01\xff\xff",
                b"",
                b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n",
                &[0xff; 70_000],
            ] {
                let at = wish.at();
                scope.spawn(move || {
                    let mut stream = connect(at);
                    let _ = stream.write_all(junk);
                    let _ = stream.read_to_end(&mut Vec::new());
                });
            }
        });
        assert!(begun.elapsed() < Duration::from_secs(5));
        until("all are gone", || engine.look()[0].totals.active == 0);
        let totals = engine.look()[0].totals;
        assert_eq!((totals.accepted, totals.slow + totals.bad_handshakes), (5, 5));
        assert_eq!(totals.no_backend + totals.received, 0);
    });
}
