//! What the documents say in words only: environment variables, headless Services, affinity, topology, and what is refused.

use std::collections::BTreeSet;

use super::world::From::{Node, Outside, Pod};
use super::world::{NAMESPACE, World, empty};
use super::{INGRESS, until};

/// All of it.
pub(crate) fn check(world: &World) {
    variables(world);
    headless(world);
    affinity(world);
    names_of_ports(world);
    topology(world);
    source_ranges(world);
    refusals(world);
}

/// A Service, as JSON.
fn service(name: &str, spec: &str) -> String {
    format!(r#"{{"apiVersion": "v1", "kind": "Service", "metadata": {{"name": "{name}"}}, "spec": {spec}}}"#)
}

/// The variables of a Service, in the words of every document; not for Pods that were there before it.
fn variables(world: &World) {
    for (name, prefix) in [("redis-master", "REDIS_MASTER"), ("redis-primary", "REDIS_PRIMARY")] {
        world.create("services", &service(name, r#"{"clusterIP": "10.0.0.11", "ports": [{"port": 6379}]}"#));
        let expected = [
            "_SERVICE_HOST=10.0.0.11",
            "_SERVICE_PORT=6379",
            "_PORT=tcp://10.0.0.11:6379",
            "_PORT_6379_TCP=tcp://10.0.0.11:6379",
            "_PORT_6379_TCP_PROTO=tcp",
            "_PORT_6379_TCP_PORT=6379",
            "_PORT_6379_TCP_ADDR=10.0.0.11",
        ];
        let expected: BTreeSet<String> = expected.iter().map(|rest| format!("{prefix}{rest}")).collect();
        let new = world.machine.fairlead(&["run", "--rm", "-n", NAMESPACE, "--", "env"]).fine();
        let of_it = new.lines().filter(|line| line.starts_with("REDIS")).map(str::to_owned);
        assert_eq!(of_it.collect::<BTreeSet<_>>(), expected, "{new}");
        let old = world.machine.fairlead(&["exec", "-n", NAMESPACE, "client", "--", "env"]).fine();
        assert!(old.contains("KUBERNETES_SERVICE_HOST=10.0.0.1\n") && !old.contains("REDIS"), "{old}");
        world.delete(&format!("services/{name}"));
    }
}

/// Names of what is behind a Service without an address of its own.
fn headless(world: &World) {
    world.create(
        "services",
        &service("with-selector", r#"{"clusterIP": "None", "selector": {"app": "MyApp"}, "ports": [{"port": 9376}]}"#),
    );
    world.create("services", &service("without-selector", r#"{"clusterIP": "None", "ports": [{"port": 9376}]}"#));
    world.create(
        "endpoints",
        r#"{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "without-selector"},
            "subsets": [{"addresses": [{"ip": "192.0.2.42"}], "ports": [{"port": 9376}]}]}"#,
    );
    let mut pods: Vec<String> =
        world.field("pods?labelSelector=app%3DMyApp", "/items/*/status/podIP").split(' ').map(str::to_owned).collect();
    pods.sort();
    assert_eq!(pods.len(), 3, "{pods:?}");
    for (name, expected) in [("with-selector", pods.join(",")), ("without-selector", "192.0.2.42".to_owned())] {
        let full = format!("{name}.my-ns.svc.cluster.local.");
        until(world, name, &expected, || world.resolve("A", &full).join(","));
        assert_eq!(world.field(&format!("services/{name}"), "/spec/clusterIP"), "None");
    }
    until(world, "a headless Service by name", "MyApp:9376", || world.get(Pod, "with-selector:9376"));

    let spec = r#"{"hostname": "one", "subdomain": "with-selector",
        "containers": [{"name": "main", "image": "host", "command": ["sleep", "1000"]}]}"#;
    let labels = r#"{"app": "MyApp"}"#;
    world.create("pods", &format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "named", "labels": {labels}}}, "spec": {spec}}}"#
        ),
    );
    world.machine.kubectl(&["wait", "--for=condition=Ready", "--timeout=30s", "pod/named"]).fine();
    let ip = world.field("pods/named", "/status/podIP");
    until(world, "a Pod's name", &ip, || world.resolve("A", "one.with-selector.my-ns.svc.cluster.local.").join(","));
    let own = world.machine.fairlead(&["exec", "-n", NAMESPACE, "named", "--", "hostname", "-f"]);
    assert_eq!(own.fine(), "one.with-selector.my-ns.svc.cluster.local\n");
    world.delete("pods/named");
    world.delete("services");
}

