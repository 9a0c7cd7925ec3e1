//! Set-ups that work, among them those that look strange at first sight.

use fairlead_api::source::Key;
use fairlead_explain::{Dns, DnsReply, From, Live, Reply};

use crate::broken_endpoints::{manual, slice};
use crate::lab::Lab;

pub(crate) fn rows() -> Vec<(&'static str, Lab)> {
    [plain(), shapes(), rollouts(), outside()].into_iter().flatten().collect()
}

pub(crate) const DUAL: &str =
    "spec: {clusterIPs: [10.96.0.20, 'fd00:96::20'], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack}";

fn plain() -> Vec<(&'static str, Lab)> {
    vec![
        ("a plain Service", Lab::new()),
        ("a plain Service by port", Lab::new().port("80")),
        ("a plain Service by port name", Lab::new().port("http")),
        ("from the Node", Lab::new().from(From::Node(None))),
        ("from anywhere", Lab::new().from(From::Cluster)),
        (
            "from another namespace by its longer name",
            Lab::new()
                .with_pod("shop", "cart", "10.244.1.50", "n1", "cart")
                .from(From::Pod(Key::new("shop", "cart")))
                .host("web.default"),
        ),
        ("a Pod that is its own client", Lab::new().from(From::Pod(Key::new("default", "web-1")))),
        ("named target ports with other numbers in each Pod", {
            let target = "spec: {ports: [{name: http, port: 80, targetPort: http, protocol: TCP}]}";
            Lab::new()
                .service(target)
                .pod(
                    "web-2",
                    "spec: {containers: [{name: main, ports: [{name: http, containerPort: 8080, protocol: TCP}]}]}",
                )
                .listens("web-2", "0.0.0.0:8080/TCP")
        }),
        ("a port that no container declares", { Lab::new().pods("spec: {containers: [{name: main}]}") }),
        ("a packet that was answered", {
            Lab::new().seen(|evidence| {
                let to = "10.96.0.20:80/TCP".to_owned();
                let endpoint = "10.244.1.7:9376".parse().ok();
                evidence.live = Some(Live {
                    from: None,
                    to,
                    reply: Reply::Answered,
                    endpoint,
                    ended_by: None,
                    ended_by_us: false,
                    trace: Vec::new(),
                });
            })
        }),
        ("a client on its Node's network with the policy for it", {
            Lab::new().pod("client", "spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}")
        }),
        ("a client with settings of its own that lead to the cluster", {
            let config = "{nameservers: [10.96.0.10], searches: [svc.cluster.local]}";
            Lab::new().host("web.default").pod("client", &format!("spec: {{dnsPolicy: None, dnsConfig: {config}}}"))
        }),
    ]
}

