//! Clients that behave well: each kind of request again and again, beside an attack or not.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::ADMIN_TOKEN;
use fairlead_testkit::https::Client;
use fairlead_testkit::https::connection::Connection;
use fairlead_zone::message::{self, Edns, Message};
use serde_json::json;

use crate::lab::Lab;

/// Time that an answer may take on a machine with other work to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Address and port of cluster DNS.
pub(crate) const DNS: &str = "10.96.0.10:53";

/// One kind of request: its name, where its client is, and the request with this number.
pub(crate) struct Kind<'a> {
    pub(crate) name: &'static str,
    pub(crate) at: &'a Namespace,
    pub(crate) request: Box<dyn FnMut(usize) -> io::Result<()> + Send + 'a>,
}

/// What became of all requests of one kind.
pub(crate) struct Outcome {
    name: &'static str,
    times: Vec<Duration>,
    failures: Vec<String>,
}

/// Makes `count` requests of each kind, all kinds side by side. `meanwhile` is called again and again
/// until the last is answered.
pub(crate) fn ask(kinds: Vec<Kind<'_>>, count: usize, mut meanwhile: impl FnMut()) -> Vec<Outcome> {
    thread::scope(|scope| {
        let tasks: Vec<_> = kinds.into_iter().map(|kind| scope.spawn(move || ask_one(kind, count))).collect();
        while !tasks.iter().all(|task| task.is_finished()) {
            meanwhile();
            thread::sleep(Duration::from_millis(20));
        }
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    })
}

fn ask_one(mut kind: Kind<'_>, count: usize) -> Outcome {
    kind.at.enter().unwrap();
    let (mut times, mut failures) = (Vec::new(), Vec::new());
    for number in 0..count {
        let began = Instant::now();
        match (kind.request)(number) {
            Ok(()) => times.push(began.elapsed()),
            Err(error) => failures.push(format!("request {number} after {:?}: {error}", began.elapsed())),
        }
    }
    times.sort_unstable();
    Outcome { name: kind.name, times, failures }
}

/// Fails unless every request was answered, and prints how long they took.
#[allow(clippy::print_stdout, reason = "the figures are worth knowing, and prove nothing on a busy machine")]
pub(crate) fn assert_answered(what: &str, outcomes: &[Outcome], log: impl Fn() -> String) {
    for outcome in outcomes {
        let at = |part: usize| outcome.times.get(outcome.times.len() * part / 100).copied().unwrap_or_default();
        let (count, p50, p99) = (outcome.times.len(), at(50), at(99));
        println!("{what}: {}: {count} answered, p50 {p50:.1?}, p99 {p99:.1?}", outcome.name);
        let some: Vec<&String> = outcome.failures.iter().take(5).collect();
        assert!(some.is_empty(), "{what}: {}: {} failed: {some:?}\n{}", outcome.name, outcome.failures.len(), log());
    }
}

/// Requests to the API: reads and writes of an administrator, three of four on a kept connection.
pub(crate) fn api(lab: &Lab, at: SocketAddr) -> Box<dyn FnMut(usize) -> io::Result<()> + Send> {
    let authority = fs::read(lab.path("data/pki/ca.crt")).unwrap();
    let client = Client::new(at, &authority, ADMIN_TOKEN);
    let mut kept = None;
    Box::new(move |number| {
        let ask = |connection: &mut Connection| -> io::Result<()> {
            if number % 2 == 0 {
                let answer = connection.send("GET", "/api/v1/services?limit=5", "application/json", b"")?;
                return expect(answer.status, 200);
            }
            let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
            let object = json!({"metadata": {"generateName": "polite-"}}).to_string();
            expect(connection.send("POST", path, "application/json", object.as_bytes())?.status, 201)
        };
        keeping(&mut kept, number, || client.connect(PATIENCE), ask)
    })
}

