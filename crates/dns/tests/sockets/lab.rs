//! A network of one's own, a server in it, somebody to forward to, and a client.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairlead_cluster::Cluster;
use fairlead_dns::{Corefile, Error, Settings};
use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_runtime::Account;
use fairlead_testkit::need;
use fairlead_zone::message::{self, Builder, Edns, Head, Message, Query, Reading, Record};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Where the server listens.
pub(crate) const SERVER: &str = "127.0.0.1:1053";

/// Runs a test in a network of its own, with a run time whose threads are in it.
pub(crate) fn in_network(test: &str, work: impl FnOnce() + Send) {
    if !need(test, "root") {
        return;
    }
    let namespace = Namespace::unnamed().expect("a network");
    let inside = || {
        let mut links = Links::open().expect("netlink");
        let lo = links.index("lo").expect("a loopback interface");
        links.set_up(lo).expect("it comes up");
        work();
    };
    namespace.run(inside).expect("the network can be entered");
}

/// A server that runs.
pub(crate) struct Server {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    running: Option<tokio::task::JoinHandle<Result<(), Error>>>,
    corefile: PathBuf,
    _dir: tempfile::TempDir,
}

impl Server {
    /// Starts one with a Corefile.
    pub(crate) fn start(text: &str, cluster: Option<Cluster>) -> Server {
        Server::start_within(text, cluster, Account::default())
    }

    /// Starts one with a Corefile, in a process with these limits.
    pub(crate) fn start_within(text: &str, cluster: Option<Cluster>, account: Account) -> Server {
        let dir = tempfile::tempdir().expect("a directory");
        let corefile = dir.path().join("Corefile");
        std::fs::write(&corefile, text).expect("a file");
        let runtime = Runtime::new().expect("threads");
        let stop = CancellationToken::new();
        let listen = vec![IpAddr::from([127, 0, 0, 1])];
        let settings = Settings { listen, sockets: Some(2), account, ..Settings::default() };
        let file = Corefile { path: corefile.clone(), variables: std::collections::BTreeMap::new(), settings };
        let running = runtime.spawn(fairlead_dns::run_file(cluster, file, stop.clone()));
        Server { runtime: Some(runtime), stop, running: Some(running), corefile, _dir: dir }
    }

    /// Starts one, and waits until it listens.
    pub(crate) fn ready(text: &str, cluster: Option<Cluster>) -> Server {
        let server = Server::start(text, cluster);
        until("it listens", || TcpStream::connect(SERVER).is_ok());
        server
    }

    /// Writes another Corefile.
    pub(crate) fn change(&self, text: &str) {
        std::fs::write(&self.corefile, text).expect("a file");
    }

    /// Runs something beside it.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it runs").block_on(work)
    }

    /// Waits for its end, without telling it to.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        let running = self.running.take().expect("it runs");
        let limit = Duration::from_secs(20);
        let ended = self.block_on(async { tokio::time::timeout(limit, running).await });
        ended.expect("it ends").expect("no defect")
    }

    /// Tells it to stop, and waits.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        self.stop.cancel();
        self.end()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never is so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What an upstream answers: records, and whether that is all.
