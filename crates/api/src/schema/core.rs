//! The core group: Service, Endpoints, Namespace, Event, ConfigMap, Secret, ServiceAccount,
//! ReplicationController.

use super::pod::POD_TEMPLATE_SPEC;
use super::{Field, Gate, Shape, Struct, TEXT, field, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.core.v1", fields, atomic: false }
}

/// `Binding`.
pub static BINDING: Struct = message(
    "Binding",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "target", Object(&OBJECT_REFERENCE)).always().required(),
    ],
);

/// `ClientIPConfig`.
pub static CLIENT_IP_CONFIG: Struct = message("ClientIPConfig", &[field(1, "timeoutSeconds", Shape::Int32).pointer()]);

/// `ConfigMap`.
pub static CONFIG_MAP: Struct = message(
    "ConfigMap",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(4, "immutable", Shape::Bool).pointer(),
        field(2, "data", Map(&TEXT)),
        field(3, "binaryData", Map(&Shape::Bytes)),
    ],
);

/// `Endpoints`.
pub static ENDPOINTS: Struct = message(
    "Endpoints",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "subsets", List(&Object(&ENDPOINT_SUBSET)))],
);

/// `EndpointAddress`.
pub static ENDPOINT_ADDRESS: Struct = message(
    "EndpointAddress",
    &[
        field(1, "ip", TEXT).always().required(),
        field(3, "hostname", TEXT),
        field(4, "nodeName", TEXT).pointer(),
        field(2, "targetRef", Object(&OBJECT_REFERENCE)).pointer(),
    ],
)
.atomic();

/// `EndpointPort`.
pub static ENDPOINT_PORT: Struct = message(
    "EndpointPort",
    &[
        field(1, "name", TEXT),
        field(2, "port", Shape::Int32).always().required(),
        field(3, "protocol", Text("v1.Protocol")).values(&["SCTP", "TCP", "UDP"]),
        field(4, "appProtocol", TEXT).pointer(),
    ],
)
.atomic();

/// `EndpointSubset`.
pub static ENDPOINT_SUBSET: Struct = message(
    "EndpointSubset",
    &[
        field(1, "addresses", List(&Object(&ENDPOINT_ADDRESS))),
        field(2, "notReadyAddresses", List(&Object(&ENDPOINT_ADDRESS))),
        field(3, "ports", List(&Object(&ENDPOINT_PORT))),
    ],
);

/// `Event`.
pub static EVENT: Struct = message(
    "Event",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)).always().required(),
        field(2, "involvedObject", Object(&OBJECT_REFERENCE)).always().required(),
        field(3, "reason", TEXT),
        field(4, "message", TEXT),
        field(5, "source", Object(&EVENT_SOURCE)),
        field(6, "firstTimestamp", Shape::Time).always(),
        field(7, "lastTimestamp", Shape::Time).always(),
        field(8, "count", Shape::Int32),
        field(9, "type", TEXT),
        field(10, "eventTime", Shape::MicroTime).always(),
        field(11, "series", Object(&EVENT_SERIES)).pointer(),
        field(12, "action", TEXT),
        field(13, "related", Object(&OBJECT_REFERENCE)).pointer(),
        field(14, "reportingComponent", TEXT).always(),
        field(15, "reportingInstance", TEXT).always(),
    ],
);

/// `EventSeries`.
pub static EVENT_SERIES: Struct =
    message("EventSeries", &[field(1, "count", Shape::Int32), field(2, "lastObservedTime", Shape::MicroTime).always()]);

/// `EventSource`.
pub static EVENT_SOURCE: Struct = message("EventSource", &[field(1, "component", TEXT), field(2, "host", TEXT)]);

/// `LoadBalancerIngress`.
pub static LOAD_BALANCER_INGRESS: Struct = message(
    "LoadBalancerIngress",
    &[
        field(1, "ip", TEXT),
        field(2, "hostname", TEXT),
        field(3, "ipMode", Text("v1.LoadBalancerIPMode")).pointer(),
        field(4, "ports", List(&Object(&PORT_STATUS))),
    ],
);

