//! Pod, its spec and status.

use super::core::LOCAL_OBJECT_REFERENCE;
use super::volume::{OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR, VOLUME};
use super::{Field, Shape, Struct, TEXT, field, inline, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.core.v1", fields, atomic: false }
}

/// `Affinity`.
pub static AFFINITY: Struct = message(
    "Affinity",
    &[
        field(1, "nodeAffinity", Object(&NODE_AFFINITY)).pointer(),
        field(2, "podAffinity", Object(&POD_AFFINITY)).pointer(),
        field(3, "podAntiAffinity", Object(&POD_ANTI_AFFINITY)).pointer(),
    ],
);

/// `AppArmorProfile`.
pub static APP_ARMOR_PROFILE: Struct = message(
    "AppArmorProfile",
    &[
        field(1, "type", Text("v1.AppArmorProfileType")).always().required().values(&[
            "Localhost",
            "RuntimeDefault",
            "Unconfined",
        ]),
        field(2, "localhostProfile", TEXT).pointer(),
    ],
);

/// `Capabilities`.
pub static CAPABILITIES: Struct = message(
    "Capabilities",
    &[field(1, "add", List(&Text("v1.Capability"))), field(2, "drop", List(&Text("v1.Capability")))],
);

/// `ConfigMapEnvSource`.
pub static CONFIG_MAP_ENV_SOURCE: Struct =
    message("ConfigMapEnvSource", &[inline(1, &LOCAL_OBJECT_REFERENCE), field(2, "optional", Shape::Bool).pointer()]);

/// `ConfigMapKeySelector`.
pub static CONFIG_MAP_KEY_SELECTOR: Struct = message(
    "ConfigMapKeySelector",
    &[
        inline(1, &LOCAL_OBJECT_REFERENCE),
        field(2, "key", TEXT).always().required(),
        field(3, "optional", Shape::Bool).pointer(),
    ],
)
.atomic();

/// `Container`.
pub static CONTAINER: Struct = message(
    "Container",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "image", TEXT),
        field(3, "command", List(&TEXT)),
        field(4, "args", List(&TEXT)),
        field(5, "workingDir", TEXT),
        field(6, "ports", List(&Object(&CONTAINER_PORT))).keys(&["containerPort", "protocol"]).merge("containerPort"),
        field(19, "envFrom", List(&Object(&ENV_FROM_SOURCE))),
        field(7, "env", List(&Object(&ENV_VAR))).keys(&["name"]).merge("name"),
        field(8, "resources", Object(&RESOURCE_REQUIREMENTS)),
        field(23, "resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY))),
        field(24, "restartPolicy", Text("v1.ContainerRestartPolicy")).pointer(),
        field(25, "restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        field(9, "volumeMounts", List(&Object(&VOLUME_MOUNT))).keys(&["mountPath"]).merge("mountPath"),
        field(21, "volumeDevices", List(&Object(&VOLUME_DEVICE))).keys(&["devicePath"]).merge("devicePath"),
        field(10, "livenessProbe", Object(&PROBE)).pointer(),
        field(11, "readinessProbe", Object(&PROBE)).pointer(),
        field(22, "startupProbe", Object(&PROBE)).pointer(),
        field(12, "lifecycle", Object(&LIFECYCLE)).pointer(),
        field(13, "terminationMessagePath", TEXT),
        field(20, "terminationMessagePolicy", Text("v1.TerminationMessagePolicy"))
            .values(&["FallbackToLogsOnError", "File"]),
        field(14, "imagePullPolicy", Text("v1.PullPolicy")).values(&["Always", "IfNotPresent", "Never"]),
        field(15, "securityContext", Object(&SECURITY_CONTEXT)).pointer(),
        field(16, "stdin", Shape::Bool),
        field(17, "stdinOnce", Shape::Bool),
        field(18, "tty", Shape::Bool),
    ],
);

/// `ContainerExtendedResourceRequest`.
pub static CONTAINER_EXTENDED_RESOURCE_REQUEST: Struct = message(
    "ContainerExtendedResourceRequest",
    &[
        field(1, "containerName", TEXT).always().required(),
        field(2, "resourceName", TEXT).always().required(),
        field(3, "requestName", TEXT).always().required(),
    ],
);

/// `ContainerPort`.
pub static CONTAINER_PORT: Struct = message(
    "ContainerPort",
    &[
        field(1, "name", TEXT),
        field(2, "hostPort", Shape::Int32),
        field(3, "containerPort", Shape::Int32).always().required(),
        field(4, "protocol", Text("v1.Protocol")).default("TCP").values(&["SCTP", "TCP", "UDP"]),
        field(5, "hostIP", TEXT),
    ],
);

/// `ContainerResizePolicy`.
pub static CONTAINER_RESIZE_POLICY: Struct = message(
    "ContainerResizePolicy",
    &[
        field(1, "resourceName", Text("v1.ResourceName")).always().required(),
        field(2, "restartPolicy", Text("v1.ResourceResizeRestartPolicy")).always().required(),
    ],
);

