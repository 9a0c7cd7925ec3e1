//! Endpoints that are as they should be, and a way to them that is not: DNS, load balancers, policies, rules, the network.

use std::net::IpAddr;

use fairlead_api::source::Key;
use fairlead_explain::{Cause, Dns, DnsReply, From, Live, Reply};

use crate::lab::{Lab, Row, component, dns, row, warns};

pub(crate) fn rows() -> Vec<Row> {
    [names(), resolvers(), balancers(), policies(), rules(), network(), replies()].into_iter().flatten().collect()
}

const WHOLE: &str = "web.default.svc.cluster.local.";

fn told(lab: Lab, answer: Dns) -> Lab {
    lab.seen(|evidence| evidence.dns = Some(answer))
}

fn address(text: &str) -> DnsReply {
    DnsReply::Addresses(vec![text.parse().expect("an address")])
}

fn names() -> Vec<Row> {
    let reply = |reply: DnsReply| told(Lab::new(), dns(WHOLE, &[(WHOLE, reply)]));
    vec![
        row("a DNS server that does not answer", Cause::DnsSilent, reply(DnsReply::Silence("timed out".to_owned()))),
        row("a DNS server that is not ready", Cause::DnsFails, reply(DnsReply::Failure("SERVFAIL".to_owned()))),
        row("a DNS server that does not know the Service", Cause::DnsNameMissing, reply(DnsReply::NxDomain)),
        row("a DNS server with an earlier cluster IP", Cause::DnsAnswerDiffers, reply(address("10.96.0.99"))),
        row(
            "a DNS server with an earlier Pod of a headless Service",
            Cause::DnsAnswerDiffers,
            told(
                Lab::new().service("spec: {clusterIP: None, clusterIPs: [None]}"),
                dns(WHOLE, &[(WHOLE, address("10.244.1.200"))]),
            ),
        ),
    ]
}

fn resolvers() -> Vec<Row> {
    let nowhere = |lab: Lab| told(lab, dns(WHOLE, &[(WHOLE, DnsReply::NxDomain)]));
    let shop =
        || Lab::new().with_pod("shop", "cart", "10.244.1.50", "n1", "cart").from(From::Pod(Key::new("shop", "cart")));
    let unseen = |lab: Lab| lab.seen(|evidence| evidence.dns = None);
    vec![
        row("a client with dnsPolicy Default", Cause::DnsPolicySkipsCluster, nowhere(Lab::new().pod("client", "spec: {dnsPolicy: Default}"))),
        row("a client with dnsPolicy Default, not asked", Cause::DnsPolicySkipsCluster, unseen(Lab::new().pod("client", "spec: {dnsPolicy: Default}"))),
        row("a client on its Node's network", Cause::DnsPolicySkipsCluster, nowhere(Lab::new().pod("client", "spec: {hostNetwork: true}"))),
        row(
            "a client with a server of its own",
            Cause::DnsPolicyNone,
            nowhere(Lab::new().pod("client", "spec: {dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.53]}}")),
        ),
        row(
            "the short name in another namespace",
            Cause::ShortNameOfOtherNamespace,
            told(shop().host("web"), dns("web", &[("web.shop.svc.cluster.local.", DnsReply::NxDomain), ("web.", DnsReply::NxDomain)])),
        ),
        row(
            "the short name in a namespace that has such a Service, too",
            Cause::ShortNameOfOtherNamespace,
            told(shop().host("web"), dns("web", &[("web.shop.svc.cluster.local.", address("10.96.0.77"))])),
        ),
        row("the short name in another namespace, not asked", Cause::ShortNameOfOtherNamespace, unseen(shop().host("web"))),
        row(
            "a short name that exists outside",
            Cause::NdotsTooLow,
            told(
                shop().host("web.default").with(
                    "{kind: Event, metadata: {name: unrelated, namespace: shop}, type: Normal, involvedObject: {kind: Pod, namespace: shop, name: cart}}",
                ),
                dns("web.default", &[("web.default.", address("203.0.113.5"))]),
            )
            .seen(|evidence| {
                let search = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"].map(str::to_owned).to_vec();
                evidence.resolver = Some(fairlead_explain::Resolver { servers: Vec::new(), search, ndots: 1 });
            }),
        ),
        row(
            "a search path without the cluster",
            Cause::SearchPathIncomplete,
            told(
                Lab::new()
                    .host("web.default")
                    .pod("client", "spec: {dnsPolicy: None, dnsConfig: {nameservers: [10.96.0.10], searches: [example.com]}}"),
                dns("web.default", &[("web.default.example.com.", DnsReply::NxDomain), ("web.default.", DnsReply::NxDomain)]),
            ),
        ),
    ]
}