fn shapes() -> Vec<(&'static str, Lab)> {
    let alias = "spec: {type: ExternalName, externalName: www.example.com, selector: null, clusterIP: '', clusterIPs: null, ports: null}";
    vec![
        ("headless", Lab::new().service("spec: {clusterIP: None, clusterIPs: [None]}")),
        ("headless at the Pods' port", Lab::new().service("spec: {clusterIP: None, clusterIPs: [None]}").port("9376")),
        ("headless without ports", Lab::new().service("spec: {clusterIP: None, clusterIPs: [None], ports: null}")),
        ("an alias for a name outside", Lab::new().service(alias)),
        ("an alias for another Service", {
            Lab::new().service(&alias.replace("www.example.com", "kube-dns.kube-system.svc.cluster.local"))
        }),
        ("an alias for a Service of several clusters", {
            Lab::new().service(&alias.replace("www.example.com", "web.shop.svc.clusterset.local"))
        }),
        ("an alias for a Service of another cluster, whose domain is longer", {
            Lab::new().service(&alias.replace("www.example.com", "web.shop.svc.cluster.local.example.com"))
        }),
        ("an alias for a database", {
            let ports = "ports: [{name: postgres, port: 5432, protocol: TCP}]";
            Lab::new().service(&alias.replace("ports: null", ports))
        }),
        ("headless with endpoints by hand at one port", {
            manual()
                .service("spec: {clusterIP: None, clusterIPs: [None], ports: [{name: http, port: 5432, targetPort: 5432, protocol: TCP}]}")
                .with(&slice("{}"))
        }),
        ("endpoints by hand", manual().with(&slice("{}"))),
        ("endpoints by hand without conditions or a targetRef, and a spare slice", {
            manual()
                .with(&slice("{}"))
                .with(&slice("{metadata: {name: db-2}, addressType: IPv6, endpoints: [{addresses: ['2001:db8::7']}]}"))
        }),
        ("headless with endpoints by hand and other port names", {
            manual()
                .service("spec: {clusterIP: None, clusterIPs: [None]}")
                .with(&slice("ports: [{name: other, port: 5432, protocol: TCP}]"))
        }),
        ("two families", {
            Lab::new()
                .service(DUAL)
                .pod("web-1", "status: {podIPs: [{ip: 10.244.1.7}, {ip: 'fd00:244:1::7'}]}")
                .pod("web-2", "status: {podIPs: [{ip: 10.244.2.8}, {ip: 'fd00:244:2::8'}]}")
        }),
        ("two families, and Pods of one", Lab::new().service(DUAL)),
        ("UDP", {
            Lab::new()
                .service("spec: {ports: [{name: dns, port: 53, targetPort: 9376, protocol: UDP}]}")
                .all_listen("0.0.0.0:9376/UDP")
        }),
        ("SCTP", {
            Lab::new()
                .service("spec: {ports: [{name: sig, port: 2905, targetPort: 2905, protocol: SCTP}]}")
                .all_listen("")
        }),
        ("two ports of the same number, TCP and UDP", {
            Lab::new()
                .service("spec: {ports: [{name: tcp, port: 53, targetPort: 9376, protocol: TCP}, {name: udp, port: 53, targetPort: 9376, protocol: UDP}]}")
                .all_listen("0.0.0.0:9376/TCP 0.0.0.0:9376/UDP")
        }),
        ("IPv6 addresses that are written at length", {
            Lab::new()
                .service("spec: {clusterIP: 'fd00:96::20', clusterIPs: ['fd00:96::20'], ipFamilies: [IPv6]}")
                .pod("web-1", "status: {podIP: 'fd00:244:1:0::7', podIPs: [{ip: 'fd00:244:1:0::7'}]}")
                .pod("web-2", "status: {podIP: 'fd00:244:2::8', podIPs: [{ip: 'fd00:244:2::8'}]}")
                .pod("client", "status: {podIP: 'fd00:244:1::99', podIPs: [{ip: 'fd00:244:1::99'}]}")
                .late_slice("web-0", "endpoints: [{addresses: ['fd00:244:1:0::7']}, {addresses: ['fd00:244:2::8']}]")
        }),
        ("Nodes that say nothing of themselves", {
            Lab::new().node("n1", "status: {conditions: null}").node("n2", "status: {conditions: null}")
        }),
        ("our own DNS server", Lab::new().about("kube-system", "kube-dns").own_dns()),
        ("session affinity", Lab::new().service("spec: {sessionAffinity: ClientIP}")),
        (
            "policy Local inside with an endpoint on every Node",
            Lab::new().service("spec: {internalTrafficPolicy: Local}"),
        ),
        ("a selector of several labels", {
            Lab::new()
                .service("spec: {selector: {tier: front, track: stable}}")
                .pods("metadata: {labels: {tier: front, track: stable}}")
        }),
        ("Endpoints beside slices", {
            Lab::new().with(
                "{kind: Endpoints, metadata: {name: web, namespace: default}, subsets: [{addresses: [{ip: 10.244.1.7}], ports: [{port: 9376}]}]}",
            )
        }),
        ("one Pod of weight 0", Lab::new().pod("web-2", "metadata: {annotations: {fairlead.dev/weight: '0'}}")),
    ]
}

