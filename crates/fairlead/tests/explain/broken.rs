//! Services that do not work, each for one reason.

use serde_json::{Value, json};

use super::lab::{Lab, lab, says_hello};
use super::setup::{Setup, by_hand, client, container, mistakes, pod, pod_with, serve, service, settled, setup, slice};

/// A command that does nothing for long.
fn sleeps() -> Value {
    container(json!(["sleep", "1000"]), json!({}))
}

/// A command of a shell.
fn shell(line: &str) -> Value {
    container(json!(["sh", "-c", line]), json!({}))
}

fn labelled(labels: Value) -> Value {
    pod(json!({"metadata": {"labels": labels}}))
}

/// A Service that selects Pods of another name than all the others do: elsewhere there are none.
fn selecting(app: &str) -> Value {
    service(json!({"spec": {"selector": {"app": app}}}))
}

/// What is asked for is not there, or is something else.
fn asked_wrongly() -> Vec<Setup> {
    let other = |object: Value, namespace: &str| {
        let mut object = object;
        object["metadata"]["namespace"] = namespace.into();
        object
    };
    let alias = |name: &str, to: &str| {
        service(
            json!({"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": to, "selector": null, "ports": null}}),
        )
    };
    vec![
        setup("no-service", "svc/database", "ServiceMissing", vec![service(json!({})), pod(json!({}))]),
        setup("misspelt", "svc/wbe", "ServiceNameMisspelt", vec![service(json!({})), pod(json!({}))]),
        setup(
            "elsewhere",
            "svc/unique-name",
            "ServiceInOtherNamespace",
            vec![other(service(json!({"metadata": {"name": "unique-name"}})), "misspelt")],
        ),
        setup("no-namespace", "svc/nowhere/web", "NamespaceMissing", vec![]),
        setup("alias-address", "svc/web", "ExternalNameIsAddress", vec![alias("web", "192.0.2.200")]),
        setup(
            "alias-loop",
            "svc/web",
            "ExternalNameLoops",
            vec![
                alias("web", "other.alias-loop.svc.cluster.local"),
                alias("other", "web.alias-loop.svc.cluster.local"),
            ],
        ),
        setup(
            "alias-missing",
            "svc/web",
            "ExternalNameTargetMissing",
            vec![alias("web", "nobody.alias-missing.svc.cluster.local")],
        ),
        setup("port-unknown", "svc/web --port 81", "PortUnknown", vec![service(json!({})), pod(json!({}))]),
        setup("port-of-pods", "svc/web --port 8080", "TargetPortUsed", vec![service(json!({})), pod(json!({}))]),
        setup(
            "port-of-nodes",
            "svc/web --port 30123",
            "NodePortUsed",
            vec![
                service(
                    json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30123}]}}),
                ),
                pod(json!({})),
            ],
        ),
        setup(
            "port-protocol",
            "svc/web --port 80/TCP",
            "ProtocolDiffers",
            vec![
                service(json!({"spec": {"ports": [{"port": 80, "targetPort": 8080, "protocol": "UDP"}]}})),
                pod_with(container(
                    serve("udp 0.0.0.0 8080"),
                    json!({"ports": [{"containerPort": 8080, "protocol": "UDP"}]}),
                )),
            ],
        ),
        setup("not-exposed", "svc/web --from outside", "NotExposed", vec![service(json!({})), pod(json!({}))]),
        setup(
            "outside-port",
            "svc/web --from outside --port 80",
            "NodePortNeeded",
            vec![service(json!({"spec": {"type": "NodePort"}})), pod(json!({}))],
        ),
        setup(
            "other-proxy",
            "svc/web",
            "LeftToOtherProxy",
            vec![
                service(json!({"metadata": {"labels": {"service.kubernetes.io/service-proxy-name": "mine"}}})),
                pod(json!({})),
            ],
        ),
    ]
}

/// No Pod is meant.
fn selectors() -> Vec<Setup> {
    let two = json!({"spec": {"selector": {"app": "web", "tier": "front"}}});
    vec![
        setup("no-pods", "svc/web", "NoPods", vec![selecting("nobody")]),
        setup(
            "no-match",
            "svc/web",
            "SelectorMatchesNothing",
            vec![selecting("nobody"), labelled(json!({"app": null, "role": "database"}))],
        ),
        setup("label-value", "svc/web", "LabelValueDiffers", vec![service(json!({})), labelled(json!({"app": "wbe"}))]),
        setup(
            "label-key",
            "svc/web",
            "LabelKeyDiffers",
            vec![selecting("somebody"), labelled(json!({"app": null, "run": "somebody"}))],
        ),
        setup("label-case", "svc/web", "LabelCaseDiffers", vec![service(json!({})), labelled(json!({"app": "Web"}))]),
        setup("label-missing", "svc/web", "LabelMissing", vec![service(two), pod(json!({}))]),
        setup(
            "label-elsewhere",
            "svc/web",
            "PodsInOtherNamespace",
            vec![
                selecting("label-elsewhere"),
                pod(json!({"metadata": {"namespace": "no-pods-here", "labels": {"app": "label-elsewhere"}}})),
            ],
        ),
    ]
}

