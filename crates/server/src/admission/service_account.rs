//! The account of a new Pod, as kube-apiserver's ServiceAccount plugin gives it
//! (plugin/pkg/admission/serviceaccount/admission.go): `spec.serviceAccountName` is `default` where
//! the author names none, the account must be there, and its token is mounted as a projected
//! volume.

use std::time::Duration;

use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look, kinds};
use tokio::time::{Instant, sleep};

use crate::write::random_suffix;
use crate::{Inner, object, read};

/// Name of the account of Pods that name none.
const DEFAULT: &str = "default";
/// Maximum wait for the account `default`, which a controller makes a moment after its namespace.
/// kube-apiserver waits for up to 2 s; here, the controller may share a busy machine with
/// everything else.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two reads during that wait.
const INTERVAL: Duration = Duration::from_millis(50);
/// Directory of the token in each container, where client libraries look for it.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Prefix of the name of the volume with the token; a random part follows.
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Annotation of mirror Pods: copies of Pods that a kubelet runs from files of its own.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation of accounts whose Pods may use no other Secrets than the account names.
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Gives a new Pod its account, or refuses it.
pub(crate) async fn admit(server: &Inner, namespace: &str, pod: &mut Value) -> Result<(), Failure> {
    let metadata = pod.at("metadata");
    let name = Some(metadata.text("name")).filter(|name| !name.is_empty()).unwrap_or(metadata.text("generateName"));
    let name = name.to_owned();
    let forbidden = |why: &str| Failure::forbidden(Subject { group: "", kind: "pods", name: &name }, why);
    // The kubelet deletes a mirror Pod that differs from its file, so nothing is added to it.
    if !metadata.at("annotations").at(MIRROR).is_null() {
        return check_mirror(pod.at("spec")).map_err(forbidden);
    }
    if pod.at("spec").text("serviceAccountName").is_empty() {
        let spec = pod.map_mut("spec");
        spec.insert("serviceAccountName", DEFAULT.into());
        spec.insert("serviceAccount", DEFAULT.into());
    }
    let wanted = pod.at("spec").text("serviceAccountName").to_owned();
    let Some(account) = find(server, namespace, &wanted).await? else {
        let why = format!(
            "error looking up service account {namespace}/{wanted}: serviceaccount {} not found",
            fairlead_api::golang::quote(&wanted)
        );
        return Err(forbidden(&why));
    };
    let automount = |object: &Value| object.flag_opt("automountServiceAccountToken");
    // What the Pod says wins over what its account says.
    if automount(pod.at("spec")).or(automount(&account)).unwrap_or(true) {
        mount_token(pod);
    }
    let pull_secrets = account.list("imagePullSecrets");
    if pod.at("spec").list("imagePullSecrets").is_empty() && !pull_secrets.is_empty() {
        let names: Vec<Value> = pull_secrets.iter().map(|secret| json!({"name": secret.text("name")})).collect();
        pod.map_mut("spec").insert("imagePullSecrets", names.into());
    }
    // The texts that Go reads as true (strconv.ParseBool).
    let enforced = account.at("metadata").at("annotations").text(ENFORCE_SECRETS);
    if ["1", "t", "T", "true", "TRUE", "True"].contains(&enforced) {
        check_secrets(&account, pod.at("spec")).map_err(|why| forbidden(&why))?;
    }
    Ok(())
}

/// Reads an account, and waits for `default` if it is not there yet.
async fn find(server: &Inner, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
    let key = object::key(&kinds::SERVICE_ACCOUNT, namespace, name);
    let end = Instant::now() + PATIENCE;
    loop {
        let entry = server.store.get(&key).await.map_err(read::unavailable)?;
        if entry.is_none() && name == DEFAULT && Instant::now() < end {
            sleep(INTERVAL).await;
            continue;
        }
        return entry.map(|entry| object::load(&kinds::SERVICE_ACCOUNT, &entry)).transpose();
    }
}

