//! Every manifest of the documents, applied as it stands there, and what they say about it: who answers at which address and port,
//! which names there are, and what the API makes of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use world::From::{Node, OtherPod, Outside, Pod};
use world::{From, World, world};

mod fragments;
mod text;
mod world;

/// Where the manifests are.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pods/manifests");

/// Where a load balancer is.
const INGRESS: &str = "/status/loadBalancer/ingress/*/ip";

/// How long anything may take to be so.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is so once a manifest is applied. `{ip}` is the cluster IP of `my-service`, `{port}` its node port, `{node}` the Node's address.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// This is said at an address, to somebody who asks.
    Get(From, &'static str, &'static str),
    /// All of these are said at an address, to somebody who asks often.
    GetEach(From, &'static str, &'static [&'static str]),
    /// Nobody answers at an address.
    Silent(From, &'static str),
    /// A record of cluster DNS.
    Resolve(&'static str, &'static str, &'static [&'static str]),
    /// What an object says at some pointers.
    Field(&'static str, &'static str, &'static str),
}
use Check::{Field, Get, GetEach, Resolve, Silent};

/// "targets TCP port 9376 on any Pod with the label"; found by its name in its namespace, and by `my-service.my-ns` elsewhere.
const SERVICE: &[Check] = &[
    Get(Node, "{ip}:80", "MyApp:9376"),
    GetEach(Node, "{ip}:80/name", &["web-1", "web-2", "web-3"]),
    Get(Pod, "my-service", "MyApp:9376"),
    Get(OtherPod, "my-service.my-ns", "MyApp:9376"),
    Resolve("A", "my-service.my-ns.svc.cluster.local.", &["{ip}"]),
    Resolve("A", "my-service.other.svc.cluster.local.", &[]),
    Field("services/my-service", "/spec/type /spec/ports/0/port /spec/ports/0/targetPort", "ClusterIP 80 9376"),
    Field("endpoints/my-service", "/subsets/*/addresses/*/targetRef/name", "web-1 web-2 web-3"),
    Field("endpointslices", "/items/*/ports/*/port", "9376"),
];

/// "the corresponding Endpoint object is not created automatically".
const NO_ENDPOINTS: &[Check] = &[
    Resolve("A", "my-service.my-ns.svc.cluster.local.", &["{ip}"]),
    Silent(Node, "{ip}:80"),
    Field("endpoints", "/items/*/metadata/name", ""),
    Field("endpointslices", "/items/*/metadata/name", ""),
];

/// "traffic is routed to the single endpoint defined in the YAML".
const ONE_ENDPOINT: &[Check] = &[
    Get(Node, "{ip}:80", "192.0.2.42:9376"),
    Get(Pod, "my-service", "192.0.2.42:9376"),
    Field("endpointslices", "/items/*/endpoints/*/addresses/0 /items/*/ports/*/port", "192.0.2.42 9376"),
];
const ONE_OTHER_ENDPOINT: &[Check] = &[Get(Node, "{ip}:80", "1.2.3.4:9376"), Get(Pod, "my-service", "1.2.3.4:9376")];

/// "a TCP connection to 10.1.2.3 or 10.4.5.6, on port 9376".
const TWO_ENDPOINTS: &[Check] = &[
    GetEach(Node, "{ip}:80", &["10.1.2.3:9376", "10.4.5.6:9376"]),
    Field("endpointslices/my-service-1", "/ports/*/appProtocol", "http"),
];

/// Each port leads to its own, and has a name to be found by.
const MULTI_PORT: &[Check] = &[
    Get(Node, "{ip}:80", "MyApp:9376"),
    Get(Node, "{ip}:443", "MyApp:9377"),
    Get(Pod, "my-service:443", "MyApp:9377"),
    Resolve("SRV", "_http._tcp.my-service.my-ns.svc.cluster.local.", &["0 100 80 my-service.my-ns.svc.cluster.local."]),
    Resolve(
        "SRV",
        "_https._tcp.my-service.my-ns.svc.cluster.local.",
        &["0 100 443 my-service.my-ns.svc.cluster.local."],
    ),
];

/// At `NodeIP:nodePort` and at `clusterIP:port`.
const NODE_PORT: &[Check] = &[
    Get(Outside, "{node}:30007", "MyApp:80"),
    Get(Node, "{node}:30007", "MyApp:80"),
    Get(Node, "{ip}:80", "MyApp:80"),
    Field("services/my-service", "/spec/type /spec/ports/0/nodePort", "NodePort 30007"),
];

/// It has the addresses it asked for and a node port, and answers at all of them.
const LOAD_BALANCER: &[Check] = &[
    Field("services/my-service", "/spec/clusterIP /spec/loadBalancerIP", "10.0.171.239 78.11.24.19"),
    Field("services/my-service", INGRESS, "78.11.24.19"),
    Get(Node, "10.0.171.239:80", "MyApp:9376"),
    Get(Outside, "{node}:{port}", "MyApp:9376"),
    Get(Outside, "78.11.24.19:80", "MyApp:9376"),
    // What a manifest says of its status is not taken.
    Silent(Outside, "146.148.47.155:80"),
];
const LOAD_BALANCER_AT_30061: &[Check] = &[
    Get(Outside, "{node}:30061", "MyApp:9376"),
    Get(Node, "10.0.171.239:80", "MyApp:9376"),
    Get(Outside, "78.11.24.19:80", "MyApp:9376"),
];
/// The pool has the one address of the example.
const LOAD_BALANCER_ANYWHERE: &[Check] = &[
    Field("services/my-service", "/spec/clusterIP", "10.0.171.239"),
    Field("services/my-service", INGRESS, "192.0.2.127"),
    Get(Outside, "{node}:{port}", "MyApp:9376"),
    Get(Outside, "192.0.2.127:80", "MyApp:9376"),
];

/// "can be accessed by clients on externalIP:port".
const EXTERNAL_IPS: &[Check] = &[
    Get(Outside, "80.11.12.10:80", "MyApp:9376"),
    Get(Pod, "80.11.12.10", "MyApp:9376"),
    Get(Node, "{ip}:80", "MyApp:9376"),
    Resolve("SRV", "_http._tcp.my-service.my-ns.svc.cluster.local.", &["0 100 80 my-service.my-ns.svc.cluster.local."]),
];
const OTHER_EXTERNAL_IPS: &[Check] =
    &[Get(Outside, "198.51.100.32:80", "MyApp:49152"), Get(Pod, "my-service", "MyApp:49152")];

/// "returns a CNAME record with the value"; nothing is proxied.
const EXTERNAL_NAME: &[Check] = &[
    Resolve("CNAME", "my-service.prod.svc.cluster.local.", &["my.database.example.com."]),
    Field("/api/v1/namespaces/prod/services/my-service", "/spec/type /spec/clusterIP", "ExternalName"),
    Field("/api/v1/namespaces/prod/endpoints", "/items/*/metadata/name", ""),
];

/// Read as of another version, it says the same.
const OLD_SLICE: &[Check] = &[
    Field("endpointslices/example-abc", "/endpoints/0/nodeName /endpoints/0/zone", "node-1 us-west2-a"),
    Field("endpointslices/example-abc", "/endpoints/0/hostname /endpoints/0/addresses/0", "pod-1 10.1.2.3"),
];

/// The image is nobody's to run here: the Pod waits and says so, and the Service has nobody.
const FOREIGN_IMAGE: &[Check] = &[
    Field("pods/nginx", "/status/phase", "Pending"),
    Field("endpoints/nginx-service", "/subsets/*/addresses/*/targetRef/name", ""),
];
/// "bind the targetPort of the Service to the Pod port" by its name.
const NAMED_PORT: &[Check] = &[
    Field("endpoints/nginx-service", "/subsets/*/addresses/*/targetRef/name /subsets/*/ports/*/port", "nginx 80"),
    Get(Pod, "nginx-service", "a real nginx"),
    Get(OtherPod, "nginx-service.my-ns", "a real nginx"),
    Resolve(
        "SRV",
        "_name-of-service-port._tcp.nginx-service.my-ns.svc.cluster.local.",
        &["0 100 80 nginx-service.my-ns.svc.cluster.local."],
    ),
];

/// A manifest by its name, which says the document and the section. Those that follow on another one are applied beside it.
const TABLE: &[(&str, &[Check])] = &[
    ("s0-service", SERVICE),
    ("s0-without-selector", NO_ENDPOINTS),
    ("+s0-without-selector-endpoints", ONE_ENDPOINT),
    ("s0-multi-port", MULTI_PORT),
    ("s0-load-balancer", LOAD_BALANCER),
    ("s0-external-ips", EXTERNAL_IPS),
    ("s0-external-name", EXTERNAL_NAME),
    ("s0-external-ips-again", EXTERNAL_IPS),
    ("s1-service", SERVICE),
    ("s1-without-selector", NO_ENDPOINTS),
    ("+s1-without-selector-endpoints", ONE_ENDPOINT),
    ("s1-multi-port", MULTI_PORT),
    ("s1-node-port", NODE_PORT),
    ("s1-load-balancer", LOAD_BALANCER),
    ("s1-external-ips", EXTERNAL_IPS),
    ("s1-external-name", EXTERNAL_NAME),
    ("s1-external-ips-again", EXTERNAL_IPS),
    ("s1-endpoint-slice", OLD_SLICE),
    ("s2-service", SERVICE),
    ("s2-without-selector", NO_ENDPOINTS),
    ("+s2-without-selector-endpoints", ONE_OTHER_ENDPOINT),
    ("s2-external-name", EXTERNAL_NAME),
    ("s2-multi-port", MULTI_PORT),
    ("s2-load-balancer", LOAD_BALANCER_AT_30061),
    ("s2-external-ips", EXTERNAL_IPS),
    ("s3-service", SERVICE),
    ("s3-named-port", FOREIGN_IMAGE),
    ("s3-named-port-host", NAMED_PORT),
    ("s3-without-selector", NO_ENDPOINTS),
    ("+s3-without-selector-slice", TWO_ENDPOINTS),
    ("+s3-without-selector-slice-again", TWO_ENDPOINTS),
    ("s3-multi-port", MULTI_PORT),
    ("s3-node-port", NODE_PORT),
    ("s3-node-port-again", NODE_PORT),
    ("s3-load-balancer", LOAD_BALANCER_ANYWHERE),
    ("s3-external-name", EXTERNAL_NAME),
    ("s3-external-ips", OTHER_EXTERNAL_IPS),
    ("s4-service", SERVICE),
    ("s4-without-selector", NO_ENDPOINTS),
    ("+s4-without-selector-endpoints", ONE_ENDPOINT),
    ("s4-multi-port", MULTI_PORT),
    ("s4-node-port", NODE_PORT),
    ("s4-load-balancer", LOAD_BALANCER_ANYWHERE),
    ("s4-external-name", EXTERNAL_NAME),
    ("s4-external-ips", EXTERNAL_IPS),
];

#[test]
fn every_manifest_is_in_the_table() {
    let files: BTreeSet<String> = std::fs::read_dir(MANIFESTS)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".yaml").to_owned())
        .collect();
    let names = TABLE.iter().map(|(name, _)| name.trim_start_matches('+')).chain(fragments::FILES.iter().copied());
    assert_eq!(files, names.map(str::to_owned).collect());
}

