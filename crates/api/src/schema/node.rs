//! Node, its spec and status.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.core.v1", fields, atomic: false }
}

/// `AttachedVolume`.
pub static ATTACHED_VOLUME: Struct = message(
    "AttachedVolume",
    &[
        field(1, "name", Text("v1.UniqueVolumeName")).always().required(),
        field(2, "devicePath", TEXT).always().required(),
    ],
);

/// `ConfigMapNodeConfigSource`.
pub static CONFIG_MAP_NODE_CONFIG_SOURCE: Struct = message(
    "ConfigMapNodeConfigSource",
    &[
        field(1, "namespace", TEXT).always().required(),
        field(2, "name", TEXT).always().required(),
        field(3, "uid", Text("types.UID")),
        field(4, "resourceVersion", TEXT),
        field(5, "kubeletConfigKey", TEXT).always().required(),
    ],
);

/// `ContainerImage`.
pub static CONTAINER_IMAGE: Struct =
    message("ContainerImage", &[field(1, "names", List(&TEXT)).always(), field(2, "sizeBytes", Shape::Int64)]);

/// `DaemonEndpoint`.
pub static DAEMON_ENDPOINT: Struct = message("DaemonEndpoint", &[field(1, "Port", Shape::Int32).always().required()]);

/// `Node`.
pub static NODE: Struct = message(
    "Node",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&NODE_SPEC)),
        field(3, "status", Object(&NODE_STATUS)),
    ],
);

/// `NodeAddress`.
pub static NODE_ADDRESS: Struct = message(
    "NodeAddress",
    &[field(1, "type", Text("v1.NodeAddressType")).always().required(), field(2, "address", TEXT).always().required()],
);

/// `NodeCondition`.
pub static NODE_CONDITION: Struct = message(
    "NodeCondition",
    &[
        field(1, "type", Text("v1.NodeConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastHeartbeatTime", Shape::Time).always(),
        field(4, "lastTransitionTime", Shape::Time).always(),
        field(5, "reason", TEXT),
        field(6, "message", TEXT),
    ],
);

/// `NodeConfigSource`.
pub static NODE_CONFIG_SOURCE: Struct =
    message("NodeConfigSource", &[field(2, "configMap", Object(&CONFIG_MAP_NODE_CONFIG_SOURCE)).pointer()]);

/// `NodeConfigStatus`.
pub static NODE_CONFIG_STATUS: Struct = message(
    "NodeConfigStatus",
    &[
        field(1, "assigned", Object(&NODE_CONFIG_SOURCE)).pointer(),
        field(2, "active", Object(&NODE_CONFIG_SOURCE)).pointer(),
        field(3, "lastKnownGood", Object(&NODE_CONFIG_SOURCE)).pointer(),
        field(4, "error", TEXT),
    ],
);

/// `NodeDaemonEndpoints`.
pub static NODE_DAEMON_ENDPOINTS: Struct =
    message("NodeDaemonEndpoints", &[field(1, "kubeletEndpoint", Object(&DAEMON_ENDPOINT))]);

/// `NodeFeatures`.
pub static NODE_FEATURES: Struct =
    message("NodeFeatures", &[field(1, "supplementalGroupsPolicy", Shape::Bool).pointer()]);

/// `NodeRuntimeHandler`.
pub static NODE_RUNTIME_HANDLER: Struct = message(
    "NodeRuntimeHandler",
    &[field(1, "name", TEXT).always(), field(2, "features", Object(&NODE_RUNTIME_HANDLER_FEATURES)).pointer()],
);

/// `NodeRuntimeHandlerFeatures`.
pub static NODE_RUNTIME_HANDLER_FEATURES: Struct = message(
    "NodeRuntimeHandlerFeatures",
    &[field(1, "recursiveReadOnlyMounts", Shape::Bool).pointer(), field(2, "userNamespaces", Shape::Bool).pointer()],
);

/// `NodeSpec`.
pub static NODE_SPEC: Struct = message(
    "NodeSpec",
    &[
        field(1, "podCIDR", TEXT),
        field(7, "podCIDRs", List(&TEXT)).set().merge(""),
        field(3, "providerID", TEXT),
        field(4, "unschedulable", Shape::Bool),
        field(5, "taints", List(&Object(&TAINT))),
        field(6, "configSource", Object(&NODE_CONFIG_SOURCE)).pointer(),
        field(2, "externalID", TEXT),
    ],
);

/// `NodeStatus`.
pub static NODE_STATUS: Struct = message(
    "NodeStatus",
    &[
        field(1, "capacity", Map(&Shape::Quantity)),
        field(2, "allocatable", Map(&Shape::Quantity)),
        field(3, "phase", Text("v1.NodePhase")).values(&["Pending", "Running", "Terminated"]),
        field(4, "conditions", List(&Object(&NODE_CONDITION))).keys(&["type"]).merge("type"),
        field(5, "addresses", List(&Object(&NODE_ADDRESS))).keys(&["type"]).merge("type"),
        field(6, "daemonEndpoints", Object(&NODE_DAEMON_ENDPOINTS)),
        field(7, "nodeInfo", Object(&NODE_SYSTEM_INFO)),
        field(8, "images", List(&Object(&CONTAINER_IMAGE))),
        field(9, "volumesInUse", List(&Text("v1.UniqueVolumeName"))),
        field(10, "volumesAttached", List(&Object(&ATTACHED_VOLUME))),
        field(11, "config", Object(&NODE_CONFIG_STATUS)).pointer(),
        field(12, "runtimeHandlers", List(&Object(&NODE_RUNTIME_HANDLER))),
        field(13, "features", Object(&NODE_FEATURES)).pointer(),
        field(14, "declaredFeatures", List(&TEXT)),
    ],
);

/// `NodeSwapStatus`.
pub static NODE_SWAP_STATUS: Struct = message("NodeSwapStatus", &[field(1, "capacity", Shape::Int64).pointer()]);

/// `NodeSystemInfo`.
pub static NODE_SYSTEM_INFO: Struct = message(
    "NodeSystemInfo",
    &[
        field(1, "machineID", TEXT).always().required(),
        field(2, "systemUUID", TEXT).always().required(),
        field(3, "bootID", TEXT).always().required(),
        field(4, "kernelVersion", TEXT).always().required(),
        field(5, "osImage", TEXT).always().required(),
        field(6, "containerRuntimeVersion", TEXT).always().required(),
        field(7, "kubeletVersion", TEXT).always().required(),
        field(8, "kubeProxyVersion", TEXT).always().required(),
        field(9, "operatingSystem", TEXT).always().required(),
        field(10, "architecture", TEXT).always().required(),
        field(11, "swap", Object(&NODE_SWAP_STATUS)).pointer(),
    ],
);

/// `Taint`.
pub static TAINT: Struct = message(
    "Taint",
    &[
        field(1, "key", TEXT).always().required(),
        field(2, "value", TEXT),
        field(3, "effect", Text("v1.TaintEffect")).always().required().values(&[
            "NoExecute",
            "NoSchedule",
            "PreferNoSchedule",
        ]),
        field(4, "timeAdded", Shape::Time).pointer(),
    ],
);
