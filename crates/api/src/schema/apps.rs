//! Deployment, ReplicaSet, StatefulSet, DaemonSet and ControllerRevision.

use super::pod::POD_TEMPLATE_SPEC;
use super::volume::PERSISTENT_VOLUME_CLAIM;
use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.apps.v1", fields, atomic: false }
}

/// A list of conditions, one of each type.
const fn conditions(number: u32, shape: Shape) -> Field {
    field(number, "conditions", shape).keys(&["type"]).merge("type")
}

/// `ControllerRevision`.
pub static CONTROLLER_REVISION: Struct = message(
    "ControllerRevision",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "data", Shape::Any),
        field(3, "revision", Shape::Int64).always().required(),
    ],
);

/// `DaemonSet`.
pub static DAEMON_SET: Struct = message(
    "DaemonSet",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&DAEMON_SET_SPEC)),
        field(3, "status", Object(&DAEMON_SET_STATUS)),
    ],
);

/// `DaemonSetCondition`.
pub static DAEMON_SET_CONDITION: Struct = message(
    "DaemonSetCondition",
    &[
        field(1, "type", Text("v1.DaemonSetConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastTransitionTime", Shape::Time).always(),
        field(4, "reason", TEXT),
        field(5, "message", TEXT),
    ],
);

/// `DaemonSetSpec`.
pub static DAEMON_SET_SPEC: Struct = message(
    "DaemonSetSpec",
    &[
        field(1, "selector", Object(&meta::LABEL_SELECTOR)).pointer().required(),
        field(2, "template", Object(&POD_TEMPLATE_SPEC)).always().required(),
        field(3, "updateStrategy", Object(&DAEMON_SET_UPDATE_STRATEGY)),
        field(4, "minReadySeconds", Shape::Int32),
        field(6, "revisionHistoryLimit", Shape::Int32).pointer(),
    ],
);

/// `DaemonSetStatus`.
pub static DAEMON_SET_STATUS: Struct = message(
    "DaemonSetStatus",
    &[
        field(1, "currentNumberScheduled", Shape::Int32).always().required(),
        field(2, "numberMisscheduled", Shape::Int32).always().required(),
        field(3, "desiredNumberScheduled", Shape::Int32).always().required(),
        field(4, "numberReady", Shape::Int32).always().required(),
        field(5, "observedGeneration", Shape::Int64),
        field(6, "updatedNumberScheduled", Shape::Int32),
        field(7, "numberAvailable", Shape::Int32),
        field(8, "numberUnavailable", Shape::Int32),
        field(9, "collisionCount", Shape::Int32).pointer(),
        conditions(10, List(&Object(&DAEMON_SET_CONDITION))),
    ],
);

/// `DaemonSetUpdateStrategy`.
pub static DAEMON_SET_UPDATE_STRATEGY: Struct = message(
    "DaemonSetUpdateStrategy",
    &[
        field(1, "type", Text("v1.DaemonSetUpdateStrategyType")).values(&["OnDelete", "RollingUpdate"]),
        field(2, "rollingUpdate", Object(&ROLLING_UPDATE_DAEMON_SET)).pointer(),
    ],
);

/// `Deployment`.
pub static DEPLOYMENT: Struct = message(
    "Deployment",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&DEPLOYMENT_SPEC)),
        field(3, "status", Object(&DEPLOYMENT_STATUS)),
    ],
);