/// Requests to a load balancer that speaks HTTP, three of four on a kept connection.
pub(crate) fn http(at: SocketAddr) -> Box<dyn FnMut(usize) -> io::Result<()> + Send> {
    let mut kept = None;
    let ask = |stream: &mut TcpStream| -> io::Result<()> {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n")?;
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !answer.ends_with(b"\r\n\r\nok") {
            let length = stream.read(&mut part)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            answer.extend_from_slice(&part[..length]);
            if !answer.starts_with(b"HTTP/1.1 200") {
                return Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
            }
        }
        Ok(())
    };
    Box::new(move |number| keeping(&mut kept, number, || connect(at), ask))
}

/// Asks on the connection that was kept, or on a new one, and keeps it but for every fourth request. A connection that was closed
/// between two requests is replaced, as HTTP clients do.
fn keeping<C>(
    kept: &mut Option<C>,
    number: usize,
    fresh: impl Fn() -> io::Result<C>,
    ask: impl Fn(&mut C) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(mut connection) = kept.take() {
        match ask(&mut connection) {
            Ok(()) => {
                *kept = (number % 4 != 3).then_some(connection);
                return Ok(());
            }
            // An answer, but a bad one.
            Err(error) if error.kind() == io::ErrorKind::Other => return Err(error),
            Err(_) => {}
        }
    }
    let mut connection = fresh()?;
    ask(&mut connection)?;
    *kept = Some(connection);
    Ok(())
}

/// Requests to a load balancer with TLS, each on its own connection.
pub(crate) fn https(at: SocketAddr, certificate: &str) -> Box<dyn FnMut(usize) -> io::Result<()> + Send> {
    let client = Client::new(at, certificate.as_bytes(), "");
    Box::new(move |_| {
        let answer = client.connect(PATIENCE)?.send("GET", "/", "text/plain", b"")?;
        expect(answer.status, 200)
    })
}

/// Questions by UDP for names of which `name` gives one for each number; asked up to four times, as resolvers do.
pub(crate) fn dns(name: impl Fn(usize) -> String + Send + 'static) -> Box<dyn FnMut(usize) -> io::Result<()> + Send> {
    Box::new(move |number| {
        let name = name(number);
        let question = message::query(7, &name.parse().unwrap(), 1, Some(Edns::default()));
        let mut last = io::Error::other("not asked");
        for _ in 0..4 {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(DNS)?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.send(&question)?;
            let mut buffer = [0; 4096];
            match socket.recv(&mut buffer) {
                Ok(length) => return expect_address(&buffer[..length], &name),
                Err(error) => last = error,
            }
        }
        Err(last)
    })
}

/// Questions by TCP for one name, each on its own connection.
pub(crate) fn dns_tcp(name: &'static str) -> Box<dyn FnMut(usize) -> io::Result<()> + Send> {
    Box::new(move |_| {
        let mut stream = connect(DNS.parse().unwrap())?;
        let question = message::query(7, &name.parse().unwrap(), 1, None);
        stream.write_all(&[&(question.len() as u16).to_be_bytes(), question.as_slice()].concat())?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer)?;
        expect_address(&answer, name)
    })
}

fn expect(status: u16, expected: u16) -> io::Result<()> {
    if status == expected { Ok(()) } else { Err(io::Error::other(format!("status {status}"))) }
}

fn expect_address(bytes: &[u8], name: &str) -> io::Result<()> {
    let message = Message::parse(bytes).map_err(|error| io::Error::other(format!("{name}: {error:?}")))?;
    let good = message.rcode.0 == 0 && message.answer.iter().any(|record| record.rtype == 1);
    if good { Ok(()) } else { Err(io::Error::other(format!("{name}: {:?}", message.rcode))) }
}

pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A thread that runs in a namespace until this value goes.
pub(crate) struct Busy<'scope> {
    stop: &'scope AtomicBool,
}

impl<'scope> Busy<'scope> {
    /// Calls `work` again and again in a namespace.
    pub(crate) fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        stop: &'scope AtomicBool,
        at: &'env Namespace,
        mut work: impl FnMut() + Send + 'scope,
    ) -> Busy<'scope> {
        scope.spawn(move || {
            at.enter().unwrap();
            while !stop.load(Ordering::SeqCst) {
                work();
            }
        });
        Busy { stop }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}
