//! Two machines on one LAN: both answer for addresses, both show certificates, and one takes over from the other.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::process::{Child, Command};

use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_testkit::need;
use serde_json::{Value, json};

use crate::lab::{BACKENDS, CLIENT, Lab, annotated, lab, serve, tool, wire};

const CERTIFICATE: &str = "service.beta.kubernetes.io/aws-load-balancer-ssl-cert";

/// Others may reach the API over the LAN.
const FLAGS: [&str; 8] = [
    "--pool",
    "192.0.2.0/28",
    "--bind-address",
    "0.0.0.0",
    "--advertise-address",
    "192.0.2.100",
    "--tls-san",
    "192.0.2.100",
];

/// A second machine on the LAN of a lab: the client's end of the first becomes a bridge.
fn second(lab: &Lab) -> Namespace {
    for line in [
        "ip link add name lan0 type bridge",
        "ip link set lan0 up",
        "ip address flush dev eth0",
        "ip link set eth0 master lan0",
        "ip address add 192.0.2.200/24 dev lan0",
    ] {
        tool(&lab.client, line);
    }
    let machine = Namespace::unnamed().unwrap();
    machine.run(|| Links::open().unwrap().add_veth("lan", "eth1", Some(lab.client.as_fd()))).unwrap().unwrap();
    tool(&lab.client, "ip link set eth1 master lan0 up");
    for line in [
        "ip link set lo up",
        "ip link set lan up",
        "ip address add 192.0.2.101/24 dev lan",
        "ip route add default via 192.0.2.100",
    ] {
        tool(&machine, line);
    }
    machine
}

/// Makes a certificate and puts it into a Secret.
fn certificate(lab: &Lab, name: &str) {
    let (key, chain) = (lab.path("key.pem"), lab.path("chain.pem"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    command.args(["-subj", "/CN=web.example", "-keyout"]).arg(&key).arg("-out").arg(&chain);
    assert!(command.output().unwrap().status.success());
    let read = |path| fs::read_to_string(path).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": read(chain), "tls.key": read(key)},
    });
    lab.api("POST", "/api/v1/namespaces/default/secrets", &secret);
}