/// `DeploymentCondition`.
pub static DEPLOYMENT_CONDITION: Struct = message(
    "DeploymentCondition",
    &[
        field(1, "type", Text("v1.DeploymentConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(6, "lastUpdateTime", Shape::Time).always(),
        field(7, "lastTransitionTime", Shape::Time).always(),
        field(4, "reason", TEXT),
        field(5, "message", TEXT),
    ],
);

/// `DeploymentSpec`.
pub static DEPLOYMENT_SPEC: Struct = message(
    "DeploymentSpec",
    &[
        field(1, "replicas", Shape::Int32).pointer(),
        field(2, "selector", Object(&meta::LABEL_SELECTOR)).pointer().required(),
        field(3, "template", Object(&POD_TEMPLATE_SPEC)).always().required(),
        field(4, "strategy", Object(&DEPLOYMENT_STRATEGY)).retain_keys(),
        field(5, "minReadySeconds", Shape::Int32),
        field(6, "revisionHistoryLimit", Shape::Int32).pointer(),
        field(7, "paused", Shape::Bool),
        field(9, "progressDeadlineSeconds", Shape::Int32).pointer(),
    ],
);

/// `DeploymentStatus`.
pub static DEPLOYMENT_STATUS: Struct = message(
    "DeploymentStatus",
    &[
        field(1, "observedGeneration", Shape::Int64),
        field(2, "replicas", Shape::Int32),
        field(3, "updatedReplicas", Shape::Int32),
        field(7, "readyReplicas", Shape::Int32),
        field(4, "availableReplicas", Shape::Int32),
        field(5, "unavailableReplicas", Shape::Int32),
        field(9, "terminatingReplicas", Shape::Int32).pointer(),
        conditions(6, List(&Object(&DEPLOYMENT_CONDITION))),
        field(8, "collisionCount", Shape::Int32).pointer(),
    ],
);

/// `DeploymentStrategy`.
pub static DEPLOYMENT_STRATEGY: Struct = message(
    "DeploymentStrategy",
    &[
        field(1, "type", Text("v1.DeploymentStrategyType")).values(&["Recreate", "RollingUpdate"]),
        field(2, "rollingUpdate", Object(&ROLLING_UPDATE_DEPLOYMENT)).pointer(),
    ],
);

/// `ReplicaSet`.
pub static REPLICA_SET: Struct = message(
    "ReplicaSet",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&REPLICA_SET_SPEC)),
        field(3, "status", Object(&REPLICA_SET_STATUS)),
    ],
);

/// `ReplicaSetCondition`.
pub static REPLICA_SET_CONDITION: Struct = message(
    "ReplicaSetCondition",
    &[
        field(1, "type", Text("v1.ReplicaSetConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastTransitionTime", Shape::Time).always(),
        field(4, "reason", TEXT),
        field(5, "message", TEXT),
    ],
);

/// `ReplicaSetSpec`.
pub static REPLICA_SET_SPEC: Struct = message(
    "ReplicaSetSpec",
    &[
        field(1, "replicas", Shape::Int32).pointer(),
        field(4, "minReadySeconds", Shape::Int32),
        field(2, "selector", Object(&meta::LABEL_SELECTOR)).pointer().required(),
        field(3, "template", Object(&POD_TEMPLATE_SPEC)),
    ],
);

/// `ReplicaSetStatus`.
pub static REPLICA_SET_STATUS: Struct = message(
    "ReplicaSetStatus",
    &[
        field(1, "replicas", Shape::Int32).always().required(),
        field(2, "fullyLabeledReplicas", Shape::Int32),
        field(4, "readyReplicas", Shape::Int32),
        field(5, "availableReplicas", Shape::Int32),
        field(7, "terminatingReplicas", Shape::Int32).pointer(),
        field(3, "observedGeneration", Shape::Int64),
        conditions(6, List(&Object(&REPLICA_SET_CONDITION))),
    ],
);

/// `RollingUpdateDaemonSet`.
pub static ROLLING_UPDATE_DAEMON_SET: Struct = message(
    "RollingUpdateDaemonSet",
    &[field(1, "maxUnavailable", Shape::IntOrString).pointer(), field(2, "maxSurge", Shape::IntOrString).pointer()],
);

/// `RollingUpdateDeployment`.
pub static ROLLING_UPDATE_DEPLOYMENT: Struct = message(
    "RollingUpdateDeployment",
    &[field(1, "maxUnavailable", Shape::IntOrString).pointer(), field(2, "maxSurge", Shape::IntOrString).pointer()],
);

/// `RollingUpdateStatefulSetStrategy`.
pub static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Struct = message(
    "RollingUpdateStatefulSetStrategy",
    &[field(1, "partition", Shape::Int32).pointer(), field(2, "maxUnavailable", Shape::IntOrString).pointer()],
);

/// `StatefulSet`.
pub static STATEFUL_SET: Struct = message(
    "StatefulSet",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&STATEFUL_SET_SPEC)),
        field(3, "status", Object(&STATEFUL_SET_STATUS)),
    ],
);

