//! What does the flat layout of `docs/nftables.md` cost, and does `nft` print it? Loads each form of it in network
//! namespaces of its own and measures: `cargo run --release -p fairlead-kernel --example flat [connections [packets]]`.
#![allow(clippy::print_stdout, reason = "the numbers are what it is for")]

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::*;

const ENDPOINTS: u32 = 10;
const ENDPOINT_RANGE: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
const CHANGES: u32 = 500;

/// How the first packet of a connection gets from its service to the chain that balances over as many endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The service leads to a verdict.
    Verdict,
    /// The service leads to a class, the class to a verdict, from register to register.
    Register,
    /// The same, with the class passing through the mark, which is put back within the rule.
    Mark,
}

fn main() -> Outcome<()> {
    let connections = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    if std::env::args().nth(2).is_some() {
        return packets(connections);
    }
    for form in [Form::Verdict, Form::Register, Form::Mark] {
        println!("{form:?}: nft list ruleset {}", in_own_namespace(|| print(form))??);
    }
    println!("\nform      services counters   load ms  replace endpoint us  add service us      scale us (p50/p99)");
    for form in [Form::Verdict, Form::Register, Form::Mark] {
        for (services, counters) in [(1_000, false), (10_000, false), (40_000, false), (40_000, true)] {
            in_own_namespace(|| changes(form, services, counters))??;
        }
    }
    println!("\nCPU of one new connection, us");
    packets(connections)
}

fn in_own_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, fairlead_kernel::Error> {
    Namespace::unnamed()?.run(work)
}

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn table() -> Table {
    Table::new(Family::Ip, "flat")
}

fn vip(service: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 96, 0, 0).to_bits() + service)
}

fn service_key(service: u32) -> Key {
    Key::new().ipv4(vip(service)).proto(6).port(80)
}

fn endpoint(number: u32) -> Key {
    Key::new().ipv4(Ipv4Addr::from_bits(ENDPOINT_RANGE.to_bits() + number)).port(8080)
}

fn service_element(form: Form, service: u32, count: u32) -> Element {
    match form {
        Form::Verdict => Element::verdict(service_key(service), Verdict::Goto(format!("lb{count}"))),
        _ => Element::data(service_key(service), Key::new().number(count)),
    }
}

fn endpoint_element(service: u32, index: u32, number: u32) -> Element {
    Element::data(service_key(service).number(index), endpoint(number))
}

fn load_service() -> Vec<Expr> {
    vec![
        Expr::network(16, 4, Reg(0)),
        Expr::Meta { key: MetaKey::L4proto, dreg: Reg(1) },
        Expr::transport(2, 2, Reg(2)),
    ]
}

fn dispatch(form: Form) -> Vec<Expr> {
    let mut rule = load_service();
    match form {
        Form::Verdict => rule.push(Expr::verdict_map("services", Reg(0))),
        Form::Register => {
            rule.extend([Expr::map("services", Reg(0), Reg(0)), Expr::verdict_map("classes", Reg(0))]);
        }
        Form::Mark => {
            rule.insert(0, Expr::Meta { key: MetaKey::Mark, dreg: Reg(8) });
            rule.extend([
                Expr::map("services", Reg(0), Reg(0)),
                Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(0) },
                Expr::Meta { key: MetaKey::Mark, dreg: Reg(4) },
                Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(8) },
                Expr::verdict_map("classes", Reg(4)),
            ]);
        }
    }
    rule
}

fn balance(count: u32) -> Rule {
    let mut rule = load_service();
    rule.extend([
        Expr::Numgen { kind: Numgen::Random, modulus: count, offset: 0, dreg: Reg(3) },
        Expr::map("endpoints", Reg(0), Reg(0)),
        Expr::Nat(Nat::to(NatKind::Destination, Family::Ip, Reg(0), Some(Reg(1)))),
    ]);
    Rule::new(format!("lb{count}"), rule)
}