/// The Nodes that answer for load balancers.
fn announcers(lab: &Lab) -> BTreeSet<String> {
    let all: Value = serde_json::from_str(&lab.fairlead(&["lb", "ls", "-o", "json"])).unwrap_or_default();
    let rows = all["balancers"].as_array().cloned().unwrap_or_default();
    let each = rows.iter().flat_map(|row| row["announcers"].as_array().cloned().unwrap_or_default());
    each.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// What is behind TLS at an address.
fn behind(lab: &Lab, ip: &str) -> String {
    let mut command = Command::new("curl");
    command.args(["-sk", "--http0.9", "-m", "2", &format!("https://{ip}/")]);
    let output = lab.client.run(|| command.output()).unwrap().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A machine that has joined. It is ended with this value, as by a crash.
struct Joined(Child);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn join(lab: &Lab, machine: &Namespace) -> Joined {
    let token = lab.fairlead(&["token", "--data-dir", &lab.path("data").display().to_string()]);
    let log = fs::File::create(lab.path("log-there")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead"));
    command.args([
        "join",
        "--hostname-override",
        "there",
        "--server",
        "https://192.0.2.100:6443",
        "--token",
        token.trim(),
    ]);
    command.args(["--healthz-bind-address=", "--metrics-bind-address="]).arg("--data-dir").arg(lab.path("there"));
    command.stdout(log.try_clone().unwrap()).stderr(log);
    Joined(machine.run(|| command.spawn()).unwrap().unwrap())
}

#[test]
fn machines_share_addresses_and_take_over_from_each_other() {
    let test = "machines_share_addresses_and_take_over_from_each_other";
    if !["curl", "openssl"].iter().all(|what| need::need(test, what)) {
        return;
    }
    let Some(lab) = lab(test, &FLAGS) else { return };
    let machine = second(&lab);
    let there = join(&lab, &machine);
    certificate(&lab, "web-tls");
    let addresses: Vec<String> = (1..=6).map(|last| format!("192.0.2.{last}")).collect();
    for ip in &addresses {
        let name = format!("web-{}", ip.rsplit('.').next().unwrap());
        let mut more = annotated(CERTIFICATE, "web-tls");
        more["spec"] = json!({"loadBalancerIP": ip, "ports": [{"port": 443, "targetPort": 8080}]});
        lab.create(&name, &more);
        lab.back(&name, "", &BACKENDS[..1]);
    }
    let both = BTreeSet::from(["here".to_owned(), "there".to_owned()]);
    let said =
        || format!("{}{}", lab.fairlead(&["lb", "ls"]), fs::read_to_string(lab.path("log-there")).unwrap_or_default());
    lab.wait_or(|| format!("both machines answer: {}", said()), || announcers(&lab) == both);
    for ip in &addresses {
        lab.wait("TLS is spoken wherever the address is", || behind(&lab, ip).contains("10.50.0.11 hears"));
    }
    drop(there);
    lab.wait("one is left", || announcers(&lab) == BTreeSet::from(["here".to_owned()]));
    for ip in &addresses {
        lab.wait("it answers for all of them", || behind(&lab, ip).contains("10.50.0.11 hears"));
    }
}

/// A backend behind the second machine.
const FAR: &str = "10.51.0.11";

/// Has a Service lead to these backends on these machines, and no others.
fn lead(lab: &Lab, endpoints: &[(&str, &str)]) {
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let endpoint =
        |(ip, node): &(&str, &str)| json!({"addresses": [ip], "nodeName": node, "conditions": {"ready": true}});
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    });
    let found = lab.api("GET", slices, &Value::Null);
    match found["items"].as_array().is_some_and(|all| all.iter().any(|one| one["metadata"]["name"] == "web-1")) {
        true => lab.api("PUT", &format!("{slices}/web-1"), &slice),
        false => lab.api("POST", slices, &slice),
    };
}

#[test]
fn a_local_address_is_where_its_endpoints_are_and_they_see_the_client() {
    let test = "a_local_address_is_where_its_endpoints_are_and_they_see_the_client";
    let Some(lab) = lab(test, &FLAGS) else { return };
    let machine = second(&lab);
    let far = Namespace::unnamed().unwrap();
    tool(&far, "ip link set lo up");
    wire(&machine, "back", &far, ["10.51.0.1/24", "fd51::1/64"], &["10.51.0.11/24"]);
    tool(&far, "ip route add default via 10.51.0.1");
    machine.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
    serve(&far, FAR.parse().unwrap());
    let _there = join(&lab, &machine);
    lab.create("web", &json!({"spec": {"externalTrafficPolicy": "Local", "loadBalancerIP": "192.0.2.1"}}));
    lab.becomes("web", "192.0.2.1/VIP");
    let check = |endpoints: &[(&str, &str)], expected: &[&str]| {
        lead(&lab, endpoints);
        let said = || {
            let there = fs::read_to_string(lab.path("log-there")).unwrap_or_default();
            format!("{endpoints:?}: {}{there}", lab.fairlead(&["lb", "describe", "web"]))
        };
        lab.wait_or(said, || {
            let now = announcers(&lab);
            now.len() == expected.len().min(1) && now.iter().all(|node| expected.contains(&node.as_str()))
        });
        for (ip, node) in endpoints.iter().filter(|(_, node)| announcers(&lab).contains(*node)) {
            lab.wait_or(said, || {
                lab.ask("192.0.2.1:80").is_some_and(|all| all.contains(&format!("{ip} hears {CLIENT}")))
            });
            println!("{ip} on {node} sees the client");
        }
    };
    let (near, away) = ((BACKENDS[0], "here"), (FAR, "there"));
    check(&[near], &["here"]);
    check(&[away], &["there"]);
    check(&[near, away], &["here", "there"]);
    check(&[near], &["here"]);
    check(&[], &[]);
    lab.wait("nobody answers", || lab.ask("192.0.2.1:80").is_none());
}