/// `LoadBalancerStatus`.
pub static LOAD_BALANCER_STATUS: Struct =
    message("LoadBalancerStatus", &[field(1, "ingress", List(&Object(&LOAD_BALANCER_INGRESS)))]);

/// `LocalObjectReference`.
pub static LOCAL_OBJECT_REFERENCE: Struct =
    message("LocalObjectReference", &[field(1, "name", TEXT).default("")]).atomic();

/// `Namespace`.
pub static NAMESPACE: Struct = message(
    "Namespace",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&NAMESPACE_SPEC)),
        field(3, "status", Object(&NAMESPACE_STATUS)),
    ],
);

/// `NamespaceCondition`.
pub static NAMESPACE_CONDITION: Struct = message(
    "NamespaceCondition",
    &[
        field(1, "type", Text("v1.NamespaceConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(4, "lastTransitionTime", Shape::Time).always(),
        field(5, "reason", TEXT),
        field(6, "message", TEXT),
    ],
);

/// `NamespaceSpec`.
pub static NAMESPACE_SPEC: Struct =
    message("NamespaceSpec", &[field(1, "finalizers", List(&Text("v1.FinalizerName")))]);

/// `NamespaceStatus`.
pub static NAMESPACE_STATUS: Struct = message(
    "NamespaceStatus",
    &[
        field(1, "phase", Text("v1.NamespacePhase")).values(&["Active", "Terminating"]),
        field(2, "conditions", List(&Object(&NAMESPACE_CONDITION))).keys(&["type"]).merge("type"),
    ],
);

/// `ObjectReference`.
pub static OBJECT_REFERENCE: Struct = message(
    "ObjectReference",
    &[
        field(1, "kind", TEXT),
        field(2, "namespace", TEXT),
        field(3, "name", TEXT),
        field(4, "uid", Text("types.UID")),
        field(5, "apiVersion", TEXT),
        field(6, "resourceVersion", TEXT),
        field(7, "fieldPath", TEXT),
    ],
)
.atomic();

/// `PortStatus`.
pub static PORT_STATUS: Struct = message(
    "PortStatus",
    &[
        field(1, "port", Shape::Int32).always().required(),
        field(2, "protocol", Text("v1.Protocol")).always().required().values(&["SCTP", "TCP", "UDP"]),
        field(3, "error", TEXT).pointer(),
    ],
);

/// `ReplicationController`.
pub static REPLICATION_CONTROLLER: Struct = message(
    "ReplicationController",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&REPLICATION_CONTROLLER_SPEC)),
        field(3, "status", Object(&REPLICATION_CONTROLLER_STATUS)),
    ],
);

/// `ReplicationControllerCondition`.
pub static REPLICATION_CONTROLLER_CONDITION: Struct = message(
    "ReplicationControllerCondition",
    &[
        field(1, "type", Text("v1.ReplicationControllerConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastTransitionTime", Shape::Time).always(),
        field(4, "reason", TEXT),
        field(5, "message", TEXT),
    ],
);

/// `ReplicationControllerSpec`.
pub static REPLICATION_CONTROLLER_SPEC: Struct = message(
    "ReplicationControllerSpec",
    &[
        field(1, "replicas", Shape::Int32).pointer().default("1"),
        field(4, "minReadySeconds", Shape::Int32).default("0"),
        field(2, "selector", Map(&TEXT)).atomic(),
        field(3, "template", Object(&POD_TEMPLATE_SPEC)).pointer(),
    ],
);

/// `ReplicationControllerStatus`.
pub static REPLICATION_CONTROLLER_STATUS: Struct = message(
    "ReplicationControllerStatus",
    &[
        field(1, "replicas", Shape::Int32).always().required(),
        field(2, "fullyLabeledReplicas", Shape::Int32),
        field(4, "readyReplicas", Shape::Int32),
        field(5, "availableReplicas", Shape::Int32),
        field(3, "observedGeneration", Shape::Int64),
        field(6, "conditions", List(&Object(&REPLICATION_CONTROLLER_CONDITION))).keys(&["type"]).merge("type"),
    ],
);

/// `Secret`.
pub static SECRET: Struct = message(
    "Secret",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(5, "immutable", Shape::Bool).pointer(),
        field(2, "data", Map(&Shape::Bytes)),
        field(4, "stringData", Map(&TEXT)),
        field(3, "type", Text("v1.SecretType")),
    ],
);