pub(crate) type Answers = dyn Fn(&Query<'_>, bool) -> Option<(Head, Vec<Record>)> + Send + Sync;

/// Somebody to forward to.
#[derive(Clone)]
pub(crate) struct Upstream {
    /// Questions by UDP, and by TCP.
    pub(crate) asked: Arc<[AtomicUsize; 2]>,
    /// When questions came, by UDP.
    pub(crate) names: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    /// Listens at an address. `answers` hears whether it is asked by TCP; `None` is silence.
    pub(crate) fn start(
        at: &str,
        answers: impl Fn(&Query<'_>, bool) -> Option<(Head, Vec<Record>)> + Send + Sync + 'static,
    ) -> Upstream {
        let upstream = Upstream { asked: Arc::default(), names: Arc::default() };
        let answers: Arc<Answers> = Arc::new(answers);
        let udp = UdpSocket::bind(at).expect("an address");
        let tcp = std::net::TcpListener::bind(at).expect("an address");
        let (this, answer) = (upstream.clone(), answers.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, from)) = udp.recv_from(&mut buffer) {
                if let Some(reply) = this.answer(&buffer[..length], false, &*answer) {
                    let _ = udp.send_to(&reply, from);
                }
            }
        });
        let this = upstream.clone();
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                let (this, answers) = (this.clone(), answers.clone());
                std::thread::spawn(move || {
                    while let Some(question) = read_frame(&mut stream) {
                        let Some(reply) = this.answer(&question, true, &*answers) else { continue };
                        if write_frame(&mut stream, &reply).is_none() {
                            return;
                        }
                    }
                });
            }
        });
        upstream
    }

    fn answer(&self, bytes: &[u8], tcp: bool, answers: &Answers) -> Option<Vec<u8>> {
        let Reading::Query(query) = message::read(bytes) else { return None };
        self.asked[usize::from(tcp)].fetch_add(1, Ordering::SeqCst);
        self.names.lock().expect("no test failed").push(query.name().to_string());
        let (head, records) = answers(&query, tcp)?;
        let mut out = Vec::new();
        let mut builder = Builder::new(&query, head, message::MAX_MESSAGE, &mut out);
        records.iter().for_each(|record| builder.answer(record));
        builder.finish();
        Some(out)
    }

    /// How often it was asked by UDP, and by TCP.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.asked[0].load(Ordering::SeqCst), self.asked[1].load(Ordering::SeqCst))
    }
}

/// One address for a name, for ten minutes.
pub(crate) fn one(query: &Query<'_>, last: u8) -> (Head, Vec<Record>) {
    let head = Head { recursion_available: true, ..Head::default() };
    (head, vec![Record::address(query.name(), 600, IpAddr::from([192, 0, 2, last]))])
}

/// Asks by UDP; `None`: no answer came in so long.
pub(crate) fn ask_within(server: &str, name: &str, rtype: u16, limit: Duration) -> Option<Message> {
    let server: SocketAddr = server.parse().expect("an address");
    let any: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).expect("a port");
    socket.connect(server).ok()?;
    socket.set_read_timeout(Some(limit)).expect("a socket");
    let question = message::query(7, &name.parse().expect("a name"), rtype, Some(Edns::default()));
    socket.send(&question).ok()?;
    let mut buffer = [0; 65_536];
    let length = socket.recv(&mut buffer).ok()?;
    let message = Message::parse(&buffer[..length]).expect("a message");
    assert_eq!(message.id, 7);
    Some(message)
}

/// Asks by UDP for addresses of version 4.
#[track_caller]
pub(crate) fn ask(name: &str) -> Message {
    ask_within(SERVER, name, 1, Duration::from_secs(10)).expect("an answer")
}

/// The code and the last bytes of the addresses of an answer.
pub(crate) fn short(message: &Message) -> (u16, Vec<u8>) {
    let last = |record: &Record| record.rdata.last().copied().unwrap_or_default();
    (message.rcode.0, message.answer.iter().filter(|record| record.rtype == 1).map(last).collect())
}

/// Asks by TCP, all at once on one connection.
pub(crate) fn ask_pipelined(names: &[String]) -> Vec<Message> {
    let mut stream = TcpStream::connect(SERVER).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    for (id, name) in names.iter().enumerate() {
        let id = u16::try_from(id).expect("few");
        write_frame(&mut stream, &message::query(id, &name.parse().expect("a name"), 1, None)).expect("it is taken");
    }
    let answer = |_| Message::parse(&read_frame(&mut stream).expect("an answer")).expect("a message");
    names.iter().map(answer).collect()
}

pub(crate) fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn write_frame(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    let length = u16::try_from(bytes.len()).ok()?;
    stream.write_all(&[&length.to_be_bytes(), bytes].concat()).ok()
}