/// Pods are not ready.
fn pods() -> Vec<Setup> {
    let probe = |port: u16, period: u32| json!({"tcpSocket": {"port": port}, "periodSeconds": period});
    let never = |line: &str| pod(json!({"spec": {"restartPolicy": "Never", "containers": [shell(line)]}}));
    let init = |line: &str| {
        pod(json!({"spec": {"initContainers": [{"name": "init", "image": "host", "command": ["sh", "-c", line]}]}}))
    };
    vec![
        setup(
            "unschedulable",
            "svc/web",
            "PodUnschedulable",
            vec![service(json!({})), pod(json!({"spec": {"nodeSelector": {"disk": "ssd"}}}))],
        ),
        setup(
            "node-not-ready",
            "svc/web",
            "NodeNotReady",
            vec![
                json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "dead"},
                    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Dead", "message": "no power"}]},
                }),
                service(json!({})),
                pod(json!({"spec": {"nodeName": "dead"}})),
            ],
        ),
        setup("failed", "svc/web", "PodFailed", vec![service(json!({})), never("exit 3")]),
        setup("succeeded", "svc/web", "PodSucceeded", vec![service(json!({})), never("exit 0")]),
        setup(
            "image",
            "svc/web",
            "ContainerConfigWrong",
            vec![service(json!({})), pod_with(json!({"name": "main", "image": "nginx"}))],
        ),
        setup(
            "no-program",
            "svc/web",
            "ContainerStartFailed",
            vec![service(json!({})), pod_with(container(json!(["/no/such/program"]), json!({})))],
        ),
        setup(
            "crash-loop",
            "svc/web",
            "CrashLoop",
            vec![service(json!({})), pod_with(shell("echo no database; exit 3"))],
        ),
        setup(
            "init-fails",
            "svc/web",
            "InitContainerFailing",
            vec![service(json!({})), init("echo no schema; exit 1")],
        ),
        setup("init-runs", "svc/web", "InitContainerRunning", vec![service(json!({})), init("sleep 1000")]),
        setup(
            "startup-probe",
            "svc/web",
            "StartupProbeFailing",
            vec![
                service(json!({})),
                pod_with(container(
                    serve("tcp 0.0.0.0 8080"),
                    json!({"startupProbe": {
                        "tcpSocket": {"port": 9999}, "periodSeconds": 1, "failureThreshold": 1000,
                    }}),
                )),
            ],
        ),
        setup(
            "readiness-probe",
            "svc/web",
            "ReadinessProbeFailing",
            vec![
                service(json!({})),
                pod_with(container(serve("tcp 0.0.0.0 8080"), json!({"readinessProbe": probe(9999, 1)}))),
            ],
        ),
        setup(
            "readiness-gate",
            "svc/web",
            "ReadinessGateClosed",
            vec![service(json!({})), pod(json!({"spec": {"readinessGates": [{"conditionType": "example.com/warm"}]}}))],
        ),
    ]
}

/// Ports do not fit, or nobody listens.
fn ports() -> Vec<Setup> {
    let to = |port: &str| service(json!({"spec": {"ports": [{"port": 80, "targetPort": port}]}}));
    let unnamed = container(serve("tcp 0.0.0.0 8080"), json!({"ports": [{"containerPort": 8080}]}));
    let udp = container(
        serve("tcp 0.0.0.0 8080"),
        json!({"ports": [{"name": "http", "containerPort": 8080, "protocol": "UDP"}]}),
    );
    vec![
        setup("port-name-missing", "svc/web", "TargetPortNameMissing", vec![to("http"), pod_with(unnamed)]),
        setup("port-name-misspelt", "svc/web", "TargetPortMisspelt", vec![to("htpp"), pod(json!({}))]),
        setup("port-name-protocol", "svc/web", "TargetPortProtocolDiffers", vec![to("http"), pod_with(udp)]),
        setup("nothing-listens", "svc/web", "NothingListens", vec![service(json!({})), pod_with(sleeps())]),
        setup(
            "listens-elsewhere",
            "svc/web",
            "ListensOnOtherPort",
            vec![service(json!({})), pod_with(container(serve("tcp 0.0.0.0 8081"), json!({})))],
        ),
        setup(
            "listens-loopback",
            "svc/web",
            "ListensOnLoopback",
            vec![service(json!({})), pod_with(container(serve("tcp 127.0.0.1 8080"), json!({})))],
        ),
        setup(
            "listens-udp",
            "svc/web",
            "ListensOnOtherProtocol",
            vec![service(json!({})), pod_with(container(serve("udp 0.0.0.0 8080"), json!({})))],
        ),
    ]
}