const BALANCED: &str =
    "spec: {type: LoadBalancer, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080, protocol: TCP}]}";

fn balancers() -> Vec<Row> {
    let outside = || Lab::new().service(BALANCED).from(From::Outside(None));
    let no_packet = |lab: Lab| lab.seen(|evidence| evidence.decisions.clear());
    vec![
        row("a load balancer that waits", Cause::LoadBalancerPending, no_packet(outside())),
        row(
            "a load balancer whose pool is used up",
            Cause::LoadBalancerPending,
            no_packet(outside()).with(
                "{kind: Event, metadata: {name: e, namespace: default}, type: Warning, reason: AllocationFailed,
                   message: 'every address of pool lan is taken', involvedObject: {kind: Service, namespace: default, name: web}}",
            ),
        ),
        row(
            "a load balancer that waits, and an Event of something else",
            Cause::LoadBalancerPending,
            no_packet(outside()).with(
                "{kind: Event, metadata: {name: e, namespace: default}, type: Warning, reason: LabelValueDiffers,
                   message: 'an earlier finding', source: {component: fairlead-explain},
                   involvedObject: {kind: Service, namespace: default, name: web}}",
            ),
        ),
        warns("a load balancer that waits, asked from inside", Cause::LoadBalancerPending, Lab::new().service(BALANCED)),
        row(
            "no load balancer runs",
            Cause::LoadBalancerMissing,
            no_packet(outside()).seen(|evidence| evidence.balancer = Some(fairlead_explain::Balancer::default())),
        ),
        row(
            "a class of somebody else",
            Cause::LoadBalancerClassUnknown,
            no_packet(outside().service("spec: {loadBalancerClass: example.com/cloud}")),
        ),
        row(
            "no pool of addresses",
            Cause::LoadBalancerNoPool,
            no_packet(outside()).seen(|evidence| evidence.balancer.as_mut().expect("it was seen").pools = Some(Vec::new())),
        ),
        row(
            "a port of the load balancer that fails",
            Cause::LoadBalancerPortFails,
            outside().service("status: {loadBalancer: {ingress: [{ip: 192.0.2.65, ports: [{port: 80, protocol: TCP, error: PortInUse}]}]}}"),
        ),
        row(
            "a port without its certificate",
            Cause::LoadBalancerPortFails,
            Lab::new().service("{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.65, ipMode: Proxy, ports: [{port: 80, protocol: TCP, error: fairlead.dev/CertificateMissing}]}]}}}"),
        ),
        row(
            "an address that cannot be guarded",
            Cause::LoadBalancerNotAnnounced,
            outside().service("status: {loadBalancer: {ingress: [{ip: 192.0.2.65}]}}").with(
                "{kind: Event, metadata: {name: e, namespace: default}, type: Warning, reason: AddressUnguarded,
                  message: 192.0.2.65 is not announced by node n1, lastTimestamp: 2026-01-01T00:00:00Z,
                  involvedObject: {kind: Service, namespace: default, name: web}}",
            ),
        ),
    ]
}