/// "connections from a particular client are passed to the same Pod each time".
fn affinity(world: &World) {
    let ports = r#""selector": {"app": "MyApp"}, "ports": [{"port": 80, "targetPort": 9376}]"#;
    world.create(
        "services",
        &service("sticky", &format!(r#"{{"clusterIP": "10.0.0.12", "sessionAffinity": "ClientIP", {ports}}}"#)),
    );
    until(world, "a sticky Service", "MyApp:9376", || world.get(Node, "10.0.0.12:80"));
    let seen: BTreeSet<String> = (0..20).map(|_| world.get(Node, "10.0.0.12:80/name")).collect();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let timeout = "/spec/sessionAffinityConfig/clientIP/timeoutSeconds";
    assert_eq!(world.field("services/sticky", timeout), "10800");
    world.delete("services");
}

/// "a mixture of Pods in the Service using a single configured name, with … different port numbers".
fn names_of_ports(world: &World) {
    let script = world.machine.path("backend.py").display().to_string();
    for port in ["9376", "9377"] {
        let name = format!("mixed-{port}");
        let port_name = format!("web={port}");
        let line =
            ["run", "-d", "-n", NAMESPACE, "--name", &name, "-l", "app=mixed", "-p", &port_name, "--ready", "tcp"];
        world.machine.fairlead(&[line.as_slice(), &["--", "python3", &script, "mixed", port]].concat()).fine();
    }
    let spec =
        r#"{"clusterIP": "10.0.0.13", "selector": {"app": "mixed"}, "ports": [{"port": 80, "targetPort": "web"}]}"#;
    world.create("services", &service("mixed", spec));
    let mut seen = BTreeSet::new();
    until(world, "a name with two ports", "mixed:9376,mixed:9377", || {
        let said = world.get(Node, "10.0.0.13:80");
        seen.extend((!said.is_empty()).then_some(said));
        seen.iter().cloned().collect::<Vec<_>>().join(",")
    });
    world.delete("services");
    world.delete("pods?labelSelector=app%3Dmixed");
}

/// The keys of S1, section 1: endpoints of the first key that has some.
fn topology(world: &World) {
    let near = r#"["kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"]"#;
    let cases = [
        ("near", "10.0.0.14", r#"["kubernetes.io/hostname"]"#, "MyApp:9376"),
        ("falling-back", "10.0.0.15", near, "MyApp:9376"),
        ("anywhere", "10.0.0.16", r#"["topology.kubernetes.io/zone", "*"]"#, "MyApp:9376"),
        // The Node has no such label, and nothing else was asked for: as if there were no backends.
        ("nowhere", "10.0.0.17", r#"["topology.kubernetes.io/zone"]"#, ""),
    ];
    for (name, ip, keys, expected) in cases {
        let ports = r#""selector": {"app": "MyApp"}, "ports": [{"port": 80, "targetPort": 9376}]"#;
        world.create(
            "services",
            &service(name, &format!(r#"{{"clusterIP": "{ip}", "topologyKeys": {keys}, {ports}}}"#)),
        );
        until(world, name, expected, || world.get(Node, &format!("{ip}:80")));
    }
    world.delete("services");
}

/// "To limit which client IP's can access".
fn source_ranges(world: &World) {
    let more = r#""selector": {"app": "MyApp"}, "ports": [{"port": 80, "targetPort": 9376}], "loadBalancerIP": "146.148.47.156""#;
    let ranges = r#""loadBalancerSourceRanges": ["143.231.0.0/16"]"#;
    world.create("services", &service("limited", &format!(r#"{{"type": "LoadBalancer", {ranges}, {more}}}"#)));
    until(world, "its address", "146.148.47.156", || world.field("services/limited", INGRESS));
    let node_port = world.field("services/limited", "/spec/ports/0/nodePort");
    until(world, "its node port", "MyApp:9376", || world.get(Outside, &format!("{}:{node_port}", world.node())));
    assert_eq!(world.get(Outside, "146.148.47.156:80"), "");
    let wider = r#"{"spec": {"loadBalancerSourceRanges": ["143.231.0.0/16", "203.0.113.0/24"]}}"#;
    world.machine.kubectl(&["patch", "service", "limited", "-p", wider]).fine();
    until(world, "from a range", "MyApp:9376", || world.get(Outside, "146.148.47.156:80"));
    world.delete("services");
}

/// What the documents call invalid, and beside it what is not.
fn refusals(world: &World) {
    let port = r#""ports": [{"port": 80}]"#;
    let named = |name: &str| format!(r#"{{"ports": [{{"name": "{name}", "port": 80}}]}}"#);
    let keyed = |keys: &str, more: &str| format!(r#"{{"topologyKeys": [{keys}]{more}, {port}}}"#);
    let many = (0..17).map(|key| format!(r#""k{key}""#)).collect::<Vec<_>>().join(",");
    let local = r#", "type": "NodePort", "externalTrafficPolicy": "Local""#;
    let cases = [
        ("an address out of the range", format!(r#"{{"clusterIP": "192.168.0.1", {port}}}"#), Some("spec.clusterIPs")),
        ("an address of nothing", format!(r#"{{"clusterIP": "10.0.0", {port}}}"#), Some("spec.clusterIPs")),
        (
            "a node port out of the range",
            r#"{"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}"#.into(),
            Some("nodePort"),
        ),
        ("two ports without names", r#"{"ports": [{"port": 80}, {"port": 443}]}"#.into(), Some("ports[0].name")),
        ("123-abc", named("123-abc"), None),
        ("web", named("web"), None),
        ("123_abc", named("123_abc"), Some("ports[0].name")),
        ("-web", named("-web"), Some("ports[0].name")),
        ("an address as a name", r#"{"type": "ExternalName", "externalName": "192.0.2.1"}"#.into(), None),
        ("SCTP", r#"{"ports": [{"port": 80, "protocol": "SCTP"}]}"#.into(), None),
        (
            "two protocols",
            r#"{"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}]}"#.into(),
            None,
        ),
        ("no such protocol", r#"{"ports": [{"port": 80, "protocol": "HTTP"}]}"#.into(), Some("ports[0].protocol")),
        ("a star first", keyed(r#""*", "kubernetes.io/hostname""#, ""), Some("topologyKeys")),
        ("seventeen keys", keyed(&many, ""), Some("topologyKeys")),
        ("keys of local traffic", keyed(r#""kubernetes.io/hostname""#, local), Some("topologyKeys")),
    ];
    for (what, spec, refused) in cases {
        check_create(world, what, "services", &service("probe", &spec), refused);
    }
    for ip in ["127.0.0.1", "169.254.1.1", "224.0.0.1"] {
        let subsets = format!(r#"[{{"addresses": [{{"ip": "{ip}"}}], "ports": [{{"port": 80}}]}}]"#);
        let manifest = format!(r#"{{"metadata": {{"name": "probe"}}, "subsets": {subsets}}}"#);
        check_create(world, ip, "endpoints", &manifest, Some("subsets[0].addresses[0].ip"));
    }
}

/// What is made goes again; what is refused is refused with 422, for what it is.
#[track_caller]
fn check_create(world: &World, what: &str, path: &str, object: &str, refused: Option<&str>) {
    let Some(field) = refused else {
        world.create(path, object);
        return world.delete(&format!("{path}/probe"));
    };
    let answer = world.api("POST", path, object);
    let said = answer["message"].as_str().unwrap_or_default();
    assert!(answer["code"] == 422 && said.contains(field), "{what}: {answer}");
}

#[test]
fn without_the_gate_there_are_no_topology_keys() {
    let Some(world) = empty("without_the_gate_there_are_no_topology_keys", &[]) else { return };
    let manifest = service("near", r#"{"topologyKeys": ["kubernetes.io/hostname"], "ports": [{"port": 80}]}"#);
    let said = world.machine.apply(&manifest, &["create", "-f", "-"]);
    assert!(said.code != 0 && said.err.contains("unknown field \"spec.topologyKeys\""), "{said:?}");
    let said = world.machine.apply(&manifest, &["create", "--validate=false", "-f", "-"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(world.field("services/near", "/spec/topologyKeys"), "");
    let path = format!("{}/s1-endpoint-slice.yaml", super::MANIFESTS);
    let said = world.machine.kubectl(&["apply", "-f", &path]);
    assert!(said.code != 0 && said.err.contains("no matches for kind \"EndpointSlice\""), "{said:?}");
}
