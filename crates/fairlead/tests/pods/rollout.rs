//! All Pods of a Service are replaced, over and over, while requests come: none of them fails, and no Pod has to wait a while
//! before it ends.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::full;

use super::machine::{Machine, machine};

const SERVICE: &str = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "clusterIP": "10.96.0.80", "ports": [{"port": 80, "targetPort": 8080}]}}"#;
const ADDRESS: &str = "10.96.0.80:80";
/// Pods of the Service.
const PODS: usize = 3;
/// Clients with a new connection for each request, and clients that keep theirs.
const CLIENTS: (usize, usize) = (10, 10);
/// How often each asks: 200 requests a second in all.
const PACE: Duration = Duration::from_millis(100);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts a Pod.
fn serve(machine: &Machine, round: usize, number: usize) {
    let name = format!("web-{round}-{number}");
    let script = machine.path("server.py").display().to_string();
    let line = ["run", "-d", "--name", &name, "--labels", "app=web", "--port", "8080", "--ready", "http:/"];
    machine.fairlead(&[line.as_slice(), &["--", "python3", &script, "8080"]].concat()).fine();
    machine.kubectl(&["wait", "--for=condition=Ready", "--timeout=30s", &format!("pod/{name}")]).fine();
}

/// One request and its answer; whether the connection stays.
fn ask(stream: &mut TcpStream, keep: bool) -> io::Result<bool> {
    let close = if keep { "" } else { "Connection: close\r\n" };
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: web\r\n{close}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 1024];
    while !answer.ends_with(b"\n") || !answer.windows(4).any(|end| end == b"\r\n\r\n") || answer.ends_with(b"\r\n\r\n")
    {
        match stream.read(&mut part)? {
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("after {} bytes", answer.len()))),
            read => answer.extend_from_slice(&part[..read]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    if !text.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(text.into_owned()));
    }
    Ok(keep && !text.contains("Connection: close"))
}

fn connect() -> io::Result<TcpStream> {
    let address: SocketAddr = ADDRESS.parse().expect("an address");
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Asks until told to stop. What went wrong.
fn client(keep: bool, stop: &AtomicBool, asked: &AtomicUsize) -> Vec<String> {
    let mut kept: Option<TcpStream> = None;
    let mut wrong = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let stream = kept.take().map_or_else(connect, Ok);
        let answered = stream.and_then(|mut stream| ask(&mut stream, keep).map(|stays| stays.then_some(stream)));
        asked.fetch_add(1, Ordering::Relaxed);
        match answered {
            Ok(stream) => kept = stream,
            Err(error) => wrong.push(format!("keep {keep}, after {:?}: {error}", began.elapsed())),
        }
        thread::sleep(PACE.saturating_sub(began.elapsed()));
    }
    wrong
}

#[test]
#[allow(clippy::print_stdout, reason = "how many requests there were is worth reading")]
fn replacing_all_pods_fails_no_request() {
    let Some(machine) = machine("replacing_all_pods_fails_no_request", &[]) else { return };
    let script = machine.path("server.py");
    fs::write(&script, include_str!("server.py")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    machine.wait_ready();
    machine.apply(SERVICE, &["apply", "-f", "-"]).fine();
    (0..PODS).for_each(|number| serve(&machine, 0, number));
    let reachable = || machine.namespace.run(|| connect().is_ok()).unwrap();
    machine.wait("the Service answers", reachable);

    let rounds = if full() { 20 } else { 3 };
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wrong: Vec<String> = thread::scope(|scope| {
        let (machine, stop, asked) = (&machine, &stop, &asked);
        let start = |number| {
            scope.spawn(move || {
                machine.namespace.enter().unwrap();
                client(number >= CLIENTS.0, stop, asked)
            })
        };
        let clients: Vec<_> = (0..CLIENTS.0 + CLIENTS.1).map(start).collect();
        for round in 1..=rounds {
            (0..PODS).for_each(|number| serve(machine, round, number));
            let old: Vec<String> = (0..PODS).map(|number| format!("web-{}-{number}", round - 1)).collect();
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            machine.fairlead(&[&["stop"], old.as_slice()].concat()).fine();
        }
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let asked = asked.into_inner();
    println!("{asked} requests while {rounds} x {PODS} Pods were replaced, {} failed", wrong.len());
    assert!(asked > 100, "too few requests to say anything: {asked}");
    assert_eq!(wrong, Vec::<String>::new(), "of {asked}\n{}", machine.log());
}