/// `StatefulSetCondition`.
pub static STATEFUL_SET_CONDITION: Struct = message(
    "StatefulSetCondition",
    &[
        field(1, "type", Text("v1.StatefulSetConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastTransitionTime", Shape::Time).always(),
        field(4, "reason", TEXT),
        field(5, "message", TEXT),
    ],
);

/// `StatefulSetOrdinals`.
pub static STATEFUL_SET_ORDINALS: Struct = message("StatefulSetOrdinals", &[field(1, "start", Shape::Int32).always()]);

/// `StatefulSetPersistentVolumeClaimRetentionPolicy`.
pub static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Struct = message(
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    &[
        field(1, "whenDeleted", Text("v1.PersistentVolumeClaimRetentionPolicyType")),
        field(2, "whenScaled", Text("v1.PersistentVolumeClaimRetentionPolicyType")),
    ],
);

/// `StatefulSetSpec`.
pub static STATEFUL_SET_SPEC: Struct = message(
    "StatefulSetSpec",
    &[
        field(1, "replicas", Shape::Int32).pointer(),
        field(2, "selector", Object(&meta::LABEL_SELECTOR)).pointer().required(),
        field(3, "template", Object(&POD_TEMPLATE_SPEC)).always().required(),
        field(4, "volumeClaimTemplates", List(&Object(&PERSISTENT_VOLUME_CLAIM))).atomic(),
        field(5, "serviceName", TEXT).always(),
        field(6, "podManagementPolicy", Text("v1.PodManagementPolicyType")).values(&["OrderedReady", "Parallel"]),
        field(7, "updateStrategy", Object(&STATEFUL_SET_UPDATE_STRATEGY)),
        field(8, "revisionHistoryLimit", Shape::Int32).pointer(),
        field(9, "minReadySeconds", Shape::Int32),
        field(
            10,
            "persistentVolumeClaimRetentionPolicy",
            Object(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY),
        )
        .pointer(),
        field(11, "ordinals", Object(&STATEFUL_SET_ORDINALS)).pointer(),
    ],
);

/// `StatefulSetStatus`.
pub static STATEFUL_SET_STATUS: Struct = message(
    "StatefulSetStatus",
    &[
        field(1, "observedGeneration", Shape::Int64),
        field(2, "replicas", Shape::Int32).always().required(),
        field(3, "readyReplicas", Shape::Int32),
        field(4, "currentReplicas", Shape::Int32),
        field(5, "updatedReplicas", Shape::Int32),
        field(6, "currentRevision", TEXT),
        field(7, "updateRevision", TEXT),
        field(9, "collisionCount", Shape::Int32).pointer(),
        conditions(10, List(&Object(&STATEFUL_SET_CONDITION))),
        field(11, "availableReplicas", Shape::Int32).always(),
    ],
);

/// `StatefulSetUpdateStrategy`.
pub static STATEFUL_SET_UPDATE_STRATEGY: Struct = message(
    "StatefulSetUpdateStrategy",
    &[
        field(1, "type", Text("v1.StatefulSetUpdateStrategyType")).values(&["OnDelete", "RollingUpdate"]),
        field(2, "rollingUpdate", Object(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY)).pointer(),
    ],
);