#[test]
fn manifests_do_what_the_documents_say() {
    let name = "manifests_do_what_the_documents_say";
    let files = fragments::files();
    let config = files.path().join("balancer.yaml").display().to_string();
    let flags = ["--feature-gates", "ServiceTopology=true", "--balancer-config", &config];
    let Some(world) = world(name, &flags) else { return };
    text::check(&world);
    clear(&world);
    fragments::check(&world);
    let nginx = fairlead_testkit::need::need(&format!("{name} (nginx)"), "nginx");
    for (name, checks) in TABLE.iter().filter(|(name, _)| nginx || *name != "s3-named-port-host") {
        let fresh = apply(&world, name);
        for check in *checks {
            hold(&world, name, &fresh, check);
        }
    }
}

/// What stands for `{ip}`, `{port}` and `{node}`.
struct Values {
    ip: String,
    port: String,
    node: String,
}

/// Applies a manifest where nothing of those before is left, unless it says otherwise.
fn apply(world: &World, name: &str) -> Values {
    let file = name.trim_start_matches('+');
    if file == name {
        clear(world);
    }
    let path = Path::new(MANIFESTS).join(format!("{file}.yaml")).display().to_string();
    world.machine.kubectl(&["apply", "-f", &path]).fine();
    let pointers = "/spec/clusterIP /spec/ports/0/nodePort";
    let said = world.field("services/my-service", pointers);
    let (ip, port) = said.split_once(' ').unwrap_or((&said, ""));
    Values { ip: ip.to_owned(), port: port.to_owned(), node: world.node() }
}

