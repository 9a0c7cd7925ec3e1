//! How soon a new Service has its name.

use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fairlead_bench_kit::http::Client;
use fairlead_bench_kit::server::Server;
use fairlead_zone::Name;
use fairlead_zone::message::{Message, query};

use crate::{measure, records, subjects};

/// Nobody waits for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Times from the API's answer to the name's.
pub(crate) struct Times(Vec<Duration>);

/// Creates one after the other, in a cluster that has so many.
pub(crate) fn measure(fairlead: &Path, services: usize, creates: usize) -> anyhow::Result<Times> {
    let server = Server::fairlead(fairlead)?;
    subjects::fill(&server.target, services)?;
    let folder = tempfile::tempdir()?;
    let mut subject = subjects::fairlead_of(fairlead, &server.target, folder.path())?;
    measure::wait(&mut subject, &records::questions(services)?, services)?;
    let mut client = Client::connect(&server.target)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut times = Vec::new();
    for service in services..services + creates {
        subjects::create(&mut client, service)?;
        let since = Instant::now();
        while !known(&socket, subject.at, service)? {
            ensure!(since.elapsed() < PATIENCE, "service-{service} has no name");
            thread::sleep(Duration::from_micros(100));
        }
        times.push(since.elapsed());
        thread::sleep(Duration::from_millis(2));
    }
    times.sort_unstable();
    Ok(Times(times))
}

/// Whether the name leads to the address.
fn known(socket: &UdpSocket, at: SocketAddr, service: usize) -> anyhow::Result<bool> {
    let text = records::name(service);
    let name: Name = text.parse().map_err(|error| anyhow::anyhow!("{text}: {error:?}"))?;
    let id = fastrand::u16(..);
    socket.send_to(&query(id, &name, 1, None), at)?;
    let mut buffer = [0; 2048];
    let Ok(length) = socket.recv(&mut buffer) else { return Ok(false) };
    let Ok(message) = Message::parse(&buffer[..length]) else { return Ok(false) };
    let right = |rdata: &[u8]| *rdata == records::address(service).octets();
    Ok(message.id == id && message.answer.iter().any(|record| right(&record.rdata)))
}

impl Times {
    /// The time in milliseconds within which a part of all names had their addresses.
    pub(crate) fn at(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1) as f64;
        self.0.get((last * part).round() as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms", self.at(0.5), self.at(0.99), self.at(1.0))
    }
}
