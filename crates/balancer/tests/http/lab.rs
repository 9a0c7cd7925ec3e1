//! A network namespace of its own with an engine in it, backends that are threads, and clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fairlead_balancer::engine::{Engine, Options};
use fairlead_balancer::http::chunks::{Chunks, Piece};
use fairlead_balancer::spec::{Speaks, TlsPolicy};
use fairlead_balancer::tls::{ALPN_HTTP, Certificate, Pem, ServerTls};

#[path = "../lab/listener.rs"]
mod listener;

pub(crate) use listener::{Wish, in_lab, until};

/// What listeners speak, and how long they drain, unless a test says something else.
const SPEAKS: Speaks = Speaks::Http;
const DRAIN: Option<Duration> = Some(Duration::from_secs(10));

impl Wish {
    /// The same at another port: an engine that ends may still listen at the last one.
    pub(crate) fn beside(self, index: usize) -> Wish {
        Wish { port: self.port + u16::try_from(index).unwrap(), ..self }
    }

    /// An engine that does this.
    pub(crate) fn start(&self) -> Engine {
        let engine = Engine::start(Options { threads: 1, ..Options::default() }).unwrap();
        self.serve(&engine);
        engine
    }
}

/// TLS with a certificate of its own making, and that certificate.
pub(crate) fn tls() -> (Arc<ServerTls>, String) {
    let made = rcgen::generate_simple_self_signed(["web.example".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let pem = Pem { chain: certificate.as_bytes(), chain_name: "tls.crt", key: key.as_bytes(), key_name: "tls.key" };
    let read = Arc::new(Certificate::read("web", pem).unwrap());
    let policy = TlsPolicy { name: String::new() };
    (Arc::new(ServerTls::new(&[read], &policy, ALPN_HTTP).unwrap()), certificate)
}

/// The head of a request and its body.
type Heard = (String, Vec<u8>);

/// A backend that notes what it is asked, and answers with its name.
pub(crate) struct Server {
    pub at: SocketAddr,
    /// Connections on which something was said.
    pub connections: Arc<AtomicUsize>,
    /// The heads and bodies of requests.
    pub heard: Arc<Mutex<Vec<Heard>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// One that does `work` with each connection.
    pub(crate) fn start(work: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, work) = (listener.local_addr().unwrap(), Arc::new(work));
        let (connections, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (connections.clone(), stop.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, work, counted) = (stream.unwrap(), work.clone(), counted.clone());
                thread::spawn(move || {
                    // A health check says nothing.
                    if stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
                        counted.fetch_add(1, Ordering::SeqCst);
                        work(stream);
                    }
                });
            }
        });
        Server { at, connections, heard: Arc::default(), stop }
    }

    /// One that gives this answer to each request, as often as it is asked.
    pub(crate) fn answering(answer: &str) -> Server {
        let answer = answer.to_owned();
        Server::talking(move |_, _| Some(answer.clone().into_bytes()))
    }

    /// One that answers with its name.
    pub(crate) fn named(name: &str) -> Server {
        Server::answering(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len()))
    }

    /// One that makes its answers of heads and bodies; `None`: it hangs up.
    pub(crate) fn talking(answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Server {
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let noted = heard.clone();
        let mut server = Server::start(move |mut stream| {
            let mut rest = Vec::new();
            while let Some((head, body)) = read_request(&mut stream, &mut rest) {
                let answer = answer(&head, &body);
                noted.lock().unwrap().push((head, body));
                match answer {
                    Some(answer) if stream.write_all(&answer).is_ok() => {}
                    _ => return,
                }
            }
        });
        server.heard = heard;
        server
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads of requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // It looks at that when the next connection comes.
        drop(TcpStream::connect(self.at));
    }
}

/// Reads a request with its body; `None`: there is no more.
fn read_request(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let head = read_head(stream, rest)?;
    if head.to_lowercase().contains("expect: 100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
    }
    let body = read_body(stream, rest, &head)?;
    Some((head, body))
}

/// Reads a head; what was read beyond it is left in `rest`.
pub(crate) fn read_head(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            let after = rest.split_off(end + 4);
            return Some(String::from_utf8_lossy(&std::mem::replace(rest, after)).into_owned());
        }
        more(stream, rest)?;
    }
}

/// Reads the body that belongs to a head; one without length goes to the end.
pub(crate) fn read_body(stream: &mut impl Read, rest: &mut Vec<u8>, head: &str) -> Option<Vec<u8>> {
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).next()
    };
    let request = !head.starts_with("HTTP/");
    if let Some(length) = field("content-length") {
        let length: usize = length.parse().unwrap();
        while rest.len() < length {
            more(stream, rest)?;
        }
        let after = rest.split_off(length);
        return Some(std::mem::replace(rest, after));
    }
    if field("transfer-encoding").is_some() {
        return read_chunks(stream, rest);
    }
    if !request && field("upgrade").is_none() {
        while more(stream, rest).is_some() {}
        return Some(std::mem::take(rest));
    }
    Some(Vec::new())
}

fn read_chunks(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (mut chunks, mut body) = (Chunks::default(), Vec::new());
    loop {
        while !rest.is_empty() && !chunks.done() {
            match chunks.step(rest).ok()? {
                Piece::Data(count) => body.extend(rest.drain(..count)),
                Piece::Framing(count) | Piece::Trailer(count) => drop(rest.drain(..count)),
                Piece::End => {}
            }
        }
        if chunks.done() {
            return Some(body);
        }
        more(stream, rest)?;
    }
}

fn more(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 << 10];
    let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
    rest.extend_from_slice(&piece[..count]);
    Some(())
}

/// A client's connection.
pub(crate) struct Client {
    pub stream: TcpStream,
    rest: Vec<u8>,
}

impl Client {
    pub(crate) fn to(at: SocketAddr) -> Client {
        Client::of(TcpStream::connect(at).unwrap())
    }

    pub(crate) fn of(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { stream, rest: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// The next answer: its head, and its body.
    pub(crate) fn hear(&mut self) -> Option<(String, String)> {
        let head = self.hear_head()?;
        let body = read_body(&mut self.stream, &mut self.rest, &head)?;
        Some((head, String::from_utf8_lossy(&body).into_owned()))
    }

    /// The next head alone.
    pub(crate) fn hear_head(&mut self) -> Option<String> {
        read_head(&mut self.stream, &mut self.rest)
    }

    /// Asks for a path and hears the answer.
    pub(crate) fn get(&mut self, path: &str) -> Option<(String, String)> {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: web.example\r\n\r\n"));
        self.hear()
    }

    /// Everything until the end.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.rest);
        // A reset is an end, too.
        let _ = self.stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The status of an answer.
pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}
