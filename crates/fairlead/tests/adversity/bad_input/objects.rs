//! Good objects, to be spoilt.

use serde_json::{Value, json};

/// Where an object is created, and the object.
pub(super) type Good = (&'static str, Value);

/// Objects that stay: what patches and updates are aimed at.
pub(super) fn kept() -> Vec<Good> {
    let mut service = service();
    service["metadata"]["name"] = json!("kept");
    let map = json!({"metadata": {"name": "kept"}, "data": {"a": "b"}});
    let mut pod = pod();
    pod["metadata"]["name"] = json!("kept");
    let mut slice = slice();
    slice["metadata"]["name"] = json!("kept");
    vec![
        ("/api/v1/namespaces/default/services", service),
        ("/api/v1/namespaces/default/configmaps", map),
        ("/api/v1/namespaces/default/pods", pod),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice),
    ]
}

/// One of every kind that can be created.
pub(super) fn all() -> Vec<Good> {
    let ns = |resource: &'static str, object| (resource, object);
    vec![
        ns("/api/v1/namespaces/default/services", service()),
        ns("/api/v1/namespaces/default/pods", pod()),
        ns(
            "/api/v1/namespaces/default/configmaps",
            json!({"metadata": meta("m"), "data": {"k": "v"}, "binaryData": {"b": "AAEC"}}),
        ),
        ns(
            "/api/v1/namespaces/default/secrets",
            json!({"metadata": meta("s"), "type": "Opaque", "data": {"k": "dg=="}}),
        ),
        ns("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": meta("a"), "secrets": [{"name": "s"}]})),
        ns("/api/v1/namespaces/default/endpoints", endpoints()),
        ns("/api/v1/namespaces/default/events", event()),
        ns("/api/v1/namespaces", json!({"metadata": meta("fresh"), "spec": {"finalizers": ["kubernetes"]}})),
        ns("/api/v1/nodes", node()),
        ns("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice()),
        ns("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease()),
        ns("/apis/networking.k8s.io/v1/ipaddresses", address()),
        ns(
            "/apis/networking.k8s.io/v1/servicecidrs",
            json!({"metadata": meta("more"), "spec": {"cidrs": ["10.9.0.0/24"]}}),
        ),
        ns("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role()),
        ns("/apis/rbac.authorization.k8s.io/v1/clusterroles", role()),
        ns("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding()),
        ns("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding()),
        ns("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review()),
        ns("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "t", "audiences": ["a"]}})),
        ns(
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            json!({"spec": {"audiences": ["a"], "expirationSeconds": 600}}),
        ),
    ]
}

/// Metadata with most of what metadata can have.
fn meta(name: &str) -> Value {
    json!({
        "name": name, "labels": {"app": "web", "example.com/tier": "front"}, "annotations": {"note": "text"},
        "finalizers": [], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": meta("web"),
        "spec": {
            "type": "LoadBalancer", "selector": {"app": "web"}, "ipFamilyPolicy": "PreferDualStack",
            "ports": [
                {"name": "a", "port": 80, "protocol": "TCP", "targetPort": 8080, "appProtocol": "http"},
                {"name": "b", "port": 53, "protocol": "UDP", "targetPort": "dns"},
            ],
            "externalIPs": ["192.0.2.1"], "loadBalancerSourceRanges": ["192.0.2.0/24"], "externalTrafficPolicy": "Local",
            "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 100}},
            "publishNotReadyAddresses": true, "internalTrafficPolicy": "Cluster", "trafficDistribution": "PreferClose",
        },
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": meta("p"),
        "spec": {
            "containers": [{
                "name": "c", "image": "i", "command": ["sleep"], "env": [{"name": "E", "value": "v"}],
                "ports": [{"containerPort": 80, "name": "http"}],
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": 1}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
            }],
            "volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}]}}],
            "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}],
            "nodeSelector": {"zone": "a"}, "terminationGracePeriodSeconds": 1, "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["h"]}],
        },
    })
}

fn node() -> Value {
    json!({
        "metadata": meta("n"), "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"], "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}], "capacity": {"cpu": "4"}},
    })
}

fn endpoints() -> Value {
    json!({
        "metadata": meta("e"),
        "subsets": [{"addresses": [{"ip": "192.0.2.1", "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}}], "ports": [{"port": 80}]}],
    })
}

fn slice() -> Value {
    json!({
        "metadata": meta("s"), "addressType": "IPv4", "ports": [{"name": "a", "port": 80, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}, "hints": {"forZones": [{"name": "z"}]}, "zone": "z"}],
    })
}

fn lease() -> Value {
    let times = json!({"acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.000006Z"});
    json!({"metadata": meta("l"), "spec": {"holderIdentity": "me", "leaseDurationSeconds": 5, "acquireTime": times["acquireTime"], "renewTime": times["renewTime"]}})
}

fn event() -> Value {
    json!({
        "metadata": {"name": "ev", "namespace": "default"}, "reason": "Why", "message": "text", "type": "Normal", "count": 1,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "firstTimestamp": "2026-01-02T03:04:05Z",
    })
}

fn address() -> Value {
    let parent = json!({"group": "", "resource": "services", "namespace": "default", "name": "web"});
    json!({"metadata": {"name": "192.0.2.9"}, "spec": {"parentRef": parent}})
}

fn role() -> Value {
    json!({"metadata": meta("r"), "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]}]})
}

fn binding() -> Value {
    json!({
        "metadata": meta("b"), "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
    })
}

fn review() -> Value {
    json!({"spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods", "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}}}})
}