/// Mounts the token in all containers that have nothing else in its place.
fn mount_token(pod: &mut Value) {
    let volumes = pod.at("spec").list("volumes");
    let given = volumes.iter().map(|volume| volume.text("name")).find(|name| name.starts_with(VOLUME_PREFIX));
    let has_volume = given.is_some();
    let name = given.map_or_else(|| format!("{VOLUME_PREFIX}{}", random_suffix()), str::to_owned);
    let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = pod.map_mut("spec").get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut mounts = container.list("volumeMounts").to_vec();
            if mounts.iter().any(|mount| mount.text("mountPath") == MOUNT_PATH) {
                continue;
            }
            mounts.push(mount.clone());
            container.set("volumeMounts", mounts);
            mounted = true;
        }
    }
    if mounted && !has_volume {
        let mut volumes = pod.at("spec").list("volumes").to_vec();
        volumes.push(token_volume(&name));
        pod.map_mut("spec").insert("volumes", volumes.into());
    }
}

/// Returns the volume with token, certificate authority and namespace. A token that lives 3607 s is
/// one that nobody asked for (kube-apiserver's `WarnOnlyBoundTokenExpirationSeconds`).
fn token_volume(name: &str) -> Value {
    json!({"name": name, "projected": {"sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ], "defaultMode": 0o644}})
}

/// Refuses a mirror Pod that names objects of the API: its kubelet could read them without having
/// been given them.
fn check_mirror(spec: &Value) -> Result<(), &'static str> {
    if !spec.text("serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if names_secret(spec) {
        return Err("a mirror pod may not reference secrets");
    }
    let mut sources = spec.list("volumes").iter().flat_map(|volume| volume.at("projected").list("sources"));
    if sources.any(|source| !source.at("serviceAccountToken").is_null()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Returns true if a part of a Pod refers to a Secret. Stored objects are not nested deeply.
fn names_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(field, value)| match field.as_str() {
            "secretName" => value.as_str().is_some_and(|name| !name.is_empty()),
            "secret" | "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => true,
            "imagePullSecrets" => value.as_array().is_some_and(|list| !list.is_empty()),
            _ => names_secret(value),
        }),
        Value::Array(list) => list.iter().any(names_secret),
        _ => false,
    }
}

/// Refuses a Pod that uses Secrets its account does not name
/// (`kubernetes.io/enforce-mountable-secrets`).
fn check_secrets(account: &Value, spec: &Value) -> Result<(), String> {
    let own = account.at("metadata").text("name");
    let named = |list: &str, name: &str| account.list(list).iter().any(|secret| secret.text("name") == name);
    let refuse = |what: String| {
        Err(format!("{what} is not allowed because service account {own} does not reference that secret"))
    };
    for volume in spec.list("volumes") {
        let secret = volume.at("secret").text("secretName");
        if !volume.at("secret").is_null() && !named("secrets", secret) {
            return refuse(format!("volume with secret.secretName=\"{secret}\""));
        }
    }
    for (list, what) in [("initContainers", "init container"), ("containers", "container")] {
        for container in spec.list(list) {
            let of = format!("{what} {}", container.text("name"));
            for from in container.list("envFrom") {
                let secret = from.at("secretRef").text("name");
                if !from.at("secretRef").is_null() && !named("secrets", secret) {
                    return refuse(format!("{of} with envFrom referencing secret.secretName=\"{secret}\""));
                }
            }
            for variable in container.list("env") {
                let reference = variable.at("valueFrom").at("secretKeyRef");
                let name = variable.text("name");
                let secret = reference.text("name");
                if !reference.is_null() && !named("secrets", secret) {
                    return refuse(format!("{of} with envVar {name} referencing secret.secretName=\"{secret}\""));
                }
            }
        }
    }
    for (index, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        let secret = secret.text("name");
        if !named("imagePullSecrets", secret) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {own} does not reference that \
                 imagePullSecret"
            ));
        }
    }
    Ok(())
}