/// `Service`.
pub static SERVICE: Struct = message(
    "Service",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SERVICE_SPEC)),
        field(3, "status", Object(&SERVICE_STATUS)),
    ],
);

/// `ServiceAccount`.
pub static SERVICE_ACCOUNT: Struct = message(
    "ServiceAccount",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "secrets", List(&Object(&OBJECT_REFERENCE))).keys(&["name"]).merge("name"),
        field(3, "imagePullSecrets", List(&Object(&LOCAL_OBJECT_REFERENCE))),
        field(4, "automountServiceAccountToken", Shape::Bool).pointer(),
    ],
);

/// `ServicePort`.
pub static SERVICE_PORT: Struct = message(
    "ServicePort",
    &[
        field(1, "name", TEXT),
        field(2, "protocol", Text("v1.Protocol")).default("TCP").values(&["SCTP", "TCP", "UDP"]),
        field(6, "appProtocol", TEXT).pointer(),
        field(3, "port", Shape::Int32).always().required(),
        field(4, "targetPort", Shape::IntOrString).always(),
        field(5, "nodePort", Shape::Int32),
    ],
);

/// `ServiceSpec`.
pub static SERVICE_SPEC: Struct = message(
    "ServiceSpec",
    &[
        field(1, "ports", List(&Object(&SERVICE_PORT))).keys(&["port", "protocol"]).merge("port"),
        field(2, "selector", Map(&TEXT)).atomic(),
        field(3, "clusterIP", TEXT),
        field(18, "clusterIPs", List(&TEXT)),
        field(4, "type", Text("v1.ServiceType")).values(&["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
        field(5, "externalIPs", List(&TEXT)),
        field(7, "sessionAffinity", Text("v1.ServiceAffinity")).values(&["ClientIP", "None"]),
        field(8, "loadBalancerIP", TEXT),
        field(9, "loadBalancerSourceRanges", List(&TEXT)),
        field(10, "externalName", TEXT),
        field(11, "externalTrafficPolicy", Text("v1.ServiceExternalTrafficPolicy")).values(&["Cluster", "Local"]),
        field(12, "healthCheckNodePort", Shape::Int32),
        field(13, "publishNotReadyAddresses", Shape::Bool),
        field(14, "sessionAffinityConfig", Object(&SESSION_AFFINITY_CONFIG)).pointer(),
        field(16, "topologyKeys", List(&TEXT)).behind(Gate::ServiceTopology),
        field(19, "ipFamilies", List(&Text("v1.IPFamily"))).values(&["", "IPv4", "IPv6"]),
        field(17, "ipFamilyPolicy", Text("v1.IPFamilyPolicy")).pointer().values(&[
            "PreferDualStack",
            "RequireDualStack",
            "SingleStack",
        ]),
        field(20, "allocateLoadBalancerNodePorts", Shape::Bool).pointer(),
        field(21, "loadBalancerClass", TEXT).pointer(),
        field(22, "internalTrafficPolicy", Text("v1.ServiceInternalTrafficPolicy"))
            .pointer()
            .values(&["Cluster", "Local"]),
        field(23, "trafficDistribution", TEXT).pointer(),
    ],
);

/// `ServiceStatus`.
pub static SERVICE_STATUS: Struct = message(
    "ServiceStatus",
    &[
        field(1, "loadBalancer", Object(&LOAD_BALANCER_STATUS)),
        field(2, "conditions", List(&Object(&meta::CONDITION))).keys(&["type"]).merge("type"),
    ],
);

/// `SessionAffinityConfig`.
pub static SESSION_AFFINITY_CONFIG: Struct =
    message("SessionAffinityConfig", &[field(1, "clientIP", Object(&CLIENT_IP_CONFIG)).pointer()]);

/// `RangeAllocation`: how kube-apiserver stores the node-port map.
pub static RANGE_ALLOCATION: Struct = message(
    "RangeAllocation",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "range", TEXT).always().required(),
        field(3, "data", Shape::Bytes).always().required(),
    ],
);