fn rollouts() -> Vec<(&'static str, Lab)> {
    let unready = "status: {conditions: [{type: Ready, status: 'False'}]}";
    let starting =
        "status: {containerStatuses: [{name: main, ready: false, state: {waiting: {reason: ContainerCreating}}}]}";
    let gone = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}";
    vec![
        ("an old Pod on its way out", Lab::new().pod("web-2", gone)),
        ("a new Pod that starts", Lab::new().pod("web-2", unready).pod("web-2", starting)),
        ("a new Pod without an address", {
            Lab::new()
                .pod("web-2", unready)
                .pod("web-2", starting)
                .pod("web-2", "status: {phase: Pending, podIP: null, podIPs: null}")
        }),
        ("a new Pod whose probe has not had its turn", {
            let probed = "{spec: {containers: [{name: main, readinessProbe: {tcpSocket: {port: 9376}}}]},
                status: {containerStatuses: [{name: main, ready: false, state: {running: {}}}]}}";
            Lab::new().pod("web-2", unready).pod("web-2", probed)
        }),
        (
            "a Pod of a Job that is done",
            Lab::new().pod("web-2", "status: {phase: Succeeded, conditions: [{type: Ready, status: 'False'}]}"),
        ),
        ("Pods that are published before they are ready", {
            Lab::new().service("spec: {publishNotReadyAddresses: true}").pods(unready).pods(
                "{spec: {containers: [{name: main, readinessProbe: {}, ports: [{name: http, containerPort: 9376}]}]},
                  status: {containerStatuses: [{name: main, ready: false, state: {running: {}}}]}}",
            )
        }),
        ("a container that was started again and runs", {
            Lab::new().pods("status: {containerStatuses: [{name: main, ready: true, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}")
        }),
    ]
}

fn outside() -> Vec<(&'static str, Lab)> {
    let node_port =
        "spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080, protocol: TCP}]}";
    let balanced = |ingress: &str| {
        Lab::new()
            .service(&node_port.replace("NodePort,", "LoadBalancer,"))
            .service(&format!("status: {{loadBalancer: {{ingress: [{ingress}]}}}}"))
            .from(From::Outside(None))
    };
    vec![
        ("a node port", Lab::new().service(node_port).from(From::Outside(None)).port("30080")),
        ("a node port, asked from inside", Lab::new().service(node_port)),
        ("an external IP", Lab::new().service("spec: {externalIPs: [192.0.2.99]}").from(From::Outside(None))),
        ("a load balancer", balanced("{ip: 192.0.2.65, ipMode: VIP}")),
        ("a load balancer that proxies", balanced("{ip: 192.0.2.65, ipMode: Proxy}")),
        ("a load balancer with a name", { balanced("{hostname: lb.example.com}").port("30080") }),
        ("source ranges with the client", {
            balanced("{ip: 192.0.2.65}").service("spec: {loadBalancerSourceRanges: [198.51.100.0/24]}")
        }),
        ("two Services that share a load balancer's address", {
            balanced("{ip: 192.0.2.65}").with(
                "{kind: Service, metadata: {name: other, namespace: default}, spec: {type: LoadBalancer, selector: {app: web},
                   clusterIP: 10.96.0.30, clusterIPs: [10.96.0.30], ports: [{port: 443, targetPort: 9376}]},
                  status: {loadBalancer: {ingress: [{ip: 192.0.2.65}]}}}",
            )
        }),
        ("policy Local outside with an endpoint here", {
            Lab::new()
                .service(node_port)
                .service("spec: {externalTrafficPolicy: Local}")
                .from(From::Outside(None))
                .port("30080")
        }),
        ("an answer after a name of the search path that does not exist", {
            Lab::new().host("web.default").seen(|evidence| {
                let right = DnsReply::Addresses(vec!["10.96.0.20".parse().expect("an address")]);
                let tried = vec![
                    ("web.default.default.svc.cluster.local.".to_owned(), DnsReply::NxDomain),
                    ("web.default.svc.cluster.local.".to_owned(), right),
                ];
                evidence.dns = Some(Dns { name: "web.default".to_owned(), server: None, tried });
            })
        }),
    ]
}
