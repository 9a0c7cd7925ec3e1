//! Deployments and the other kinds that make Pods.

use super::{Text, of};

const METADATA: (&str, &str) = ("metadata", "Name, namespace, labels and everything else that all objects have.");
const TEMPLATE: (&str, &str) = ("template", "The Pod to create.");
const SELECTOR: (&str, &str) =
    ("selector", "The labels of its Pods. It cannot change, and the template must have them.");
const MIN_READY: (&str, &str) =
    ("minReadySeconds", "Seconds for which a new Pod must be ready without a restart before it counts as available.");
const HISTORY: (&str, &str) = ("revisionHistoryLimit", "Number of old revisions to keep. Defaults to 10.");
const OBSERVED: (&str, &str) =
    ("observedGeneration", "The generation of the object that the controller has seen last.");
const COLLISIONS: (&str, &str) =
    ("collisionCount", "Number of times that the name of a new revision was in use; part of the next name.");
const CONDITIONS: (&str, &str) = ("conditions", "Facts about the object that its controller reports.");

pub(super) const TEXTS: &[Text] = &[
    of(
        "apps.v1.Deployment",
        "A Deployment keeps a number of equal Pods, and replaces them step by step when their template changes.",
        &[METADATA, ("spec", "The Pods that should exist."), ("status", "The Pods that exist.")],
    ),
    of(
        "apps.v1.DeploymentSpec",
        "The Pods of a Deployment, and how they are replaced.",
        &[
            ("replicas", "Number of Pods. Defaults to 1."),
            SELECTOR,
            TEMPLATE,
            ("strategy", "How old Pods are replaced by new ones."),
            MIN_READY,
            HISTORY,
            ("paused", "True if changes of the template wait."),
            (
                "progressDeadlineSeconds",
                "Seconds without progress after which a rollout is reported as failed. Defaults to 600.",
            ),
        ],
    ),
    of(
        "apps.v1.DeploymentStrategy",
        "How old Pods are replaced by new ones.",
        &[
            (
                "type",
                "RollingUpdate, which replaces Pods step by step, or Recreate, which removes all old ones first. \
                 Defaults to RollingUpdate.",
            ),
            ("rollingUpdate", "The limits of a rolling update."),
        ],
    ),
    of(
        "apps.v1.RollingUpdateDeployment",
        "The limits of a rolling update of a Deployment.",
        &[
            ("maxUnavailable", "Number or percentage of Pods that may be missing, rounded down. Defaults to 25%."),
            ("maxSurge", "Number or percentage of Pods beyond replicas, rounded up. Defaults to 25%."),
        ],
    ),
    of(
        "apps.v1.DeploymentStatus",
        "The Pods of a Deployment that exist.",
        &[
            OBSERVED,
            ("replicas", "Number of Pods that are not terminating."),
            ("updatedReplicas", "Number of Pods of the present template."),
            ("readyReplicas", "Number of ready Pods."),
            ("availableReplicas", "Number of Pods that have been ready for minReadySeconds."),
            ("unavailableReplicas", "Number of Pods that are missing until enough are available."),
            ("terminatingReplicas", "Number of terminating Pods."),
            CONDITIONS,
            COLLISIONS,
        ],
    ),
    of(
        "apps.v1.ReplicaSet",
        "A ReplicaSet keeps a number of equal Pods. A Deployment makes one for each version of its template.",
        &[METADATA, ("spec", "The Pods that should exist."), ("status", "The Pods that exist.")],
    ),
    of(
        "apps.v1.ReplicaSetSpec",
        "The Pods of a ReplicaSet.",
        &[("replicas", "Number of Pods. Defaults to 1."), MIN_READY, SELECTOR, TEMPLATE],
    ),
    of(
        "apps.v1.ReplicaSetStatus",
        "The Pods of a ReplicaSet that exist.",
        &[
            ("replicas", "Number of Pods that are not terminating."),
            ("fullyLabeledReplicas", "Number of Pods with all labels of the template."),
            ("readyReplicas", "Number of ready Pods."),
            ("availableReplicas", "Number of Pods that have been ready for minReadySeconds."),
            ("terminatingReplicas", "Number of terminating Pods."),
            OBSERVED,
            CONDITIONS,
        ],
    ),
    of(
        "apps.v1.StatefulSet",
        "A StatefulSet keeps Pods with fixed names: web-0, web-1, ... They are started and stopped in that order.",
        &[METADATA, ("spec", "The Pods that should exist."), ("status", "The Pods that exist.")],
    ),
    of(
        "apps.v1.StatefulSetSpec",
        "The Pods of a StatefulSet, and how they are replaced.",
        &[
            ("replicas", "Number of Pods. Defaults to 1."),
            SELECTOR,
            TEMPLATE,
            ("volumeClaimTemplates", "Claims of volumes, one of each for every Pod. Fairlead has no such volumes."),
            ("serviceName", "The headless Service that gives the Pods their names in DNS."),
            (
                "podManagementPolicy",
                "OrderedReady: each Pod waits until the one before it is ready. Parallel: no Pod waits. Defaults to \
                 OrderedReady.",
            ),
            ("updateStrategy", "How Pods are replaced when the template changes."),
            HISTORY,
            MIN_READY,
            ("persistentVolumeClaimRetentionPolicy", "When claims of volumes are deleted."),
            ("ordinals", "The numbers in the names of the Pods."),
        ],
    ),
    of(
        "apps.v1.StatefulSetUpdateStrategy",
        "How Pods are replaced when the template changes.",
        &[
            ("type", "RollingUpdate or OnDelete, which waits until a Pod is deleted. Defaults to RollingUpdate."),
            ("rollingUpdate", "The limits of a rolling update."),
        ],
    ),
    of(
        "apps.v1.RollingUpdateStatefulSetStrategy",
        "The limits of a rolling update of a StatefulSet.",
        &[
            ("partition", "Pods with a smaller number keep the old template. Defaults to 0."),
            ("maxUnavailable", "Number or percentage of Pods that may be missing. Needs a feature gate of Kubernetes."),
        ],
    ),
    of("apps.v1.StatefulSetOrdinals", "The numbers in the names of Pods.", &[("start", "The first number.")]),
    of(
        "apps.v1.StatefulSetStatus",
        "The Pods of a StatefulSet that exist.",
        &[
            OBSERVED,
            ("replicas", "Number of Pods."),
            ("readyReplicas", "Number of ready Pods."),
            ("currentReplicas", "Number of Pods of the revision currentRevision."),
            ("updatedReplicas", "Number of Pods of the revision updateRevision."),
            ("currentRevision", "The revision before the rolling update."),
            ("updateRevision", "The revision of the present template."),
            COLLISIONS,
            CONDITIONS,
            ("availableReplicas", "Number of Pods that have been ready for minReadySeconds."),
        ],
    ),
    of(
        "apps.v1.DaemonSet",
        "A DaemonSet keeps one Pod on every Node, or on every Node that fits the template.",
        &[METADATA, ("spec", "The Pods that should exist."), ("status", "The Pods that exist.")],
    ),
    of(
        "apps.v1.DaemonSetSpec",
        "The Pods of a DaemonSet, and how they are replaced.",
        &[
            SELECTOR,
            TEMPLATE,
            ("updateStrategy", "How Pods are replaced when the template changes."),
            MIN_READY,
            HISTORY,
        ],
    ),
    of(
        "apps.v1.DaemonSetUpdateStrategy",
        "How Pods are replaced when the template changes.",
        &[
            ("type", "RollingUpdate or OnDelete, which waits until a Pod is deleted. Defaults to RollingUpdate."),
            ("rollingUpdate", "The limits of a rolling update."),
        ],
    ),
    of(
        "apps.v1.RollingUpdateDaemonSet",
        "The limits of a rolling update of a DaemonSet. One of the two is 0.",
        &[
            ("maxUnavailable", "Number or percentage of Nodes whose Pod may be missing, rounded up. Defaults to 1."),
            ("maxSurge", "Number or percentage of Nodes that may have an old and a new Pod. Defaults to 0."),
        ],
    ),
    of(
        "apps.v1.DaemonSetStatus",
        "The Pods of a DaemonSet that exist.",
        &[
            ("currentNumberScheduled", "Number of Nodes that should have a Pod and have one."),
            ("numberMisscheduled", "Number of Nodes that have a Pod and should not."),
            ("desiredNumberScheduled", "Number of Nodes that should have a Pod."),
            ("numberReady", "Number of Nodes that should have a Pod and have a ready one."),
            OBSERVED,
            ("updatedNumberScheduled", "Number of Nodes with a Pod of the present template."),
            ("numberAvailable", "Number of Nodes with a Pod that has been ready for minReadySeconds."),
            ("numberUnavailable", "Number of Nodes that should have an available Pod and have none."),
            COLLISIONS,
            CONDITIONS,
        ],
    ),
    of(
        "apps.v1.ControllerRevision",
        "A ControllerRevision is a template that a DaemonSet or StatefulSet had, to return to.",
        &[METADATA, ("data", "The template. It cannot change."), ("revision", "Its number; later ones are greater.")],
    ),
    of(
        "core.v1.ReplicationController",
        "A ReplicationController keeps a number of equal Pods. ReplicaSets and Deployments are its successors.",
        &[METADATA, ("spec", "The Pods that should exist."), ("status", "The Pods that exist.")],
    ),
    of(
        "core.v1.ReplicationControllerSpec",
        "The Pods of a ReplicationController.",
        &[
            ("replicas", "Number of Pods. Defaults to 1."),
            MIN_READY,
            ("selector", "The labels of its Pods. Defaults to the labels of the template."),
            TEMPLATE,
        ],
    ),
    of(
        "core.v1.PodTemplate",
        "A PodTemplate keeps the description of a Pod.",
        &[METADATA, ("template", "The description.")],
    ),
    of(
        "core.v1.PodTemplateSpec",
        "The Pod to create.",
        &[("metadata", "Labels and annotations of the Pod."), ("spec", "What the Pod should run.")],
    ),
    of(
        "autoscaling.v1.Scale",
        "A Scale is the number of Pods of an object, in the same form for every kind that has one.",
        &[METADATA, ("spec", "The number that is asked for."), ("status", "The number there is.")],
    ),
    of("autoscaling.v1.ScaleSpec", "The number of Pods that is asked for.", &[("replicas", "Number of Pods.")]),
    of(
        "autoscaling.v1.ScaleStatus",
        "The number of Pods there is.",
        &[("replicas", "Number of Pods."), ("selector", "The labels of the Pods, as a label selector.")],
    ),
];