fn policies() -> Vec<Row> {
    let ingress = "status: {loadBalancer: {ingress: [{ip: 192.0.2.65, ipMode: VIP}]}}";
    let only_there = || Lab::new().without("Pod", "web-1");
    vec![
        row(
            "policy Local inside, and the endpoint elsewhere",
            Cause::NoLocalEndpoint,
            only_there().service("spec: {internalTrafficPolicy: Local}"),
        ),
        row(
            "policy Local inside, and nobody made a plan",
            Cause::NoLocalEndpoint,
            only_there()
                .service("spec: {internalTrafficPolicy: Local}")
                .seen(|evidence| evidence.decisions.clear()),
        ),
        row(
            "policy Local outside, and the endpoint elsewhere",
            Cause::NoLocalEndpoint,
            only_there()
                .service("spec: {type: NodePort, externalTrafficPolicy: Local, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080, protocol: TCP}]}")
                .from(From::Outside(None))
                .port("30080"),
        ),
        warns(
            "policy Local at a load balancer, and the endpoint on another Node, which draws packets to itself",
            Cause::NoLocalEndpoint,
            only_there()
                .service(BALANCED)
                .service("spec: {externalTrafficPolicy: Local}")
                .service(ingress)
                .from(From::Outside(None)),
        ),
        row(
            "policy Local at a load balancer's node port, and the endpoint on another Node",
            Cause::NoLocalEndpoint,
            only_there()
                .service(BALANCED)
                .service("spec: {externalTrafficPolicy: Local}")
                .from(From::Outside(None))
                .port("30080"),
        ),
        row(
            "source ranges without the client",
            Cause::SourceNotAllowed,
            Lab::new()
                .service(BALANCED)
                .service("spec: {loadBalancerSourceRanges: [203.0.113.0/24]}")
                .service(ingress)
                .from(From::Outside("198.51.100.9".parse::<IpAddr>().ok())),
        ),
        row(
            "topology keys that no endpoint has",
            Cause::NoTopologyMatch,
            only_there().service("spec: {topologyKeys: [kubernetes.io/hostname]}").node("n1", "metadata: {labels: {kubernetes.io/hostname: n1}}"),
        ),
        row(
            "a family the proxy does not handle",
            Cause::FamilyNotProxied,
            Lab::new().seen(|evidence| {
                let steps = vec![fairlead_plan::Step::FamilyNotProxied(fairlead_plan::Family::V4)];
                evidence.decisions[0].decision = fairlead_plan::Decision { verdict: fairlead_plan::Verdict::NotOurs, steps };
            }),
        ),
        row(
            "a node port on an address that serves none",
            Cause::NodePortNotServedHere,
            Lab::new()
                .service("spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080, protocol: TCP}]}")
                .from(From::Outside(None))
                .port("30080")
                .seen(|evidence| {
                    let address = "192.0.2.1".parse().expect("an address");
                    let steps = vec![fairlead_plan::Step::NodePortNotServedHere { address }];
                    evidence.decisions[0].decision = fairlead_plan::Decision { verdict: fairlead_plan::Verdict::NotOurs, steps };
                }),
        ),
        row(
            "a plan that refuses for a reason of its own",
            Cause::PlanRefuses,
            Lab::new().seen(|evidence| {
                evidence.decisions[0].decision = fairlead_plan::Decision {
                    verdict: fairlead_plan::Verdict::Drop,
                    steps: vec![fairlead_plan::Step::NobodysClusterIp],
                };
            }),
        ),
    ]
}

