//! What does it cost to count the packets and bytes of Services? Each way to do it in a network namespace of its own: CPU
//! microseconds of a new connection, and of a byte sent and one sent back, over loopback, through one translated address.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairlead_kernel::conntrack::Ended;
use fairlead_kernel::netns::Namespace;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CONNECTIONS: u32 = 20_000;
const ROUNDS: u32 = 100_000;
/// Endpoints that are counted, beside the one that is used.
const OTHERS: u32 = 10_000;

/// A way to count.
struct Way {
    name: &'static str,
    /// What `nft` adds.
    rules: String,
    accounting: bool,
    listens: bool,
}

fn main() -> Outcome<()> {
    println!("{:50} {:>16} {:>16}", "", "new connection", "there and back");
    for way in ways() {
        let (connection, round) = Namespace::unnamed()?.run(|| measure(&way))??;
        println!("{:50} {connection:>16} {round:>16}", way.name);
    }
    Ok(())
}

fn ways() -> Vec<Way> {
    let plain = "add rule ip t out ip daddr 10.96.0.1 tcp dport 80 dnat to 10.128.0.1:8080".to_owned();
    let map = |counter: &str| {
        let others: Vec<String> =
            (2..OTHERS).map(|i| format!("10.96.{0}.{1} : 10.128.{0}.{1} . 8080", i / 250, i % 250)).collect();
        format!(
            "add map ip t eps {{ type ipv4_addr : ipv4_addr . inet_service; {counter} }}\n\
             add element ip t eps {{ 10.96.0.1 : 10.128.0.1 . 8080, {} }}\n\
             add rule ip t out ip daddr 10.96.0.1 tcp dport 80 dnat ip to ip daddr map @eps",
            others.join(", ")
        )
    };
    let each_packet = {
        let others: Vec<String> = (2..OTHERS).map(|i| format!("10.128.{}.{} . tcp . 8080", i / 250, i % 250)).collect();
        let set = |name: &str| {
            format!(
                "add set ip t {name} {{ type ipv4_addr . inet_proto . inet_service; counter; }}\n\
                 add element ip t {name} {{ 10.128.0.1 . tcp . 8080, {} }}\n",
                others.join(", ")
            )
        };
        format!(
            "{}\n{}{}add chain ip t post {{ type filter hook postrouting priority 300; }}\n\
             add rule ip t post ct status dnat ct direction original ip daddr . meta l4proto . th dport @to\n\
             add rule ip t post ct status dnat ct direction reply ip saddr . meta l4proto . th sport @from",
            map("counter;"),
            set("to"),
            set("from")
        )
    };
    let way = |name, rules, accounting, listens| Way { name, rules, accounting, listens };
    vec![
        way("connection tracking alone", String::new(), false, false),
        way("one bare DNAT rule", plain.clone(), false, false),
        way("a map without counters", map(""), false, false),
        way("a map with a counter in each element", map("counter;"), false, false),
        way("and counters for every packet", each_packet, false, false),
        way("a map with counters, connections count", map("counter;"), true, false),
        way("and somebody listens to their end", map("counter;"), true, true),
    ]
}

fn measure(way: &Way) -> Outcome<(String, String)> {
    prepare(way)?;
    let server = TcpListener::bind("10.128.0.1:8080")?;
    let target = if way.rules.is_empty() { "10.128.0.1:8080" } else { "10.96.0.1:80" };
    let (stop, ended) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut events = way.listens.then(Ended::open).transpose()?;
    thread::scope(|scope| -> Outcome<(String, String)> {
        if let Some(events) = &mut events {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = events.entries(Duration::from_millis(50), |entry| {
                        ended.fetch_add(entry.sent.packets.min(1), Ordering::Relaxed);
                    });
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
        let connections = repeat(CONNECTIONS, || connect(&server, target));
        let rounds = round_trips(&server, target);
        stop.store(true, Ordering::Relaxed);
        Ok((connections?, rounds?))
    })
}

fn prepare(way: &Way) -> Outcome<()> {
    for arguments in [
        "link set lo up",
        "addr add 10.128.0.1/32 dev lo",
        "addr add 192.168.0.1/32 dev lo",
        "route add 10.96.0.0/12 dev lo",
    ] {
        Command::new("ip").args(arguments.split(' ')).status()?;
    }
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65000")?;
    fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0")?;
    // Connections that are over go at once, so that who listens to their end has as much to do.
    for state in ["close", "time_wait"] {
        fs::write(format!("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_{state}"), "1")?;
    }
    fs::write("/proc/sys/net/netfilter/nf_conntrack_acct", if way.accounting { "1" } else { "0" })?;
    let rules =
        format!("add table ip t\nadd chain ip t out {{ type nat hook output priority -100; }}\n{}\n", way.rules);
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
    nft.stdin.take().ok_or("no way to write to nft")?.write_all(rules.as_bytes())?;
    if nft.wait()?.success() { Ok(()) } else { Err(format!("nft refuses: {}", way.name).into()) }
}

fn connect(server: &TcpListener, target: &str) -> Outcome<()> {
    let client = TcpStream::connect(target)?;
    let accepted = server.accept()?;
    drop(client);
    drop(accepted);
    Ok(())
}

fn round_trips(server: &TcpListener, target: &str) -> Outcome<String> {
    let mut client = TcpStream::connect(target)?;
    let mut accepted = server.accept()?.0;
    client.set_nodelay(true)?;
    accepted.set_nodelay(true)?;
    repeat(ROUNDS, || {
        let mut byte = [0; 1];
        client.write_all(&byte)?;
        accepted.read_exact(&mut byte)?;
        accepted.write_all(&byte)?;
        Ok(client.read_exact(&mut byte)?)
    })
}

/// The best and the median of five, in CPU microseconds a time.
fn repeat(times: u32, mut work: impl FnMut() -> Outcome<()>) -> Outcome<String> {
    let mut costs = Vec::new();
    for _ in 0..5 {
        let before = cpu()?;
        for _ in 0..times {
            work()?;
        }
        costs.push((cpu()? - before) / f64::from(times));
    }
    costs.sort_by(f64::total_cmp);
    Ok(format!("{:.2} ({:.2})", costs[0], costs[2]))
}

/// The CPU this process used, in microseconds.
fn cpu() -> Outcome<f64> {
    let mut sum = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or("0").parse::<f64>()? / 1e3;
    }
    Ok(sum)
}