/// `ContainerRestartRule`.
pub static CONTAINER_RESTART_RULE: Struct = message(
    "ContainerRestartRule",
    &[
        field(1, "action", Text("v1.ContainerRestartRuleAction")).required(),
        field(2, "exitCodes", Object(&CONTAINER_RESTART_RULE_ON_EXIT_CODES)).pointer(),
    ],
);

/// `ContainerRestartRuleOnExitCodes`.
pub static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Struct = message(
    "ContainerRestartRuleOnExitCodes",
    &[
        field(1, "operator", Text("v1.ContainerRestartRuleOnExitCodesOperator")).required(),
        field(2, "values", List(&Shape::Int32)).set(),
    ],
);

/// `ContainerState`.
pub static CONTAINER_STATE: Struct = message(
    "ContainerState",
    &[
        field(1, "waiting", Object(&CONTAINER_STATE_WAITING)).pointer(),
        field(2, "running", Object(&CONTAINER_STATE_RUNNING)).pointer(),
        field(3, "terminated", Object(&CONTAINER_STATE_TERMINATED)).pointer(),
    ],
);

/// `ContainerStateRunning`.
pub static CONTAINER_STATE_RUNNING: Struct =
    message("ContainerStateRunning", &[field(1, "startedAt", Shape::Time).always()]);

/// `ContainerStateTerminated`.
pub static CONTAINER_STATE_TERMINATED: Struct = message(
    "ContainerStateTerminated",
    &[
        field(1, "exitCode", Shape::Int32).always().required(),
        field(2, "signal", Shape::Int32),
        field(3, "reason", TEXT),
        field(4, "message", TEXT),
        field(5, "startedAt", Shape::Time).always(),
        field(6, "finishedAt", Shape::Time).always(),
        field(7, "containerID", TEXT),
    ],
);

/// `ContainerStateWaiting`.
pub static CONTAINER_STATE_WAITING: Struct =
    message("ContainerStateWaiting", &[field(1, "reason", TEXT), field(2, "message", TEXT)]);

/// `ContainerStatus`.
pub static CONTAINER_STATUS: Struct = message(
    "ContainerStatus",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "state", Object(&CONTAINER_STATE)),
        field(3, "lastState", Object(&CONTAINER_STATE)),
        field(4, "ready", Shape::Bool).always().required(),
        field(5, "restartCount", Shape::Int32).always().required(),
        field(6, "image", TEXT).always().required(),
        field(7, "imageID", TEXT).always().required(),
        field(8, "containerID", TEXT),
        field(9, "started", Shape::Bool).pointer(),
        field(10, "allocatedResources", Map(&Shape::Quantity)),
        field(11, "resources", Object(&RESOURCE_REQUIREMENTS)).pointer(),
        field(12, "volumeMounts", List(&Object(&VOLUME_MOUNT_STATUS))).keys(&["mountPath"]).merge("mountPath"),
        field(13, "user", Object(&CONTAINER_USER)).pointer(),
        field(14, "allocatedResourcesStatus", List(&Object(&RESOURCE_STATUS))).keys(&["name"]).merge("name"),
        field(15, "stopSignal", Text("v1.Signal")).pointer().values(&[
            "SIGABRT",
            "SIGALRM",
            "SIGBUS",
            "SIGCHLD",
            "SIGCLD",
            "SIGCONT",
            "SIGFPE",
            "SIGHUP",
            "SIGILL",
            "SIGINT",
            "SIGIO",
            "SIGIOT",
            "SIGKILL",
            "SIGPIPE",
            "SIGPOLL",
            "SIGPROF",
            "SIGPWR",
            "SIGQUIT",
            "SIGRTMAX",
            "SIGRTMAX-1",
            "SIGRTMAX-10",
            "SIGRTMAX-11",
            "SIGRTMAX-12",
            "SIGRTMAX-13",
            "SIGRTMAX-14",
            "SIGRTMAX-2",
            "SIGRTMAX-3",
            "SIGRTMAX-4",
            "SIGRTMAX-5",
            "SIGRTMAX-6",
            "SIGRTMAX-7",
            "SIGRTMAX-8",
            "SIGRTMAX-9",
            "SIGRTMIN",
            "SIGRTMIN+1",
            "SIGRTMIN+10",
            "SIGRTMIN+11",
            "SIGRTMIN+12",
            "SIGRTMIN+13",
            "SIGRTMIN+14",
            "SIGRTMIN+15",
            "SIGRTMIN+2",
            "SIGRTMIN+3",
            "SIGRTMIN+4",
            "SIGRTMIN+5",
            "SIGRTMIN+6",
            "SIGRTMIN+7",
            "SIGRTMIN+8",
            "SIGRTMIN+9",
            "SIGSEGV",
            "SIGSTKFLT",
            "SIGSTOP",
            "SIGSYS",
            "SIGTERM",
            "SIGTRAP",
            "SIGTSTP",
            "SIGTTIN",
            "SIGTTOU",
            "SIGURG",
            "SIGUSR1",
            "SIGUSR2",
            "SIGVTALRM",
            "SIGWINCH",
            "SIGXCPU",
            "SIGXFSZ",
        ]),
    ],
);

/// `ContainerUser`.
pub static CONTAINER_USER: Struct =
    message("ContainerUser", &[field(1, "linux", Object(&LINUX_CONTAINER_USER)).pointer()]);