fn frame(form: Form, services: u32, counters: bool) -> Batch {
    let table = table();
    let key = [DataType::Ipv4Addr, DataType::InetProto, DataType::InetService];
    let index = [&key[..], &[DataType::Mark]].concat();
    let counting = |set: Set| if counters { set.counting() } else { set };
    let mut batch = Batch::new();
    batch.add_table(&table);
    let map = if form == Form::Verdict {
        Set::verdict_map("services", key)
    } else {
        Set::map("services", key, [DataType::Mark])
    };
    batch.add_set(&table, &counting(map.size(services * 2)));
    let endpoints = Set::map("endpoints", index, [DataType::Ipv4Addr, DataType::InetService]);
    batch.add_set(&table, &counting(endpoints.size(services * ENDPOINTS * 2)));
    batch.add_set(&table, &Set::verdict_map("classes", [DataType::Mark]));
    for count in [ENDPOINTS - 1, ENDPOINTS] {
        let name = format!("lb{count}");
        batch.add_chain(&table, &Chain::regular(&name));
        batch.add_rule(&table, &balance(count));
        batch.add_elements(&table, "classes", &[Element::verdict(Key::new().number(count), Verdict::Goto(name))]);
    }
    for (chain, hook) in [("pre", Hook::Prerouting), ("out", Hook::Output)] {
        batch.add_chain(&table, &Chain::nat(chain, hook, -100));
        batch.add_rule(&table, &Rule::new(chain, dispatch(form)));
    }
    batch
}

fn full(form: Form, services: u32, counters: bool) -> Batch {
    let mut batch = frame(form, services, counters);
    let all: Vec<Element> = (0..services).map(|service| service_element(form, service, ENDPOINTS)).collect();
    batch.add_elements(&table(), "services", &all);
    let number = |service, index| service * ENDPOINTS + index;
    let all: Vec<Element> = (0..services)
        .flat_map(|service| (0..ENDPOINTS).map(move |index| endpoint_element(service, index, number(service, index))))
        .collect();
    batch.add_elements(&table(), "endpoints", &all);
    batch
}

/// Whether `nft` prints the form, and how.
fn print(form: Form) -> Outcome<String> {
    Connection::open()?.commit(full(form, 2, true), None)?;
    let output = Command::new("nft").args(["list", "ruleset"]).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rule = text.lines().find(|line| line.contains("vmap")).unwrap_or_default().trim().to_owned();
    Ok(if output.status.success() { format!("prints: {rule}") } else { "aborts".to_owned() })
}

fn changes(form: Form, services: u32, counters: bool) -> Outcome<()> {
    let mut nft = Connection::open()?;
    let start = Instant::now();
    nft.commit(full(form, services, counters), None)?;
    let loaded = start.elapsed();
    let table = table();
    let replace = measure(&mut nft, |batch, turn| {
        let service = turn * 7919 % services;
        batch.delete_elements(&table, "endpoints", &[endpoint_element(service, 3, 0)]);
        batch.add_elements(&table, "endpoints", &[endpoint_element(service, 3, 5_000_000 + turn)]);
    })?;
    let add = measure(&mut nft, |batch, turn| {
        let service = services + turn;
        let endpoints: Vec<Element> = (0..ENDPOINTS).map(|index| endpoint_element(service, index, index)).collect();
        batch.add_elements(&table, "endpoints", &endpoints);
        batch.add_elements(&table, "services", &[service_element(form, service, ENDPOINTS)]);
    })?;
    let scale = measure(&mut nft, |batch, turn| {
        let service = (turn / 2) * 104_729 % services;
        let (old, new) = if turn % 2 == 0 { (ENDPOINTS, ENDPOINTS - 1) } else { (ENDPOINTS - 1, ENDPOINTS) };
        batch.delete_elements(&table, "services", &[service_element(form, service, old)]);
        batch.add_elements(&table, "services", &[service_element(form, service, new)]);
        let last = [endpoint_element(service, ENDPOINTS - 1, turn)];
        if new < old {
            batch.delete_elements(&table, "endpoints", &last);
        } else {
            batch.add_elements(&table, "endpoints", &last);
        }
    })?;
    println!(
        "{:9} {services:8} {counters:8} {:9.1} {replace:>20} {add:>16} {scale:>20}",
        format!("{form:?}"),
        loaded.as_secs_f64() * 1e3
    );
    Ok(())
}

