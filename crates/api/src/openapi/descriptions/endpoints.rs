//! EndpointSlice, Endpoints and what they are made of.

use super::{Text, of};

pub(super) const TEXTS: &[Text] = &[
    of(
        "discovery.v1.EndpointSlice",
        "An EndpointSlice holds some of the endpoints of a Service. All slices with the label kubernetes.io/service-name of the Service together are its endpoints.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            (
                "addressType",
                "The kind of all addresses in this slice: IPv4, IPv6 or, deprecated, FQDN. It cannot change.",
            ),
            ("endpoints", "The endpoints, at most 1000."),
            ("ports", "The ports that each endpoint of this slice has, at most 100. An empty list means no ports."),
        ],
    ),
    of(
        "discovery.v1.Endpoint",
        "One backend of a Service.",
        &[
            ("addresses", "The addresses of the endpoint, at least one. Only the first is used."),
            ("conditions", "Whether the endpoint is fit for traffic."),
            (
                "hostname",
                "The host name of the endpoint, a DNS label. It gives the endpoint a DNS name of its own under a headless Service.",
            ),
            ("targetRef", "The object behind the endpoint, as a rule a Pod."),
            (
                "deprecatedTopology",
                "What the older v1beta1 API wrote about the place of the endpoint. It cannot be written; see nodeName and zone.",
            ),
            ("nodeName", "The node where the endpoint is."),
            ("zone", "The zone where the endpoint is."),
            ("hints", "Who should use this endpoint."),
        ],
    ),
    of(
        "discovery.v1.EndpointConditions",
        "Whether an endpoint is fit for traffic.",
        &[
            (
                "ready",
                "The endpoint may get traffic. Left out counts as true. As a rule it is serving and not terminating.",
            ),
            ("serving", "The endpoint can answer, even if it is on its way out. Left out counts as true."),
            ("terminating", "The endpoint is on its way out. Left out counts as false."),
        ],
    ),
    of(
        "discovery.v1.EndpointHints",
        "Who should use an endpoint.",
        &[
            ("forZones", "The zones whose clients should use the endpoint, at most 8."),
            ("forNodes", "The nodes whose clients should use the endpoint, at most 8."),
        ],
    ),
    of("discovery.v1.ForZone", "A zone that should use an endpoint.", &[("name", "The name of the zone.")]),
    of("discovery.v1.ForNode", "A node that should use an endpoint.", &[("name", "The name of the node.")]),
    of(
        "discovery.v1.EndpointPort",
        "A port of the endpoints in a slice.",
        &[
            ("name", "The name of the port, the same as in the Service. Names are unique within a slice."),
            ("protocol", "TCP, UDP or SCTP. Defaults to TCP."),
            ("port", "The number of the port. Left out it stands for all ports."),
            ("appProtocol", "The application protocol, as a hint for those who understand it."),
        ],
    ),
    of(
        "core.v1.Endpoints",
        "Endpoints lists the addresses of a Service in the older form. Deprecated: see EndpointSlice.",
        &[
            ("metadata", "Name, namespace, labels and everything else that all objects have."),
            ("subsets", "Addresses that have the same ports."),
        ],
    ),
    of(
        "core.v1.EndpointSubset",
        "Addresses that have the same ports: every address has every port.",
        &[
            ("addresses", "The addresses that may get traffic."),
            ("notReadyAddresses", "The addresses that may not get traffic yet."),
            ("ports", "The ports of all these addresses."),
        ],
    ),
    of(
        "core.v1.EndpointAddress",
        "The address of one backend.",
        &[
            ("ip", "The address; neither loopback nor link-local."),
            ("hostname", "The host name of the endpoint, a DNS label."),
            ("nodeName", "The node where the endpoint is."),
            ("targetRef", "The object behind the address."),
        ],
    ),
    of(
        "core.v1.EndpointPort",
        "A port of backends.",
        &[
            ("name", "The name of the port, the same as in the Service."),
            ("port", "The number of the port."),
            ("protocol", "TCP, UDP or SCTP. Defaults to TCP."),
            ("appProtocol", "The application protocol, as a hint for those who understand it."),
        ],
    ),
    of(
        "core.v1.ObjectReference",
        "Another object, or a part of one.",
        &[
            ("kind", "The kind of the object."),
            ("namespace", "The namespace of the object."),
            ("name", "The name of the object."),
            ("uid", "The UID of the object."),
            ("apiVersion", "The group and version of the object."),
            ("resourceVersion", "The version of the object that is meant, if it is a particular one."),
            ("fieldPath", "The part of the object that is meant, such as spec.containers{name}."),
        ],
    ),
];
