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
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a Pod.
fn serve(machine: &Machine, round: usize, number: usize) {
    let name = format!("web-{round}-{number}");
    let script = machine.path("server.py").display().to_string();
    let line = ["run", "-d", "--name", &name, "--labels", "app=web", "--port", "8080", "--ready", "http:/"];
    machine.fairlead(&[line.as_slice(), &["--", "python3", &script, "8080"]].concat()).fine();
    machine.kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", &format!("pod/{name}")]).fine();
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

/// A request that failed: when it was sent, and what became of it.
type Failed = (Instant, String);

/// Asks until told to stop. What went wrong.
fn client(keep: bool, stop: &AtomicBool, asked: &AtomicUsize) -> Vec<Failed> {
    let mut kept: Option<TcpStream> = None;
    let mut wrong = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let stream = kept.take().map_or_else(connect, Ok);
        let answered = stream.and_then(|mut stream| ask(&mut stream, keep).map(|stays| stays.then_some(stream)));
        asked.fetch_add(1, Ordering::Relaxed);
        match answered {
            Ok(stream) => kept = stream,
            Err(error) => wrong.push((began, format!("keep {keep}, after {:?}: {error}", began.elapsed()))),
        }
        thread::sleep(PACE.saturating_sub(began.elapsed()));
    }
    wrong
}

/// Does something while clients ask. How many requests there were, and those that failed.
fn under_load(machine: &Machine, work: impl FnOnce()) -> (usize, Vec<Failed>) {
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wrong = thread::scope(|scope| {
        let (stop, asked) = (&stop, &asked);
        let start = |number| {
            scope.spawn(move || {
                machine.namespace.enter().unwrap();
                client(number >= CLIENTS.0, stop, asked)
            })
        };
        let clients: Vec<_> = (0..CLIENTS.0 + CLIENTS.1).map(start).collect();
        work();
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    (asked.into_inner(), wrong)
}

/// A machine with a Service and the program of its Pods.
fn ready(test: &str) -> Option<Machine> {
    let machine = machine(test, &[])?;
    let script = machine.path("server.py");
    fs::write(&script, include_str!("server.py")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    machine.wait_ready();
    machine.apply(SERVICE, &["apply", "-f", "-"]).fine();
    Some(machine)
}

/// A machine with a Service that answers.
fn prepared(test: &str) -> Option<Machine> {
    let machine = ready(test)?;
    (0..PODS).for_each(|number| serve(&machine, 0, number));
    let reachable = || machine.namespace.run(|| connect().is_ok()).unwrap();
    machine.wait("the Service answers", reachable);
    Some(machine)
}

#[test]
#[allow(clippy::print_stdout, reason = "how many requests there were is worth reading")]
fn replacing_all_pods_fails_no_request() {
    let Some(machine) = prepared("replacing_all_pods_fails_no_request") else { return };
    let rounds = if full() { 20 } else { 3 };
    let (asked, wrong) = under_load(&machine, || {
        for round in 1..=rounds {
            (0..PODS).for_each(|number| serve(&machine, round, number));
            let old: Vec<String> = (0..PODS).map(|number| format!("web-{}-{number}", round - 1)).collect();
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            machine.fairlead(&[&["stop"], old.as_slice()].concat()).fine();
        }
    });
    println!("{asked} requests while {rounds} x {PODS} Pods were replaced, {} failed", wrong.len());
    assert!(asked > 100, "too few requests to say anything: {asked}");
    let wrong: Vec<String> = wrong.into_iter().map(|(_, what)| what).collect();
    assert_eq!(wrong, Vec::<String>::new(), "of {asked}\n{}", machine.log());
}

/// The same Pods, from a Deployment.
fn deployment(machine: &Machine, generation: usize) -> String {
    let script = machine.path("server.py").display().to_string();
    format!(
        r#"{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {{"name": "web"}}, "spec": {{
            "replicas": {PODS}, "selector": {{"matchLabels": {{"app": "web"}}}},
            "template": {{"metadata": {{"labels": {{"app": "web"}}}}, "spec": {{"containers": [{{
                "name": "web", "image": "host", "command": ["python3", "{script}", "8080"],
                "env": [{{"name": "GENERATION", "value": "{generation}"}}],
                "ports": [{{"containerPort": 8080}}],
                "readinessProbe": {{"httpGet": {{"port": 8080}}, "periodSeconds": 1, "timeoutSeconds": 10}}}}]}}}}}}}}"#
    )
}

#[test]
#[allow(clippy::print_stdout, reason = "how many requests there were is worth reading")]
fn rolling_out_a_deployment_fails_no_request() {
    let Some(machine) = ready("rolling_out_a_deployment_fails_no_request") else { return };
    let roll_out = |generation| {
        machine.apply(&deployment(&machine, generation), &["apply", "-f", "-"]).fine();
        machine.kubectl(&["rollout", "status", "deployment/web", "--timeout=180s"]).fine();
    };
    roll_out(0);
    let reachable = || machine.namespace.run(|| connect().is_ok()).unwrap();
    machine.wait("the Service answers", reachable);
    let rounds = if full() { 20 } else { 3 };
    let (asked, wrong) = under_load(&machine, || (1..=rounds).for_each(roll_out));
    println!("{asked} requests in {rounds} rollouts of {PODS} Pods, {} failed", wrong.len());
    assert!(asked > 100, "too few requests to say anything: {asked}");
    let wrong: Vec<String> = wrong.into_iter().map(|(_, what)| what).collect();
    assert_eq!(wrong, Vec::<String>::new(), "of {asked}\n{}", machine.log());
}

#[test]
#[allow(clippy::print_stdout, reason = "what a death costs is worth reading")]
fn a_pod_that_is_killed_is_noticed_and_comes_again() {
    let Some(machine) = prepared("a_pod_that_is_killed_is_noticed_and_comes_again") else { return };
    let restarts =
        || machine.kubectl(&["get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[0].restartCount}"]);
    let mut killed = Instant::now();
    let (asked, wrong) = under_load(&machine, || {
        thread::sleep(Duration::from_secs(1));
        killed = Instant::now();
        machine
            .shell(&format!("kill -9 $(pgrep -o -x -f 'python3 {} 8080')", machine.path("server.py").display()))
            .fine();
        machine.wait("it is started again", || restarts().out.contains('1'));
        let ready = ["wait", "--for=condition=Ready", "--timeout=30s", "pod", "-l", "app=web"];
        machine.kubectl(&ready).fine();
        thread::sleep(Duration::from_secs(1));
    });
    let last = wrong.iter().map(|(sent, _)| sent.saturating_duration_since(killed)).max().unwrap_or_default();
    println!("{asked} requests, {} failed; the last of them was sent {last:?} after the kill", wrong.len());
    let before = wrong.iter().filter(|(sent, _)| *sent + PACE < killed).count();
    assert_eq!(before, 0, "requests failed before anything happened: {wrong:?}");
    // Each client has one request at a time: what is noticed late costs more than that.
    assert!(wrong.len() <= 2 * (CLIENTS.0 + CLIENTS.1), "{} of {asked} failed: {wrong:?}", wrong.len());
}