/// `EnvFromSource`.
pub static ENV_FROM_SOURCE: Struct = message(
    "EnvFromSource",
    &[
        field(1, "prefix", TEXT),
        field(2, "configMapRef", Object(&CONFIG_MAP_ENV_SOURCE)).pointer(),
        field(3, "secretRef", Object(&SECRET_ENV_SOURCE)).pointer(),
    ],
);

/// `EnvVar`.
pub static ENV_VAR: Struct = message(
    "EnvVar",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "value", TEXT),
        field(3, "valueFrom", Object(&ENV_VAR_SOURCE)).pointer(),
    ],
);

/// `EnvVarSource`.
pub static ENV_VAR_SOURCE: Struct = message(
    "EnvVarSource",
    &[
        field(1, "fieldRef", Object(&OBJECT_FIELD_SELECTOR)).pointer(),
        field(2, "resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)).pointer(),
        field(3, "configMapKeyRef", Object(&CONFIG_MAP_KEY_SELECTOR)).pointer(),
        field(4, "secretKeyRef", Object(&SECRET_KEY_SELECTOR)).pointer(),
        field(5, "fileKeyRef", Object(&FILE_KEY_SELECTOR)).pointer(),
    ],
);

/// `EphemeralContainer`.
pub static EPHEMERAL_CONTAINER: Struct =
    message("EphemeralContainer", &[inline(1, &EPHEMERAL_CONTAINER_COMMON), field(2, "targetContainerName", TEXT)]);

/// `EphemeralContainerCommon`.
pub static EPHEMERAL_CONTAINER_COMMON: Struct = message(
    "EphemeralContainerCommon",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "image", TEXT),
        field(3, "command", List(&TEXT)),
        field(4, "args", List(&TEXT)),
        field(5, "workingDir", TEXT),
        field(6, "ports", List(&Object(&CONTAINER_PORT))).keys(&["containerPort", "protocol"]).merge("containerPort"),
        field(19, "envFrom", List(&Object(&ENV_FROM_SOURCE))),
        field(7, "env", List(&Object(&ENV_VAR))).keys(&["name"]).merge("name"),
        field(8, "resources", Object(&RESOURCE_REQUIREMENTS)),
        field(23, "resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY))),
        field(24, "restartPolicy", Text("v1.ContainerRestartPolicy")).pointer(),
        field(25, "restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        field(9, "volumeMounts", List(&Object(&VOLUME_MOUNT))).keys(&["mountPath"]).merge("mountPath"),
        field(21, "volumeDevices", List(&Object(&VOLUME_DEVICE))).keys(&["devicePath"]).merge("devicePath"),
        field(10, "livenessProbe", Object(&PROBE)).pointer(),
        field(11, "readinessProbe", Object(&PROBE)).pointer(),
        field(22, "startupProbe", Object(&PROBE)).pointer(),
        field(12, "lifecycle", Object(&LIFECYCLE)).pointer(),
        field(13, "terminationMessagePath", TEXT),
        field(20, "terminationMessagePolicy", Text("v1.TerminationMessagePolicy"))
            .values(&["FallbackToLogsOnError", "File"]),
        field(14, "imagePullPolicy", Text("v1.PullPolicy")).values(&["Always", "IfNotPresent", "Never"]),
        field(15, "securityContext", Object(&SECURITY_CONTEXT)).pointer(),
        field(16, "stdin", Shape::Bool),
        field(17, "stdinOnce", Shape::Bool),
        field(18, "tty", Shape::Bool),
    ],
);

/// `ExecAction`.
pub static EXEC_ACTION: Struct = message("ExecAction", &[field(1, "command", List(&TEXT))]);

/// `FileKeySelector`.
pub static FILE_KEY_SELECTOR: Struct = message(
    "FileKeySelector",
    &[
        field(1, "volumeName", TEXT).always().required(),
        field(2, "path", TEXT).always().required(),
        field(3, "key", TEXT).always().required(),
        field(4, "optional", Shape::Bool).pointer().default("false"),
    ],
)
.atomic();

/// `GRPCAction`.
pub static GRPC_ACTION: Struct = message(
    "GRPCAction",
    &[field(1, "port", Shape::Int32).always().required(), field(2, "service", TEXT).pointer().always().default("")],
);

/// `HostAlias`.
pub static HOST_ALIAS: Struct =
    message("HostAlias", &[field(1, "ip", TEXT).always().required(), field(2, "hostnames", List(&TEXT))]);

/// `HostIP`.
pub static HOST_IP: Struct = message("HostIP", &[field(1, "ip", TEXT).always().required()]);

/// `HTTPGetAction`.
pub static HTTP_GET_ACTION: Struct = message(
    "HTTPGetAction",
    &[
        field(1, "path", TEXT),
        field(2, "port", Shape::IntOrString).always().required(),
        field(3, "host", TEXT),
        field(4, "scheme", Text("v1.URIScheme")).values(&["HTTP", "HTTPS"]),
        field(5, "httpHeaders", List(&Object(&HTTP_HEADER))),
    ],
);

/// `HTTPHeader`.
pub static HTTP_HEADER: Struct =
    message("HTTPHeader", &[field(1, "name", TEXT).always().required(), field(2, "value", TEXT).always().required()]);

/// `ImageVolumeStatus`.
pub static IMAGE_VOLUME_STATUS: Struct = message("ImageVolumeStatus", &[field(1, "imageRef", TEXT).required()]);

/// `Lifecycle`.
pub static LIFECYCLE: Struct = message(
    "Lifecycle",
    &[
        field(1, "postStart", Object(&LIFECYCLE_HANDLER)).pointer(),
        field(2, "preStop", Object(&LIFECYCLE_HANDLER)).pointer(),
        field(3, "stopSignal", Text("v1.Signal")).pointer().values(&[
            "SIGABRT",
            "SIGALRM",
            "SIGBUS",
            "SIGCHLD",
            "SIGCLD",
            "SIGCONT",
            "SIGFPE",
            "SIGHUP",
            "SIGILL",
            "SIGINT",
            "SIGIO",
            "SIGIOT",
            "SIGKILL",
            "SIGPIPE",
            "SIGPOLL",
            "SIGPROF",
            "SIGPWR",
            "SIGQUIT",
            "SIGRTMAX",
            "SIGRTMAX-1",
            "SIGRTMAX-10",
            "SIGRTMAX-11",
            "SIGRTMAX-12",
            "SIGRTMAX-13",
            "SIGRTMAX-14",
            "SIGRTMAX-2",
            "SIGRTMAX-3",
            "SIGRTMAX-4",
            "SIGRTMAX-5",
            "SIGRTMAX-6",
            "SIGRTMAX-7",
            "SIGRTMAX-8",
            "SIGRTMAX-9",
            "SIGRTMIN",
            "SIGRTMIN+1",
            "SIGRTMIN+10",
            "SIGRTMIN+11",
            "SIGRTMIN+12",
            "SIGRTMIN+13",
            "SIGRTMIN+14",
            "SIGRTMIN+15",
            "SIGRTMIN+2",
            "SIGRTMIN+3",
            "SIGRTMIN+4",
            "SIGRTMIN+5",
            "SIGRTMIN+6",
            "SIGRTMIN+7",
            "SIGRTMIN+8",
            "SIGRTMIN+9",
            "SIGSEGV",
            "SIGSTKFLT",
            "SIGSTOP",
            "SIGSYS",
            "SIGTERM",
            "SIGTRAP",
            "SIGTSTP",
            "SIGTTIN",
            "SIGTTOU",
            "SIGURG",
            "SIGUSR1",
            "SIGUSR2",
            "SIGVTALRM",
            "SIGWINCH",
            "SIGXCPU",
            "SIGXFSZ",
        ]),
    ],
);

/// `LifecycleHandler`.
pub static LIFECYCLE_HANDLER: Struct = message(
    "LifecycleHandler",
    &[
        field(1, "exec", Object(&EXEC_ACTION)).pointer(),
        field(2, "httpGet", Object(&HTTP_GET_ACTION)).pointer(),
        field(3, "tcpSocket", Object(&TCP_SOCKET_ACTION)).pointer(),
        field(4, "sleep", Object(&SLEEP_ACTION)).pointer(),
    ],
);

/// `LinuxContainerUser`.
pub static LINUX_CONTAINER_USER: Struct = message(
    "LinuxContainerUser",
    &[
        field(1, "uid", Shape::Int64).always().required(),
        field(2, "gid", Shape::Int64).always().required(),
        field(3, "supplementalGroups", List(&Shape::Int64)),
    ],
);

/// `NodeAffinity`.
pub static NODE_AFFINITY: Struct = message(
    "NodeAffinity",
    &[
        field(1, "requiredDuringSchedulingIgnoredDuringExecution", Object(&NODE_SELECTOR)).pointer(),
        field(2, "preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&PREFERRED_SCHEDULING_TERM))),
    ],
);

/// `NodeAllocatableResourceClaimStatus`.
pub static NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Struct = message(
    "NodeAllocatableResourceClaimStatus",
    &[
        field(1, "resourceClaimName", TEXT).always().required(),
        field(2, "containers", List(&TEXT)).set(),
        field(3, "resources", Map(&Shape::Quantity)).always().required(),
    ],
);

/// `NodeSelector`.
pub static NODE_SELECTOR: Struct =
    message("NodeSelector", &[field(1, "nodeSelectorTerms", List(&Object(&NODE_SELECTOR_TERM))).always().required()])
        .atomic();

/// `NodeSelectorRequirement`.
pub static NODE_SELECTOR_REQUIREMENT: Struct = message(
    "NodeSelectorRequirement",
    &[
        field(1, "key", TEXT).always().required(),
        field(2, "operator", Text("v1.NodeSelectorOperator")).always().required().values(&[
            "DoesNotExist",
            "Exists",
            "Gt",
            "In",
            "Lt",
            "NotIn",
        ]),
        field(3, "values", List(&TEXT)),
    ],
);

/// `NodeSelectorTerm`.
pub static NODE_SELECTOR_TERM: Struct = message(
    "NodeSelectorTerm",
    &[
        field(1, "matchExpressions", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
        field(2, "matchFields", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
    ],
)
.atomic();

/// `Pod`.
pub static POD: Struct = message(
    "Pod",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&POD_SPEC)),
        field(3, "status", Object(&POD_STATUS)),
    ],
);

/// `PodAffinity`.
pub static POD_AFFINITY: Struct = message(
    "PodAffinity",
    &[
        field(1, "requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
        field(2, "preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
    ],
);

/// `PodAffinityTerm`.
pub static POD_AFFINITY_TERM: Struct = message(
    "PodAffinityTerm",
    &[
        field(1, "labelSelector", Object(&meta::LABEL_SELECTOR)).pointer(),
        field(2, "namespaces", List(&TEXT)),
        field(3, "topologyKey", TEXT).always().required(),
        field(4, "namespaceSelector", Object(&meta::LABEL_SELECTOR)).pointer(),
        field(5, "matchLabelKeys", List(&TEXT)),
        field(6, "mismatchLabelKeys", List(&TEXT)),
    ],
);

/// `PodAntiAffinity`.
pub static POD_ANTI_AFFINITY: Struct = message(
    "PodAntiAffinity",
    &[
        field(1, "requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
        field(2, "preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
    ],
);

/// `PodCondition`.
pub static POD_CONDITION: Struct = message(
    "PodCondition",
    &[
        field(1, "type", Text("v1.PodConditionType")).always().required(),
        field(7, "observedGeneration", Shape::Int64),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastProbeTime", Shape::Time).always(),
        field(4, "lastTransitionTime", Shape::Time).always(),
        field(5, "reason", TEXT),
        field(6, "message", TEXT),
    ],
);

/// `PodDNSConfig`.
pub static POD_DNS_CONFIG: Struct = message(
    "PodDNSConfig",
    &[
        field(1, "nameservers", List(&TEXT)),
        field(2, "searches", List(&TEXT)),
        field(3, "options", List(&Object(&POD_DNS_CONFIG_OPTION))),
    ],
);

/// `PodDNSConfigOption`.
pub static POD_DNS_CONFIG_OPTION: Struct =
    message("PodDNSConfigOption", &[field(1, "name", TEXT), field(2, "value", TEXT).pointer()]);

/// `PodExtendedResourceClaimStatus`.
pub static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Struct = message(
    "PodExtendedResourceClaimStatus",
    &[
        field(1, "requestMappings", List(&Object(&CONTAINER_EXTENDED_RESOURCE_REQUEST))).always().required(),
        field(2, "resourceClaimName", TEXT).always().required(),
    ],
);

/// `PodIP`.
pub static POD_IP: Struct = message("PodIP", &[field(1, "ip", TEXT).always().required()]);

/// `PodOS`.
pub static POD_OS: Struct = message("PodOS", &[field(1, "name", Text("v1.OSName")).always().required()]);

/// `PodReadinessGate`.
pub static POD_READINESS_GATE: Struct =
    message("PodReadinessGate", &[field(1, "conditionType", Text("v1.PodConditionType")).always().required()]);

/// `PodResourceClaim`.
pub static POD_RESOURCE_CLAIM: Struct = message(
    "PodResourceClaim",
    &[
        field(1, "name", TEXT).always().required(),
        field(3, "resourceClaimName", TEXT).pointer(),
        field(4, "resourceClaimTemplateName", TEXT).pointer(),
    ],
);

/// `PodResourceClaimStatus`.
pub static POD_RESOURCE_CLAIM_STATUS: Struct = message(
    "PodResourceClaimStatus",
    &[field(1, "name", TEXT).always().required(), field(2, "resourceClaimName", TEXT).pointer()],
);

/// `PodSchedulingGate`.
pub static POD_SCHEDULING_GATE: Struct = message("PodSchedulingGate", &[field(1, "name", TEXT).always().required()]);

/// `PodSchedulingGroup`.
pub static POD_SCHEDULING_GROUP: Struct = message("PodSchedulingGroup", &[field(1, "podGroupName", TEXT).pointer()]);

/// `PodSecurityContext`.
pub static POD_SECURITY_CONTEXT: Struct = message(
    "PodSecurityContext",
    &[
        field(1, "seLinuxOptions", Object(&SE_LINUX_OPTIONS)).pointer(),
        field(8, "windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).pointer(),
        field(2, "runAsUser", Shape::Int64).pointer(),
        field(6, "runAsGroup", Shape::Int64).pointer(),
        field(3, "runAsNonRoot", Shape::Bool).pointer(),
        field(4, "supplementalGroups", List(&Shape::Int64)),
        field(12, "supplementalGroupsPolicy", Text("v1.SupplementalGroupsPolicy"))
            .pointer()
            .values(&["Merge", "Strict"]),
        field(5, "fsGroup", Shape::Int64).pointer(),
        field(7, "sysctls", List(&Object(&SYSCTL))),
        field(9, "fsGroupChangePolicy", Text("v1.PodFSGroupChangePolicy"))
            .pointer()
            .values(&["Always", "OnRootMismatch"]),
        field(10, "seccompProfile", Object(&SECCOMP_PROFILE)).pointer(),
        field(11, "appArmorProfile", Object(&APP_ARMOR_PROFILE)).pointer(),
        field(13, "seLinuxChangePolicy", Text("v1.PodSELinuxChangePolicy")).pointer(),
    ],
);

/// `PodSpec`.
pub static POD_SPEC: Struct = message(
    "PodSpec",
    &[
        field(1, "volumes", List(&Object(&VOLUME))).keys(&["name"]).merge("name").retain_keys(),
        field(20, "initContainers", List(&Object(&CONTAINER))).keys(&["name"]).merge("name"),
        field(2, "containers", List(&Object(&CONTAINER))).always().required().keys(&["name"]).merge("name"),
        field(34, "ephemeralContainers", List(&Object(&EPHEMERAL_CONTAINER))).keys(&["name"]).merge("name"),
        field(3, "restartPolicy", Text("v1.RestartPolicy")).values(&["Always", "Never", "OnFailure"]),
        field(4, "terminationGracePeriodSeconds", Shape::Int64).pointer(),
        field(5, "activeDeadlineSeconds", Shape::Int64).pointer(),
        field(6, "dnsPolicy", Text("v1.DNSPolicy")).values(&[
            "ClusterFirst",
            "ClusterFirstWithHostNet",
            "Default",
            "None",
        ]),
        field(7, "nodeSelector", Map(&TEXT)).atomic(),
        field(8, "serviceAccountName", TEXT),
        field(9, "serviceAccount", TEXT),
        field(21, "automountServiceAccountToken", Shape::Bool).pointer(),
        field(10, "nodeName", TEXT),
        field(11, "hostNetwork", Shape::Bool),
        field(12, "hostPID", Shape::Bool),
        field(13, "hostIPC", Shape::Bool),
        field(27, "shareProcessNamespace", Shape::Bool).pointer(),
        field(14, "securityContext", Object(&POD_SECURITY_CONTEXT)).pointer(),
        field(15, "imagePullSecrets", List(&Object(&LOCAL_OBJECT_REFERENCE))).keys(&["name"]).merge("name"),
        field(16, "hostname", TEXT),
        field(17, "subdomain", TEXT),
        field(18, "affinity", Object(&AFFINITY)).pointer(),
        field(19, "schedulerName", TEXT),
        field(22, "tolerations", List(&Object(&TOLERATION))),
        field(23, "hostAliases", List(&Object(&HOST_ALIAS))).keys(&["ip"]).merge("ip"),
        field(24, "priorityClassName", TEXT),
        field(25, "priority", Shape::Int32).pointer(),
        field(26, "dnsConfig", Object(&POD_DNS_CONFIG)).pointer(),
        field(28, "readinessGates", List(&Object(&POD_READINESS_GATE))),
        field(29, "runtimeClassName", TEXT).pointer(),
        field(30, "enableServiceLinks", Shape::Bool).pointer(),
        field(31, "preemptionPolicy", Text("v1.PreemptionPolicy")).pointer().values(&["Never", "PreemptLowerPriority"]),
        field(32, "overhead", Map(&Shape::Quantity)),
        field(33, "topologySpreadConstraints", List(&Object(&TOPOLOGY_SPREAD_CONSTRAINT)))
            .keys(&["topologyKey", "whenUnsatisfiable"])
            .merge("topologyKey"),
        field(35, "setHostnameAsFQDN", Shape::Bool).pointer(),
        field(36, "os", Object(&POD_OS)).pointer(),
        field(37, "hostUsers", Shape::Bool).pointer(),
        field(38, "schedulingGates", List(&Object(&POD_SCHEDULING_GATE))).keys(&["name"]).merge("name"),
        field(39, "resourceClaims", List(&Object(&POD_RESOURCE_CLAIM))).keys(&["name"]).merge("name").retain_keys(),
        field(40, "resources", Object(&RESOURCE_REQUIREMENTS)).pointer(),
        field(41, "hostnameOverride", TEXT).pointer(),
        field(43, "schedulingGroup", Object(&POD_SCHEDULING_GROUP)).pointer(),
    ],
);

/// `PodStatus`.
pub static POD_STATUS: Struct = message(
    "PodStatus",
    &[
        field(17, "observedGeneration", Shape::Int64),
        field(1, "phase", Text("v1.PodPhase")).values(&["Failed", "Pending", "Running", "Succeeded", "Unknown"]),
        field(2, "conditions", List(&Object(&POD_CONDITION))).keys(&["type"]).merge("type"),
        field(3, "message", TEXT),
        field(4, "reason", TEXT),
        field(11, "nominatedNodeName", TEXT),
        field(5, "hostIP", TEXT),
        field(16, "hostIPs", List(&Object(&HOST_IP))).merge("ip"),
        field(6, "podIP", TEXT),
        field(12, "podIPs", List(&Object(&POD_IP))).keys(&["ip"]).merge("ip"),
        field(7, "startTime", Shape::Time).pointer(),
        field(10, "initContainerStatuses", List(&Object(&CONTAINER_STATUS))),
        field(8, "containerStatuses", List(&Object(&CONTAINER_STATUS))),
        field(9, "qosClass", Text("v1.PodQOSClass")).values(&["BestEffort", "Burstable", "Guaranteed"]),
        field(13, "ephemeralContainerStatuses", List(&Object(&CONTAINER_STATUS))),
        field(14, "resize", Text("v1.PodResizeStatus")),
        field(15, "resourceClaimStatuses", List(&Object(&POD_RESOURCE_CLAIM_STATUS)))
            .keys(&["name"])
            .merge("name")
            .retain_keys(),
        field(18, "extendedResourceClaimStatus", Object(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)).pointer(),
        field(19, "allocatedResources", Map(&Shape::Quantity)),
        field(20, "resources", Object(&RESOURCE_REQUIREMENTS)).pointer(),
        field(21, "nodeAllocatableResourceClaimStatuses", List(&Object(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS))),
    ],
);

/// `PodTemplate`.
pub static POD_TEMPLATE: Struct = message(
    "PodTemplate",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "template", Object(&POD_TEMPLATE_SPEC))],
);

/// `PodTemplateSpec`.
pub static POD_TEMPLATE_SPEC: Struct = message(
    "PodTemplateSpec",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "spec", Object(&POD_SPEC))],
);

/// `PreferredSchedulingTerm`.
pub static PREFERRED_SCHEDULING_TERM: Struct = message(
    "PreferredSchedulingTerm",
    &[
        field(1, "weight", Shape::Int32).always().required(),
        field(2, "preference", Object(&NODE_SELECTOR_TERM)).always().required(),
    ],
);

/// `Probe`.
pub static PROBE: Struct = message(
    "Probe",
    &[
        inline(1, &PROBE_HANDLER),
        field(2, "initialDelaySeconds", Shape::Int32),
        field(3, "timeoutSeconds", Shape::Int32),
        field(4, "periodSeconds", Shape::Int32),
        field(5, "successThreshold", Shape::Int32),
        field(6, "failureThreshold", Shape::Int32),
        field(7, "terminationGracePeriodSeconds", Shape::Int64).pointer(),
    ],
);

/// `ProbeHandler`.
pub static PROBE_HANDLER: Struct = message(
    "ProbeHandler",
    &[
        field(1, "exec", Object(&EXEC_ACTION)).pointer(),
        field(2, "httpGet", Object(&HTTP_GET_ACTION)).pointer(),
        field(3, "tcpSocket", Object(&TCP_SOCKET_ACTION)).pointer(),
        field(4, "grpc", Object(&GRPC_ACTION)).pointer(),
    ],
);

/// `ResourceClaim`.
pub static RESOURCE_CLAIM: Struct =
    message("ResourceClaim", &[field(1, "name", TEXT).always().required(), field(2, "request", TEXT)]);

/// `ResourceHealth`.
pub static RESOURCE_HEALTH: Struct = message(
    "ResourceHealth",
    &[
        field(1, "resourceID", Text("v1.ResourceID")).always().required(),
        field(2, "health", Text("v1.ResourceHealthStatus")),
        field(6, "message", TEXT).pointer(),
    ],
);

/// `ResourceRequirements`.
pub static RESOURCE_REQUIREMENTS: Struct = message(
    "ResourceRequirements",
    &[
        field(1, "limits", Map(&Shape::Quantity)),
        field(2, "requests", Map(&Shape::Quantity)),
        field(3, "claims", List(&Object(&RESOURCE_CLAIM))).keys(&["name"]),
    ],
);

/// `ResourceStatus`.
pub static RESOURCE_STATUS: Struct = message(
    "ResourceStatus",
    &[
        field(1, "name", Text("v1.ResourceName")).always().required(),
        field(2, "resources", List(&Object(&RESOURCE_HEALTH))).keys(&["resourceID"]),
    ],
);

/// `SeccompProfile`.
pub static SECCOMP_PROFILE: Struct = message(
    "SeccompProfile",
    &[
        field(1, "type", Text("v1.SeccompProfileType")).always().required().values(&[
            "Localhost",
            "RuntimeDefault",
            "Unconfined",
        ]),
        field(2, "localhostProfile", TEXT).pointer(),
    ],
);

/// `SecretEnvSource`.
pub static SECRET_ENV_SOURCE: Struct =
    message("SecretEnvSource", &[inline(1, &LOCAL_OBJECT_REFERENCE), field(2, "optional", Shape::Bool).pointer()]);

/// `SecretKeySelector`.
pub static SECRET_KEY_SELECTOR: Struct = message(
    "SecretKeySelector",
    &[
        inline(1, &LOCAL_OBJECT_REFERENCE),
        field(2, "key", TEXT).always().required(),
        field(3, "optional", Shape::Bool).pointer(),
    ],
)
.atomic();

/// `SecurityContext`.
pub static SECURITY_CONTEXT: Struct = message(
    "SecurityContext",
    &[
        field(1, "capabilities", Object(&CAPABILITIES)).pointer(),
        field(2, "privileged", Shape::Bool).pointer(),
        field(3, "seLinuxOptions", Object(&SE_LINUX_OPTIONS)).pointer(),
        field(10, "windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)).pointer(),
        field(4, "runAsUser", Shape::Int64).pointer(),
        field(8, "runAsGroup", Shape::Int64).pointer(),
        field(5, "runAsNonRoot", Shape::Bool).pointer(),
        field(6, "readOnlyRootFilesystem", Shape::Bool).pointer(),
        field(7, "allowPrivilegeEscalation", Shape::Bool).pointer(),
        field(9, "procMount", Text("v1.ProcMountType")).pointer().values(&["Default", "Unmasked"]),
        field(11, "seccompProfile", Object(&SECCOMP_PROFILE)).pointer(),
        field(12, "appArmorProfile", Object(&APP_ARMOR_PROFILE)).pointer(),
    ],
);

/// `SELinuxOptions`.
pub static SE_LINUX_OPTIONS: Struct = message(
    "SELinuxOptions",
    &[field(1, "user", TEXT), field(2, "role", TEXT), field(3, "type", TEXT), field(4, "level", TEXT)],
);

/// `SleepAction`.
pub static SLEEP_ACTION: Struct = message("SleepAction", &[field(1, "seconds", Shape::Int64).always().required()]);

/// `Sysctl`.
pub static SYSCTL: Struct =
    message("Sysctl", &[field(1, "name", TEXT).always().required(), field(2, "value", TEXT).always().required()]);

/// `TCPSocketAction`.
pub static TCP_SOCKET_ACTION: Struct =
    message("TCPSocketAction", &[field(1, "port", Shape::IntOrString).always().required(), field(2, "host", TEXT)]);

/// `Toleration`.
pub static TOLERATION: Struct = message(
    "Toleration",
    &[
        field(1, "key", TEXT),
        field(2, "operator", Text("v1.TolerationOperator")).values(&["Equal", "Exists", "Gt", "Lt"]),
        field(3, "value", TEXT),
        field(4, "effect", Text("v1.TaintEffect")).values(&["NoExecute", "NoSchedule", "PreferNoSchedule"]),
        field(5, "tolerationSeconds", Shape::Int64).pointer(),
    ],
);

/// `TopologySpreadConstraint`.
pub static TOPOLOGY_SPREAD_CONSTRAINT: Struct = message(
    "TopologySpreadConstraint",
    &[
        field(1, "maxSkew", Shape::Int32).always().required(),
        field(2, "topologyKey", TEXT).always().required(),
        field(3, "whenUnsatisfiable", Text("v1.UnsatisfiableConstraintAction"))
            .always()
            .required()
            .values(&["DoNotSchedule", "ScheduleAnyway"]),
        field(4, "labelSelector", Object(&meta::LABEL_SELECTOR)).pointer(),
        field(5, "minDomains", Shape::Int32).pointer(),
        field(6, "nodeAffinityPolicy", Text("v1.NodeInclusionPolicy")).pointer().values(&["Honor", "Ignore"]),
        field(7, "nodeTaintsPolicy", Text("v1.NodeInclusionPolicy")).pointer().values(&["Honor", "Ignore"]),
        field(8, "matchLabelKeys", List(&TEXT)),
    ],
);

/// `VolumeDevice`.
pub static VOLUME_DEVICE: Struct = message(
    "VolumeDevice",
    &[field(1, "name", TEXT).always().required(), field(2, "devicePath", TEXT).always().required()],
);

/// `VolumeMount`.
pub static VOLUME_MOUNT: Struct = message(
    "VolumeMount",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "readOnly", Shape::Bool),
        field(7, "recursiveReadOnly", Text("v1.RecursiveReadOnlyMode")).pointer(),
        field(3, "mountPath", TEXT).always().required(),
        field(4, "subPath", TEXT),
        field(5, "mountPropagation", Text("v1.MountPropagationMode")).pointer().values(&[
            "Bidirectional",
            "HostToContainer",
            "None",
        ]),
        field(6, "subPathExpr", TEXT),
    ],
);

/// `VolumeMountStatus`.
pub static VOLUME_MOUNT_STATUS: Struct = message(
    "VolumeMountStatus",
    &[
        field(1, "name", TEXT).always().required(),
        field(2, "mountPath", TEXT).always().required(),
        field(3, "readOnly", Shape::Bool),
        field(4, "recursiveReadOnly", Text("v1.RecursiveReadOnlyMode")).pointer(),
        field(5, "volumeStatus", Object(&VOLUME_STATUS)).pointer(),
    ],
);

/// `VolumeStatus`.
pub static VOLUME_STATUS: Struct =
    message("VolumeStatus", &[field(1, "image", Object(&IMAGE_VOLUME_STATUS)).pointer()]);

/// `WeightedPodAffinityTerm`.
pub static WEIGHTED_POD_AFFINITY_TERM: Struct = message(
    "WeightedPodAffinityTerm",
    &[
        field(1, "weight", Shape::Int32).always().required(),
        field(2, "podAffinityTerm", Object(&POD_AFFINITY_TERM)).always().required(),
    ],
);

/// `WindowsSecurityContextOptions`.
pub static WINDOWS_SECURITY_CONTEXT_OPTIONS: Struct = message(
    "WindowsSecurityContextOptions",
    &[
        field(1, "gmsaCredentialSpecName", TEXT).pointer(),
        field(2, "gmsaCredentialSpec", TEXT).pointer(),
        field(3, "runAsUserName", TEXT).pointer(),
        field(4, "hostProcess", Shape::Bool).pointer(),
    ],
);