fn clear(world: &World) {
    for path in ["services", "endpoints", "endpointslices", "/api/v1/namespaces/prod/services"] {
        world.delete(path);
    }
    // A load balancer goes before its Service does.
    until(world, "no Services", "", || world.field("services", "/items/*/metadata/name"));
    // A Pod takes its time to go, and its name with it.
    if world.field("pods/nginx", "/metadata/name") == "nginx" {
        world.kubectl("delete pod nginx");
    }
}

/// Waits until a check holds.
#[track_caller]
fn hold(world: &World, name: &str, values: &Values, check: &Check) {
    let fill =
        |text: &str| text.replace("{ip}", &values.ip).replace("{port}", &values.port).replace("{node}", &values.node);
    let what = format!("{name}: {check:?}");
    match check {
        Get(from, at, expected) => until(world, &what, expected, || world.get(*from, &fill(at))),
        Silent(from, at) => until(world, &what, "", || world.get(*from, &fill(at))),
        Field(object, path, expected) => until(world, &what, expected, || world.field(object, path)),
        Resolve(rtype, owner, expected) => {
            let expected: Vec<String> = expected.iter().map(|text| fill(text)).collect();
            until(world, &what, &expected.join(","), || world.resolve(rtype, owner).join(","));
        }
        GetEach(from, at, expected) => {
            let mut seen = BTreeSet::new();
            until(world, &what, &expected.join(","), || {
                seen.insert(world.get(*from, &fill(at)));
                seen.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(",")
            });
        }
    }
}

#[track_caller]
fn until(world: &World, what: &str, expected: &str, mut say: impl FnMut() -> String) {
    let began = Instant::now();
    loop {
        let said = say();
        if said == expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {said:?}\n{}", world.machine.log());
        thread::sleep(Duration::from_millis(20));
    }
}