/// Endpoints made by hand.
fn slices() -> Vec<Setup> {
    let endpoint = |conditions: Value| json!([{"addresses": ["192.0.2.200"], "conditions": conditions}]);
    let away = json!([{"addresses": ["192.0.2.200"], "nodeName": "elsewhere"}]);
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "web", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": "192.0.2.200"}], "ports": [{"port": 8080}]}],
    });
    vec![
        setup("no-hand", "svc/web", "NoEndpointsByHand", vec![by_hand(json!({}))]),
        setup(
            "slice-label",
            "svc/web",
            "SliceLabelWrong",
            vec![by_hand(json!({})), slice(json!({"metadata": {"labels": {"kubernetes.io/service-name": "wbe"}}}))],
        ),
        setup(
            "slice-elsewhere",
            "svc/far-away",
            "SliceInOtherNamespace",
            vec![
                by_hand(json!({"metadata": {"name": "far-away"}})),
                slice(
                    json!({"metadata": {"namespace": "no-pods-here", "labels": {"kubernetes.io/service-name": "far-away"}}}),
                ),
            ],
        ),
        setup(
            "slice-port-name",
            "svc/web",
            "SlicePortNameDiffers",
            vec![by_hand(json!({"spec": {"ports": [{"name": "http", "port": 80}]}})), slice(json!({}))],
        ),
        setup(
            "slice-protocol",
            "svc/web",
            "SlicePortProtocolDiffers",
            vec![by_hand(json!({})), slice(json!({"ports": [{"name": "", "port": 8080, "protocol": "UDP"}]}))],
        ),
        setup(
            "slice-family",
            "svc/web",
            "SliceFamilyDiffers",
            vec![
                by_hand(json!({})),
                slice(json!({"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::200"]}]})),
            ],
        ),
        setup(
            "slice-not-ready",
            "svc/web",
            "EndpointsNotReady",
            vec![by_hand(json!({})), slice(json!({"endpoints": endpoint(json!({"ready": false}))}))],
        ),
        setup(
            "slice-weight",
            "svc/web",
            "AllWeightsZero",
            vec![by_hand(json!({})), slice(json!({"metadata": {"annotations": {"fairlead.dev/weight": "0"}}}))],
        ),
        setup(
            "slice-cluster-ip",
            "svc/web",
            "EndpointIsClusterIp",
            vec![
                by_hand(json!({})),
                by_hand(json!({"metadata": {"name": "other"}, "spec": {"clusterIP": "10.96.77.77"}})),
                slice(json!({"endpoints": [{"addresses": ["10.96.77.77"]}]})),
            ],
        ),
        setup("not-mirrored", "svc/web", "EndpointsNotMirrored", vec![by_hand(json!({})), endpoints]),
        setup(
            "local-policy",
            "svc/web",
            "NoLocalEndpoint",
            vec![by_hand(json!({"spec": {"internalTrafficPolicy": "Local"}})), slice(json!({"endpoints": away}))],
        ),
        setup(
            "local-policy-outside",
            "svc/web --from 192.0.2.200",
            "NoLocalEndpoint",
            vec![
                by_hand(json!({"spec": {"type": "NodePort", "externalTrafficPolicy": "Local"}})),
                slice(json!({"endpoints": away})),
            ],
        ),
    ]
}

