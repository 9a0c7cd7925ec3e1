//! Service, ServiceCIDR, IPAddress and what they are made of.

use super::{Text, of};

pub(super) const TEXTS: &[Text] = &[
    of(
        "core.v1.Service",
        "A Service gives a set of endpoints one stable name and address, and spreads connections over them.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            ("spec", "What the Service should be: its type, ports, selector and policies."),
            ("status", "What became of it: the addresses of its load balancer, and conditions. Written by the system."),
        ],
    ),
    of(
        "core.v1.ServiceSpec",
        "What a user asks of a Service.",
        &[
            ("ports", "The ports the Service listens on, and where each of them leads."),
            (
                "selector",
                "Pods with all of these labels are the endpoints of the Service. Without a selector the endpoints are made by someone else. Ignored for type ExternalName.",
            ),
            (
                "clusterIP",
                "The virtual address of the Service inside the cluster. Chosen from the service range when left out; \"None\" makes the Service headless; it cannot change once set.",
            ),
            ("clusterIPs", "The virtual addresses, at most one of each IP family. The first is the same as clusterIP."),
            (
                "type",
                "How the Service is reached: ClusterIP inside the cluster only, NodePort also on a port of every node, LoadBalancer also through a load balancer, ExternalName as an alias in DNS without any proxying. Defaults to ClusterIP.",
            ),
            (
                "externalIPs",
                "Further addresses whose traffic the nodes accept for this Service. Whoever runs the network must route them to a node.",
            ),
            (
                "sessionAffinity",
                "ClientIP sends the connections of one client to the same endpoint; None does not. Defaults to None.",
            ),
            (
                "loadBalancerIP",
                "Deprecated: the address a load balancer should take, where its implementation looks at this field.",
            ),
            (
                "loadBalancerSourceRanges",
                "Only clients in these address ranges may use the load balancer, where the implementation can restrict them.",
            ),
            ("externalName", "The DNS name that a Service of type ExternalName is an alias of, in lower case."),
            (
                "externalTrafficPolicy",
                "What happens to traffic from outside: Cluster spreads it over all endpoints, Local keeps it on the node where it arrives and keeps the client's address.",
            ),
            (
                "healthCheckNodePort",
                "The node port on which nodes say whether they have local endpoints. Only for load balancers with the external policy Local; chosen when left out.",
            ),
            (
                "publishNotReadyAddresses",
                "Endpoints count as ready even when their Pods are not, so that DNS names them early.",
            ),
            ("sessionAffinityConfig", "Details of the session affinity."),
            (
                "ipFamilies",
                "IPv4, IPv6 or both, in the order of the addresses. Chosen by the policy and the ranges of the cluster when left out.",
            ),
            (
                "ipFamilyPolicy",
                "SingleStack takes one IP family, PreferDualStack two where the cluster has them, RequireDualStack two or fails. Defaults to SingleStack.",
            ),
            (
                "allocateLoadBalancerNodePorts",
                "Whether a load balancer gets node ports too. Set to false where the implementation does not need them. Defaults to true.",
            ),
            (
                "loadBalancerClass",
                "Which load balancer implementation should serve this Service, such as example.com/internal. It can be set only when the type becomes LoadBalancer.",
            ),
            (
                "internalTrafficPolicy",
                "What happens to traffic from inside the cluster: Cluster spreads it over all endpoints, Local uses only endpoints on the client's own node. Defaults to Cluster.",
            ),
            (
                "topologyKeys",
                "Node labels in order of preference: endpoints on nodes that share the first of them are used, else the \
                 second, and so on; * means any. Only with the feature gate ServiceTopology.",
            ),
            (
                "trafficDistribution",
                "A wish where traffic should go if it can: PreferSameZone (also called PreferClose) or PreferSameNode.",
            ),
        ],
    ),
    of(
        "core.v1.ServicePort",
        "One port of a Service.",
        &[
            (
                "name",
                "The name of the port, a DNS label. It may be left out if there is one port only, and must be the same as in the endpoints.",
            ),
            ("protocol", "TCP, UDP or SCTP. Defaults to TCP."),
            (
                "appProtocol",
                "The application protocol, as a hint for those who understand it: a name registered with IANA, kubernetes.io/h2c, kubernetes.io/ws, kubernetes.io/wss, or a name with a prefix of your own.",
            ),
            ("port", "The number of the port on the Service's addresses."),
            (
                "targetPort",
                "The number or the name of the port on the Pods. A name is looked up in each Pod's containers. Defaults to the value of port.",
            ),
            (
                "nodePort",
                "The port on every node, for the types NodePort and LoadBalancer. Chosen from the node port range when left out.",
            ),
        ],
    ),
    of(
        "core.v1.SessionAffinityConfig",
        "Details of the session affinity.",
        &[("clientIP", "Details of the affinity by client address.")],
    ),
    of(
        "core.v1.ClientIPConfig",
        "Details of the affinity by client address.",
        &[(
            "timeoutSeconds",
            "How long a client stays with its endpoint, from 1 second to one day. Defaults to 10800, three hours.",
        )],
    ),
    of(
        "core.v1.ServiceStatus",
        "What became of a Service.",
        &[
            ("loadBalancer", "The state of the load balancer, if there is one."),
            ("conditions", "What is known about the Service, one entry a type."),
        ],
    ),
    of(
        "core.v1.LoadBalancerStatus",
        "The state of a load balancer.",
        &[("ingress", "Where the load balancer takes traffic in.")],
    ),
    of(
        "core.v1.LoadBalancerIngress",
        "One point where a load balancer takes traffic in: an address or a host name.",
        &[
            ("ip", "The address, for load balancers that have one."),
            ("hostname", "The host name, for load balancers that are known by name."),
            (
                "ipMode",
                "VIP if packets reach the node with this address as their destination, Proxy if the load balancer opens connections of its own. Set only together with ip.",
            ),
            ("ports", "The state of each port of the Service."),
        ],
    ),
    of(
        "core.v1.PortStatus",
        "The state of one port of a load balancer.",
        &[
            ("port", "The number of the port."),
            ("protocol", "TCP, UDP or SCTP."),
            (
                "error",
                "Why the port does not work, as a reason in CamelCase, with a prefix if it is peculiar to a provider.",
            ),
        ],
    ),
    of(
        "networking.v1.ServiceCIDR",
        "A ServiceCIDR is a range from which cluster addresses of Services are taken.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            ("spec", "The ranges."),
            ("status", "Whether they are in use. Written by the system."),
        ],
    ),
    of(
        "networking.v1.ServiceCIDRSpec",
        "The ranges of a ServiceCIDR.",
        &[("cidrs", "One range of addresses, or one of each IP family. It cannot change once set.")],
    ),
    of(
        "networking.v1.ServiceCIDRStatus",
        "What became of a ServiceCIDR.",
        &[("conditions", "What is known about the ServiceCIDR, one entry a type, such as Ready.")],
    ),
    of(
        "networking.v1.IPAddress",
        "An IPAddress says that an address is taken, and by whom. Its name is the address.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            ("spec", "Who has the address."),
        ],
    ),
    of(
        "networking.v1.IPAddressSpec",
        "Who has an address.",
        &[("parentRef", "The object that the address belongs to, as a rule a Service.")],
    ),
    of(
        "networking.v1.ParentReference",
        "An object that something belongs to.",
        &[
            ("group", "The API group of the object, empty for the core group."),
            ("resource", "The resource in the plural, such as services."),
            ("namespace", "The namespace of the object."),
            ("name", "The name of the object."),
        ],
    ),
];