fn rules() -> Vec<Row> {
    let flushed = |lab: Lab| lab.seen(|evidence| evidence.rules.as_mut().expect("seen").frontends.clear());
    let stale = |lab: Lab| {
        lab.seen(|evidence| {
            for held in evidence.rules.as_mut().expect("seen").frontends.values_mut() {
                *held = Some(["10.244.1.200:9376".parse().expect("an address")].into());
            }
        })
    };
    let proxy = |lab: Lab, change: fn(&mut fairlead_explain::Component)| {
        lab.seen(move |evidence| {
            let mut proxy = component("the proxy of Node n1");
            change(&mut proxy);
            evidence.proxy = Some(proxy);
        })
    };
    let silent = |lab: Lab| told(lab, dns(WHOLE, &[(WHOLE, DnsReply::Silence("timed out".to_owned()))]));
    let dead = |proxy: &mut fairlead_explain::Component| proxy.alive = false;
    vec![
        row("rules that somebody flushed", Cause::RulesMissing, flushed(Lab::new())),
        row("no rules, and therefore no DNS", Cause::RulesMissing, silent(flushed(Lab::new()))),
        row(
            "no proxy, no rules, and therefore no DNS",
            Cause::ProxyNotRunning,
            proxy(silent(flushed(Lab::new())), dead),
        ),
        Row {
            alone: false,
            ..row(
                "no rules, and no answer of a DNS server that needs none",
                Cause::DnsSilent,
                silent(flushed(Lab::new().own_dns())),
            )
        },
        row("right rules of a proxy that is gone, and no DNS", Cause::DnsSilent, proxy(silent(Lab::new()), dead)),
        row("rules that lead to an earlier Pod", Cause::RulesStale, stale(Lab::new())),
        warns(
            "rules that lack one of two endpoints",
            Cause::RulesStale,
            Lab::new().seen(|evidence| {
                for held in evidence.rules.as_mut().expect("seen").frontends.values_mut() {
                    *held = Some(["10.244.1.7:9376".parse().expect("an address")].into());
                }
            }),
        ),
        row("no rules, and no proxy", Cause::ProxyNotRunning, proxy(flushed(Lab::new()), dead)),
        row("earlier rules, and no proxy", Cause::ProxyNotRunning, proxy(stale(Lab::new()), dead)),
        warns("right rules, and no proxy", Cause::ProxyNotRunning, proxy(Lab::new(), dead)),
        row(
            "no proxy, and nobody looked at rules",
            Cause::ProxyNotRunning,
            proxy(Lab::new(), dead).seen(|evidence| evidence.rules = None),
        ),
        row(
            "no rules, and a proxy that cannot write them",
            Cause::ProxyFails,
            proxy(flushed(Lab::new()), |proxy| proxy.error = Some("operation not permitted".to_owned())),
        ),
        row("no rules yet", Cause::ProxyBehind, proxy(flushed(Lab::new()), |proxy| proxy.behind = Some(7))),
        warns(
            "no rules for the external IP, asked from inside",
            Cause::RulesMissing,
            Lab::new().service("spec: {externalIPs: [192.0.2.99]}").seen(|evidence| {
                let external = |key: &fairlead_plan::FrontendKey| key.to_string().starts_with("192.0.2.99");
                evidence.rules.as_mut().expect("seen").frontends.retain(|key, _| !external(key));
            }),
        ),
    ]
}

fn network() -> Vec<Row> {
    let off = |lab: Lab| lab.seen(|evidence| evidence.forwarding.as_mut().expect("seen").v4 = Some(false));
    vec![
        row("a kernel that does not forward", Cause::ForwardingOff, off(Lab::new())),
        warns(
            "a kernel that does not forward, asked on the Node",
            Cause::ForwardingOff,
            off(Lab::new().from(From::Node(None))),
        ),
        warns("a kernel that forwards one family of two", Cause::ForwardingOff, {
            off(Lab::new().service(crate::healthy::DUAL))
        }),
        Row {
            alone: false,
            ..row("a kernel that forwards none of two families", Cause::ForwardingOff, {
                off(Lab::new().service(crate::healthy::DUAL))
                    .seen(|evidence| evidence.forwarding.as_mut().expect("seen").v6 = Some(false))
            })
        },
        row(
            "a firewall that drops",
            Cause::ForeignRuleDrops,
            Lab::new()
                .seen(|evidence| evidence.foreign = Some(vec!["inet filter forward: tcp dport 9376 drop".to_owned()])),
        ),
        row(
            "a firewall that dropped a packet",
            Cause::ForeignRuleDrops,
            Lab::new().seen(|evidence| {
                evidence.foreign = None;
                evidence.live =
                    Some(Live { ended_by: Some("inet filter forward: drop".to_owned()), ..live(Reply::Nothing) });
            }),
        ),
    ]
}

fn live(reply: Reply) -> Live {
    Live {
        from: None,
        to: "10.96.0.20:80/TCP".to_owned(),
        reply,
        endpoint: Some("10.244.1.7:9376".parse().expect("an address")),
        ended_by: None,
        ended_by_us: false,
        trace: Vec::new(),
    }
}

fn replies() -> Vec<Row> {
    let sent = |reply: Reply| {
        Lab::new().seen(|evidence| {
            evidence.sockets.clear();
            evidence.live = Some(live(reply));
        })
    };
    vec![
        row("a packet that is refused", Cause::ConnectionRefused, sent(Reply::Refused)),
        row("a packet that is lost", Cause::NoReply, sent(Reply::Nothing)),
        row(
            "a packet that cannot be sent",
            Cause::SendFailed,
            sent(Reply::Failed("Network is unreachable".to_owned())),
        ),
    ]
}