/// Names and load balancers.
fn names() -> Vec<Setup> {
    let with = |name: &str, spec: Value| {
        let client = client(json!({"metadata": {"name": name, "namespace": "no-pods-here"}, "spec": spec}));
        vec![service(json!({})), pod(json!({})), client]
    };
    let none = json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.200"]}});
    let no_search = json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.96.0.10"]}});
    let balancer = |more: Value| {
        let mut made = service(json!({"spec": {"type": "LoadBalancer"}}));
        made["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        made
    };
    vec![
        setup(
            "short-name",
            "svc/web --from pod/no-pods-here/short --host web",
            "ShortNameOfOtherNamespace",
            with("short", json!({})),
        ),
        setup(
            "dns-default",
            "svc/web --from pod/no-pods-here/default --host web.dns-default",
            "DnsPolicySkipsCluster",
            with("default", json!({"dnsPolicy": "Default"})),
        ),
        setup("dns-none", "svc/web --from pod/no-pods-here/none", "DnsPolicyNone", with("none", none)),
        setup(
            "dns-search",
            "svc/web --from pod/no-pods-here/search --host web.dns-search",
            "SearchPathIncomplete",
            with("search", no_search),
        ),
        setup(
            "lb-class",
            "svc/web --from outside",
            "LoadBalancerClassUnknown",
            vec![
                balancer(json!({"loadBalancerClass": "example.com/other", "allocateLoadBalancerNodePorts": false})),
                pod(json!({})),
            ],
        ),
        setup(
            "lb-sources",
            "svc/web --from 192.0.2.200 --port 80",
            "SourceNotAllowed",
            vec![balancer(json!({"loadBalancerSourceRanges": ["198.51.100.0/24"]})), pod(json!({}))],
        ),
        setup(
            "address-taken",
            "svc/web --from 192.0.2.200",
            "AddressTaken",
            vec![
                service(json!({
                    "metadata": {"name": "first"},
                    "spec": {"externalIPs": ["192.0.2.150"], "selector": {"app": "other"}},
                })),
                pod(json!({"metadata": {"name": "other-1", "labels": {"app": "other"}}})),
                service(json!({"spec": {"externalIPs": ["192.0.2.150"]}})),
                pod(json!({})),
            ],
        ),
    ]
}

/// Those of which somebody answers at the cluster IP all the same: only what was asked is wrong.
const ANSWERED: [&str; 13] = [
    "local-policy-outside",
    "port-unknown",
    "port-of-pods",
    "port-of-nodes",
    "not-exposed",
    "outside-port",
    "short-name",
    "dns-default",
    "dns-none",
    "dns-search",
    "lb-class",
    "lb-sources",
    "address-taken",
];
/// Those that have no `web` of TCP, or none with an address.
const NO_ADDRESS: [&str; 9] = [
    "no-service",
    "misspelt",
    "elsewhere",
    "no-namespace",
    "alias-address",
    "alias-loop",
    "alias-missing",
    "port-protocol",
    "slice-elsewhere",
];

#[test]
fn the_first_finding_is_what_is_wrong() {
    let Some(lab) = lab("the_first_finding_is_what_is_wrong", &["--pool", "192.0.2.64/28"]) else { return };
    lab.create("", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "no-pods-here"}}));
    let setups: Vec<Setup> =
        [asked_wrongly(), selectors(), pods(), ports(), slices(), names()].into_iter().flatten().collect();
    let said = settled(&lab, &setups);
    let mut mistakes = mistakes(&setups, &said);
    for setup in setups.iter().filter(|setup| !NO_ADDRESS.contains(&setup.name)) {
        let at = format!("{}:80", lab.address(setup.name, "web", false).unwrap());
        let (answered, expected) = (says_hello(&lab.machine, &at), ANSWERED.contains(&setup.name));
        if answered != expected {
            mistakes.push(format!("{}: a connection is answered: {answered}, expected {expected}", setup.name));
        }
    }
    mistakes.extend(shared_address(&lab));
    let causes: std::collections::BTreeSet<_> = setups.iter().filter_map(|setup| setup.cause).collect();
    println!("{} broken set-ups with {} causes", setups.len(), causes.len());
    assert!(
        setups.len() >= 40 && mistakes.is_empty(),
        "{} of {}:\n{}",
        mistakes.len(),
        setups.len(),
        mistakes.join("\n")
    );
}

/// Who is inside does not use the address that another Service has got, and is told of it all the same.
fn shared_address(lab: &Lab) -> Option<String> {
    let said = lab.explain("address-taken", "svc/web");
    let fine = (said.first(), said.code) == (Some("AddressTaken"), 0);
    (!fine).then(|| format!("address-taken, from inside: {}", said.words()))
}

#[test]
fn a_service_in_the_wrong_namespace_is_copied_as_the_remedy_says() {
    let Some(lab) = lab("a_service_in_the_wrong_namespace_is_copied_as_the_remedy_says", &[]) else { return };
    lab.create("", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "there"}}));
    lab.create("there", &pod(json!({})));
    lab.create("default", &service(json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}})));
    lab.wait("the Pods are found", || lab.explain("default", "svc/web").first() == Some("PodsInOtherNamespace"));
    let said = lab.explain("default", "svc/web");
    lab.follow(said.remedy().last().unwrap());
    let at = format!("{}:80", lab.address("there", "web", false).unwrap());
    lab.wait("the copy is served", || says_hello(&lab.machine, &at));
}