/// The median and the 99th percentile of changes, in microseconds.
fn measure(nft: &mut Connection, mut change: impl FnMut(&mut Batch, u32)) -> Result<String, fairlead_kernel::Error> {
    let mut times = Vec::new();
    for turn in 0..CHANGES {
        let start = Instant::now();
        let mut batch = Batch::new();
        change(&mut batch, turn);
        nft.commit(batch, None)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(format!("{:.1}/{:.1}", times[times.len() / 2], times[times.len() * 99 / 100]))
}

/// What new connections cost, each to another service, without rules, with one bare rule and with each form. Every
/// measurement has a namespace of its own, for connections that are over would slow down the next.
fn packets(connections: u32) -> Outcome<()> {
    let direct = |turn: u32| SocketAddrV4::new(Ipv4Addr::from_bits(ENDPOINT_RANGE.to_bits() + turn * 10), 8080);
    // Connection tracking alone, which any rule of NAT brings along.
    let mut batch = Batch::new();
    batch.add_table(&table());
    batch.add_chain(&table(), &Chain::nat("out", Hook::Output, -100));
    report("connection tracking only", connections, batch, &direct)?;
    let mut batch = Batch::new();
    batch.add_table(&table());
    batch.add_chain(&table(), &Chain::nat("out", Hook::Output, -100));
    batch.add_rule(&table(), &bare());
    report("one bare DNAT rule", connections, batch, &|_| SocketAddrV4::new(vip(0), 80))?;
    for (services, counters) in [(1_000, false), (40_000, false), (40_000, true)] {
        for form in [Form::Verdict, Form::Register, Form::Mark] {
            let name = format!("{form:?}, {services} services{}", if counters { ", counters" } else { "" });
            let target = |turn| SocketAddrV4::new(vip(turn * 7919 % services), 80);
            report(&name, connections, full(form, services, counters), &target)?;
        }
    }
    Ok(())
}

fn report(name: &str, connections: u32, rules: Batch, target: &(dyn Fn(u32) -> SocketAddrV4 + Sync)) -> Outcome<()> {
    let mut costs = in_own_namespace(|| -> Outcome<Vec<f64>> {
        let server = prepare()?;
        Connection::open()?.commit(rules, None)?;
        (0..5).map(|_| cost(connections, &server, target)).collect()
    })??;
    costs.sort_by(f64::total_cmp);
    println!("{name:36} {:6.2} (best {:.2})", costs[costs.len() / 2], costs[0]);
    Ok(std::io::stdout().flush()?)
}

/// A loopback that has every endpoint, and a server on all of them.
fn prepare() -> Outcome<TcpListener> {
    for arguments in [
        "link set lo up",
        "route add local 10.128.0.0/9 dev lo",
        "route add 10.96.0.0/12 dev lo",
        "addr add 192.168.0.1/32 dev lo",
    ] {
        Command::new("ip").args(arguments.split(' ')).status()?;
    }
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65000")?;
    // Sockets that wait would hold on to ports.
    fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0")?;
    Ok(TcpListener::bind("0.0.0.0:8080")?)
}

fn bare() -> Rule {
    let mut rule = load_service();
    rule.extend([
        Expr::equal(Reg(0), service_key(0).into_bytes()),
        Expr::Immediate { dreg: Reg(0), data: vec![10, 128, 0, 1] },
        Expr::Immediate { dreg: Reg(1), data: vec![0x1f, 0x90] },
        Expr::Nat(Nat::to(NatKind::Destination, Family::Ip, Reg(0), Some(Reg(1)))),
    ]);
    Rule::new("out", rule)
}

fn cost(connections: u32, server: &TcpListener, target: &dyn Fn(u32) -> SocketAddrV4) -> Outcome<f64> {
    let before = cpu()?;
    for turn in 0..connections {
        let client = TcpStream::connect_timeout(&target(turn).into(), Duration::from_secs(3))?;
        // The client closes first.
        let accepted = server.accept()?;
        drop(client);
        drop(accepted);
    }
    Ok((cpu()? - before) / f64::from(connections))
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
