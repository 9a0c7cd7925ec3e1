//! Volumes of a Pod. We run no volumes, but an object that names them must come back whole.

use super::core::LOCAL_OBJECT_REFERENCE;
use super::{Field, Shape, Struct, TEXT, field, inline, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.core.v1", fields, atomic: false }
}

/// `AWSElasticBlockStoreVolumeSource`.
pub static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Struct = message(
    "AWSElasticBlockStoreVolumeSource",
    &[
        field(1, "volumeID", TEXT).always().required(),
        field(2, "fsType", TEXT),
        field(3, "partition", Shape::Int32),
        field(4, "readOnly", Shape::Bool),
    ],
);

/// `AzureDiskVolumeSource`.
pub static AZURE_DISK_VOLUME_SOURCE: Struct = message(
    "AzureDiskVolumeSource",
    &[
        field(1, "diskName", TEXT).always().required(),
        field(2, "diskURI", TEXT).always().required(),
        field(3, "cachingMode", Text("v1.AzureDataDiskCachingMode"))
            .pointer()
            .values(&["None", "ReadOnly", "ReadWrite"])
            .default("ReadWrite"),
        field(4, "fsType", TEXT).pointer().default("ext4"),
        field(5, "readOnly", Shape::Bool).pointer().default("false"),
        field(6, "kind", Text("v1.AzureDataDiskKind"))
            .pointer()
            .values(&["Dedicated", "Managed", "Shared"])
            .default("Shared"),
    ],
);

/// `AzureFileVolumeSource`.
pub static AZURE_FILE_VOLUME_SOURCE: Struct = message(
    "AzureFileVolumeSource",
    &[
        field(1, "secretName", TEXT).always().required(),
        field(2, "shareName", TEXT).always().required(),
        field(3, "readOnly", Shape::Bool),
    ],
);

/// `CephFSVolumeSource`.
pub static CEPH_FS_VOLUME_SOURCE: Struct = message(
    "CephFSVolumeSource",
    &[
        field(1, "monitors", List(&TEXT)).always().required(),
        field(2, "path", TEXT),
        field(3, "user", TEXT),
        field(4, "secretFile", TEXT),
        field(5, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
        field(6, "readOnly", Shape::Bool),
    ],
);

/// `CinderVolumeSource`.
pub static CINDER_VOLUME_SOURCE: Struct = message(
    "CinderVolumeSource",
    &[
        field(1, "volumeID", TEXT).always().required(),
        field(2, "fsType", TEXT),
        field(3, "readOnly", Shape::Bool),
        field(4, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
    ],
);

/// `ClusterTrustBundleProjection`.
pub static CLUSTER_TRUST_BUNDLE_PROJECTION: Struct = message(
    "ClusterTrustBundleProjection",
    &[
        field(1, "name", TEXT).pointer(),
        field(2, "signerName", TEXT).pointer(),
        field(3, "labelSelector", Object(&meta::LABEL_SELECTOR)).pointer(),
        field(5, "optional", Shape::Bool).pointer(),
        field(4, "path", TEXT).always().required(),
    ],
);

/// `ConfigMapProjection`.
pub static CONFIG_MAP_PROJECTION: Struct = message(
    "ConfigMapProjection",
    &[
        inline(1, &LOCAL_OBJECT_REFERENCE),
        field(2, "items", List(&Object(&KEY_TO_PATH))),
        field(4, "optional", Shape::Bool).pointer(),
    ],
);

/// `ConfigMapVolumeSource`.
pub static CONFIG_MAP_VOLUME_SOURCE: Struct = message(
    "ConfigMapVolumeSource",
    &[
        inline(1, &LOCAL_OBJECT_REFERENCE),
        field(2, "items", List(&Object(&KEY_TO_PATH))),
        field(3, "defaultMode", Shape::Int32).pointer(),
        field(4, "optional", Shape::Bool).pointer(),
    ],
);

/// `CSIVolumeSource`.
pub static CSI_VOLUME_SOURCE: Struct = message(
    "CSIVolumeSource",
    &[
        field(1, "driver", TEXT).always().required(),
        field(2, "readOnly", Shape::Bool).pointer(),
        field(3, "fsType", TEXT).pointer(),
        field(4, "volumeAttributes", Map(&TEXT)),
        field(5, "nodePublishSecretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
    ],
);

/// `DownwardAPIProjection`.
pub static DOWNWARD_API_PROJECTION: Struct =
    message("DownwardAPIProjection", &[field(1, "items", List(&Object(&DOWNWARD_API_VOLUME_FILE)))]);

/// `DownwardAPIVolumeFile`.
pub static DOWNWARD_API_VOLUME_FILE: Struct = message(
    "DownwardAPIVolumeFile",
    &[
        field(1, "path", TEXT).always().required(),
        field(2, "fieldRef", Object(&OBJECT_FIELD_SELECTOR)).pointer(),
        field(3, "resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)).pointer(),
        field(4, "mode", Shape::Int32).pointer(),
    ],
);

/// `DownwardAPIVolumeSource`.
pub static DOWNWARD_API_VOLUME_SOURCE: Struct = message(
    "DownwardAPIVolumeSource",
    &[field(1, "items", List(&Object(&DOWNWARD_API_VOLUME_FILE))), field(2, "defaultMode", Shape::Int32).pointer()],
);

/// `EmptyDirVolumeSource`.
pub static EMPTY_DIR_VOLUME_SOURCE: Struct = message(
    "EmptyDirVolumeSource",
    &[field(1, "medium", Text("v1.StorageMedium")), field(2, "sizeLimit", Shape::Quantity).pointer()],
);

/// `EphemeralVolumeSource`.
pub static EPHEMERAL_VOLUME_SOURCE: Struct = message(
    "EphemeralVolumeSource",
    &[field(1, "volumeClaimTemplate", Object(&PERSISTENT_VOLUME_CLAIM_TEMPLATE)).pointer()],
);

/// `FCVolumeSource`.
pub static FC_VOLUME_SOURCE: Struct = message(
    "FCVolumeSource",
    &[
        field(1, "targetWWNs", List(&TEXT)),
        field(2, "lun", Shape::Int32).pointer(),
        field(3, "fsType", TEXT),
        field(4, "readOnly", Shape::Bool),
        field(5, "wwids", List(&TEXT)),
    ],
);

/// `FlexVolumeSource`.
pub static FLEX_VOLUME_SOURCE: Struct = message(
    "FlexVolumeSource",
    &[
        field(1, "driver", TEXT).always().required(),
        field(2, "fsType", TEXT),
        field(3, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
        field(4, "readOnly", Shape::Bool),
        field(5, "options", Map(&TEXT)),
    ],
);

/// `FlockerVolumeSource`.
pub static FLOCKER_VOLUME_SOURCE: Struct =
    message("FlockerVolumeSource", &[field(1, "datasetName", TEXT), field(2, "datasetUUID", TEXT)]);

/// `GCEPersistentDiskVolumeSource`.
pub static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Struct = message(
    "GCEPersistentDiskVolumeSource",
    &[
        field(1, "pdName", TEXT).always().required(),
        field(2, "fsType", TEXT),
        field(3, "partition", Shape::Int32),
        field(4, "readOnly", Shape::Bool),
    ],
);

/// `GitRepoVolumeSource`.
pub static GIT_REPO_VOLUME_SOURCE: Struct = message(
    "GitRepoVolumeSource",
    &[field(1, "repository", TEXT).always().required(), field(2, "revision", TEXT), field(3, "directory", TEXT)],
);

/// `GlusterfsVolumeSource`.
pub static GLUSTERFS_VOLUME_SOURCE: Struct = message(
    "GlusterfsVolumeSource",
    &[
        field(1, "endpoints", TEXT).always().required(),
        field(2, "path", TEXT).always().required(),
        field(3, "readOnly", Shape::Bool),
    ],
);

/// `HostPathVolumeSource`.
pub static HOST_PATH_VOLUME_SOURCE: Struct = message(
    "HostPathVolumeSource",
    &[
        field(1, "path", TEXT).always().required(),
        field(2, "type", Text("v1.HostPathType")).pointer().values(&[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ]),
    ],
);

/// `ImageVolumeSource`.
pub static IMAGE_VOLUME_SOURCE: Struct = message(
    "ImageVolumeSource",
    &[
        field(1, "reference", TEXT),
        field(2, "pullPolicy", Text("v1.PullPolicy")).values(&["Always", "IfNotPresent", "Never"]),
    ],
);

/// `ISCSIVolumeSource`.
pub static ISCSI_VOLUME_SOURCE: Struct = message(
    "ISCSIVolumeSource",
    &[
        field(1, "targetPortal", TEXT).always().required(),
        field(2, "iqn", TEXT).always().required(),
        field(3, "lun", Shape::Int32).always().required(),
        field(4, "iscsiInterface", TEXT).default("default"),
        field(5, "fsType", TEXT),
        field(6, "readOnly", Shape::Bool),
        field(7, "portals", List(&TEXT)),
        field(8, "chapAuthDiscovery", Shape::Bool),
        field(11, "chapAuthSession", Shape::Bool),
        field(10, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
        field(12, "initiatorName", TEXT).pointer(),
    ],
);

/// `KeyToPath`.
pub static KEY_TO_PATH: Struct = message(
    "KeyToPath",
    &[
        field(1, "key", TEXT).always().required(),
        field(2, "path", TEXT).always().required(),
        field(3, "mode", Shape::Int32).pointer(),
    ],
);

/// `ModifyVolumeStatus`.
pub static MODIFY_VOLUME_STATUS: Struct = message(
    "ModifyVolumeStatus",
    &[
        field(1, "targetVolumeAttributesClassName", TEXT),
        field(2, "status", Text("v1.PersistentVolumeClaimModifyVolumeStatus")).always().required(),
    ],
);

/// `NFSVolumeSource`.
pub static NFS_VOLUME_SOURCE: Struct = message(
    "NFSVolumeSource",
    &[
        field(1, "server", TEXT).always().required(),
        field(2, "path", TEXT).always().required(),
        field(3, "readOnly", Shape::Bool),
    ],
);

/// `ObjectFieldSelector`.
pub static OBJECT_FIELD_SELECTOR: Struct =
    message("ObjectFieldSelector", &[field(1, "apiVersion", TEXT), field(2, "fieldPath", TEXT).always().required()])
        .atomic();

/// `PersistentVolumeClaim`, as a StatefulSet has it in `volumeClaimTemplates`: with its kind and
/// apiVersion, which protobuf does not carry.
pub static PERSISTENT_VOLUME_CLAIM: Struct = message(
    "PersistentVolumeClaim",
    &[
        field(0, "kind", TEXT),
        field(0, "apiVersion", TEXT),
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC)),
        field(3, "status", Object(&PERSISTENT_VOLUME_CLAIM_STATUS)),
    ],
);

/// `PersistentVolumeClaimCondition`.
pub static PERSISTENT_VOLUME_CLAIM_CONDITION: Struct = message(
    "PersistentVolumeClaimCondition",
    &[
        field(1, "type", Text("v1.PersistentVolumeClaimConditionType")).always().required(),
        field(2, "status", Text("v1.ConditionStatus")).always().required(),
        field(3, "lastProbeTime", Shape::Time).always(),
        field(4, "lastTransitionTime", Shape::Time).always(),
        field(5, "reason", TEXT),
        field(6, "message", TEXT),
    ],
);

/// `PersistentVolumeClaimSpec`.
pub static PERSISTENT_VOLUME_CLAIM_SPEC: Struct = message(
    "PersistentVolumeClaimSpec",
    &[
        field(1, "accessModes", List(&Text("v1.PersistentVolumeAccessMode"))).values(&[
            "ReadOnlyMany",
            "ReadWriteMany",
            "ReadWriteOnce",
            "ReadWriteOncePod",
        ]),
        field(4, "selector", Object(&meta::LABEL_SELECTOR)).pointer(),
        field(2, "resources", Object(&VOLUME_RESOURCE_REQUIREMENTS)),
        field(3, "volumeName", TEXT),
        field(5, "storageClassName", TEXT).pointer(),
        field(6, "volumeMode", Text("v1.PersistentVolumeMode")).pointer().values(&["Block", "Filesystem"]),
        field(7, "dataSource", Object(&TYPED_LOCAL_OBJECT_REFERENCE)).pointer(),
        field(8, "dataSourceRef", Object(&TYPED_OBJECT_REFERENCE)).pointer(),
        field(9, "volumeAttributesClassName", TEXT).pointer(),
    ],
);

/// `PersistentVolumeClaimStatus`.
pub static PERSISTENT_VOLUME_CLAIM_STATUS: Struct = message(
    "PersistentVolumeClaimStatus",
    &[
        field(1, "phase", Text("v1.PersistentVolumeClaimPhase")).values(&["Bound", "Lost", "Pending"]),
        field(2, "accessModes", List(&Text("v1.PersistentVolumeAccessMode"))).values(&[
            "ReadOnlyMany",
            "ReadWriteMany",
            "ReadWriteOnce",
            "ReadWriteOncePod",
        ]),
        field(3, "capacity", Map(&Shape::Quantity)),
        field(4, "conditions", List(&Object(&PERSISTENT_VOLUME_CLAIM_CONDITION))).keys(&["type"]).merge("type"),
        field(5, "allocatedResources", Map(&Shape::Quantity)),
        field(7, "allocatedResourceStatuses", Map(&Text("v1.ClaimResourceStatus"))),
        field(8, "currentVolumeAttributesClassName", TEXT).pointer(),
        field(9, "modifyVolumeStatus", Object(&MODIFY_VOLUME_STATUS)).pointer(),
    ],
);

/// `PersistentVolumeClaimTemplate`.
pub static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Struct = message(
    "PersistentVolumeClaimTemplate",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC)).always().required(),
    ],
);

/// `PersistentVolumeClaimVolumeSource`.
pub static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Struct = message(
    "PersistentVolumeClaimVolumeSource",
    &[field(1, "claimName", TEXT).always().required(), field(2, "readOnly", Shape::Bool)],
);

/// `PhotonPersistentDiskVolumeSource`.
pub static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Struct = message(
    "PhotonPersistentDiskVolumeSource",
    &[field(1, "pdID", TEXT).always().required(), field(2, "fsType", TEXT)],
);

/// `PodCertificateProjection`.
pub static POD_CERTIFICATE_PROJECTION: Struct = message(
    "PodCertificateProjection",
    &[
        field(1, "signerName", TEXT).required(),
        field(2, "keyType", TEXT).required(),
        field(3, "maxExpirationSeconds", Shape::Int32).pointer(),
        field(4, "credentialBundlePath", TEXT),
        field(5, "keyPath", TEXT),
        field(6, "certificateChainPath", TEXT),
        field(7, "userAnnotations", Map(&TEXT)),
    ],
);

/// `PortworxVolumeSource`.
pub static PORTWORX_VOLUME_SOURCE: Struct = message(
    "PortworxVolumeSource",
    &[field(1, "volumeID", TEXT).always().required(), field(2, "fsType", TEXT), field(3, "readOnly", Shape::Bool)],
);

/// `ProjectedVolumeSource`.
pub static PROJECTED_VOLUME_SOURCE: Struct = message(
    "ProjectedVolumeSource",
    &[field(1, "sources", List(&Object(&VOLUME_PROJECTION))).always(), field(2, "defaultMode", Shape::Int32).pointer()],
);

/// `QuobyteVolumeSource`.
pub static QUOBYTE_VOLUME_SOURCE: Struct = message(
    "QuobyteVolumeSource",
    &[
        field(1, "registry", TEXT).always().required(),
        field(2, "volume", TEXT).always().required(),
        field(3, "readOnly", Shape::Bool),
        field(4, "user", TEXT),
        field(5, "group", TEXT),
        field(6, "tenant", TEXT),
    ],
);

/// `RBDVolumeSource`.
pub static RBD_VOLUME_SOURCE: Struct = message(
    "RBDVolumeSource",
    &[
        field(1, "monitors", List(&TEXT)).always().required(),
        field(2, "image", TEXT).always().required(),
        field(3, "fsType", TEXT),
        field(4, "pool", TEXT).default("rbd"),
        field(5, "user", TEXT).default("admin"),
        field(6, "keyring", TEXT).default("/etc/ceph/keyring"),
        field(7, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
        field(8, "readOnly", Shape::Bool),
    ],
);

/// `ResourceFieldSelector`.
pub static RESOURCE_FIELD_SELECTOR: Struct = message(
    "ResourceFieldSelector",
    &[
        field(1, "containerName", TEXT),
        field(2, "resource", TEXT).always().required(),
        field(3, "divisor", Shape::Quantity).always(),
    ],
)
.atomic();

/// `ScaleIOVolumeSource`.
pub static SCALE_IO_VOLUME_SOURCE: Struct = message(
    "ScaleIOVolumeSource",
    &[
        field(1, "gateway", TEXT).always().required(),
        field(2, "system", TEXT).always().required(),
        field(3, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer().always().required(),
        field(4, "sslEnabled", Shape::Bool),
        field(5, "protectionDomain", TEXT),
        field(6, "storagePool", TEXT),
        field(7, "storageMode", TEXT).default("ThinProvisioned"),
        field(8, "volumeName", TEXT),
        field(9, "fsType", TEXT).default("xfs"),
        field(10, "readOnly", Shape::Bool),
    ],
);

/// `SecretProjection`.
pub static SECRET_PROJECTION: Struct = message(
    "SecretProjection",
    &[
        inline(1, &LOCAL_OBJECT_REFERENCE),
        field(2, "items", List(&Object(&KEY_TO_PATH))),
        field(4, "optional", Shape::Bool).pointer(),
    ],
);

/// `SecretVolumeSource`.
pub static SECRET_VOLUME_SOURCE: Struct = message(
    "SecretVolumeSource",
    &[
        field(1, "secretName", TEXT),
        field(2, "items", List(&Object(&KEY_TO_PATH))),
        field(3, "defaultMode", Shape::Int32).pointer(),
        field(4, "optional", Shape::Bool).pointer(),
    ],
);

/// `ServiceAccountTokenProjection`.
pub static SERVICE_ACCOUNT_TOKEN_PROJECTION: Struct = message(
    "ServiceAccountTokenProjection",
    &[
        field(1, "audience", TEXT),
        field(2, "expirationSeconds", Shape::Int64).pointer(),
        field(3, "path", TEXT).always().required(),
    ],
);

/// `StorageOSVolumeSource`.
pub static STORAGE_OS_VOLUME_SOURCE: Struct = message(
    "StorageOSVolumeSource",
    &[
        field(1, "volumeName", TEXT),
        field(2, "volumeNamespace", TEXT),
        field(3, "fsType", TEXT),
        field(4, "readOnly", Shape::Bool),
        field(5, "secretRef", Object(&LOCAL_OBJECT_REFERENCE)).pointer(),
    ],
);

/// `TypedLocalObjectReference`.
pub static TYPED_LOCAL_OBJECT_REFERENCE: Struct = message(
    "TypedLocalObjectReference",
    &[
        field(1, "apiGroup", TEXT).pointer().always(),
        field(2, "kind", TEXT).always().required(),
        field(3, "name", TEXT).always().required(),
    ],
)
.atomic();

/// `TypedObjectReference`.
pub static TYPED_OBJECT_REFERENCE: Struct = message(
    "TypedObjectReference",
    &[
        field(1, "apiGroup", TEXT).pointer().always(),
        field(2, "kind", TEXT).always().required(),
        field(3, "name", TEXT).always().required(),
        field(4, "namespace", TEXT).pointer(),
    ],
);

/// `Volume`.
pub static VOLUME: Struct = message("Volume", &[field(1, "name", TEXT).always().required(), inline(2, &VOLUME_SOURCE)]);

/// `VolumeProjection`.
pub static VOLUME_PROJECTION: Struct = message(
    "VolumeProjection",
    &[
        field(1, "secret", Object(&SECRET_PROJECTION)).pointer(),
        field(2, "downwardAPI", Object(&DOWNWARD_API_PROJECTION)).pointer(),
        field(3, "configMap", Object(&CONFIG_MAP_PROJECTION)).pointer(),
        field(4, "serviceAccountToken", Object(&SERVICE_ACCOUNT_TOKEN_PROJECTION)).pointer(),
        field(5, "clusterTrustBundle", Object(&CLUSTER_TRUST_BUNDLE_PROJECTION)).pointer(),
        field(6, "podCertificate", Object(&POD_CERTIFICATE_PROJECTION)).pointer(),
    ],
);

/// `VolumeResourceRequirements`.
pub static VOLUME_RESOURCE_REQUIREMENTS: Struct = message(
    "VolumeResourceRequirements",
    &[field(1, "limits", Map(&Shape::Quantity)), field(2, "requests", Map(&Shape::Quantity))],
);

/// `VolumeSource`.
pub static VOLUME_SOURCE: Struct = message(
    "VolumeSource",
    &[
        field(1, "hostPath", Object(&HOST_PATH_VOLUME_SOURCE)).pointer(),
        field(2, "emptyDir", Object(&EMPTY_DIR_VOLUME_SOURCE)).pointer(),
        field(3, "gcePersistentDisk", Object(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)).pointer(),
        field(4, "awsElasticBlockStore", Object(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)).pointer(),
        field(5, "gitRepo", Object(&GIT_REPO_VOLUME_SOURCE)).pointer(),
        field(6, "secret", Object(&SECRET_VOLUME_SOURCE)).pointer(),
        field(7, "nfs", Object(&NFS_VOLUME_SOURCE)).pointer(),
        field(8, "iscsi", Object(&ISCSI_VOLUME_SOURCE)).pointer(),
        field(9, "glusterfs", Object(&GLUSTERFS_VOLUME_SOURCE)).pointer(),
        field(10, "persistentVolumeClaim", Object(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)).pointer(),
        field(11, "rbd", Object(&RBD_VOLUME_SOURCE)).pointer(),
        field(12, "flexVolume", Object(&FLEX_VOLUME_SOURCE)).pointer(),
        field(13, "cinder", Object(&CINDER_VOLUME_SOURCE)).pointer(),
        field(14, "cephfs", Object(&CEPH_FS_VOLUME_SOURCE)).pointer(),
        field(15, "flocker", Object(&FLOCKER_VOLUME_SOURCE)).pointer(),
        field(16, "downwardAPI", Object(&DOWNWARD_API_VOLUME_SOURCE)).pointer(),
        field(17, "fc", Object(&FC_VOLUME_SOURCE)).pointer(),
        field(18, "azureFile", Object(&AZURE_FILE_VOLUME_SOURCE)).pointer(),
        field(19, "configMap", Object(&CONFIG_MAP_VOLUME_SOURCE)).pointer(),
        field(20, "vsphereVolume", Object(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).pointer(),
        field(21, "quobyte", Object(&QUOBYTE_VOLUME_SOURCE)).pointer(),
        field(22, "azureDisk", Object(&AZURE_DISK_VOLUME_SOURCE)).pointer(),
        field(23, "photonPersistentDisk", Object(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).pointer(),
        field(26, "projected", Object(&PROJECTED_VOLUME_SOURCE)).pointer(),
        field(24, "portworxVolume", Object(&PORTWORX_VOLUME_SOURCE)).pointer(),
        field(25, "scaleIO", Object(&SCALE_IO_VOLUME_SOURCE)).pointer(),
        field(27, "storageos", Object(&STORAGE_OS_VOLUME_SOURCE)).pointer(),
        field(28, "csi", Object(&CSI_VOLUME_SOURCE)).pointer(),
        field(29, "ephemeral", Object(&EPHEMERAL_VOLUME_SOURCE)).pointer(),
        field(30, "image", Object(&IMAGE_VOLUME_SOURCE)).pointer(),
    ],
);

/// `VsphereVirtualDiskVolumeSource`.
pub static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Struct = message(
    "VsphereVirtualDiskVolumeSource",
    &[
        field(1, "volumePath", TEXT).always().required(),
        field(2, "fsType", TEXT),
        field(3, "storagePolicyName", TEXT),
        field(4, "storagePolicyID", TEXT),
    ],
);
