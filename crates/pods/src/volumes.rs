//! The volumes of a Pod, as folders: empty ones, those of the host, and those whose files come from the API, which are written
//! again when what they come from changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use fairlead_api::quantity::Quantity;
use fairlead_kernel::mount;
use serde_json::{Value, json};

use crate::node::Node;

mod content;
mod files;

/// Where in-cluster clients look for their account.
pub(crate) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The volume with the account, for Pods that do not bring one.
const ACCOUNT_VOLUME: &str = "kube-api-access";

/// The volumes of a Pod: names and folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Volumes {
    pub(crate) folders: BTreeMap<String, PathBuf>,
    /// The account's, if it must be shown at its place beside what the Pod asks for.
    pub(crate) account: Option<PathBuf>,
}

/// Makes all volumes of a Pod, or says which cannot be made and why.
pub(crate) async fn prepare(node: &Node, pod: &Value, addresses: &[String]) -> Result<Volumes, String> {
    let mut volumes = Volumes::default();
    let base = node.folder(pod.at("metadata").text("uid")).join("volumes");
    for volume in pod.at("spec").list("volumes") {
        let name = volume.text("name");
        let made = one(node, pod, volume, &base.join(name), addresses).await;
        let folder = made.map_err(|why| format!("MountVolume.SetUp failed for volume \"{name}\" : {why}"))?;
        volumes.folders.insert(name.to_owned(), folder);
    }
    if wants_account(pod) {
        let folder = base.join(ACCOUNT_VOLUME);
        match one(node, pod, &account_volume(), &folder, addresses).await {
            Ok(folder) => volumes.account = Some(folder),
            // No such account: the Pod does not call the API then.
            Err(why) => tracing::debug!(pod = pod.at("metadata").text("name"), why, "a Pod without an account"),
        }
    }
    Ok(volumes)
}

/// Writes again what comes from the API and has changed.
pub(crate) async fn refresh(node: &Node, pod: &Value, volumes: &Volumes, addresses: &[String]) {
    let spec = pod.at("spec");
    let with_files = spec.list("volumes").iter().filter(|volume| content::has_files(volume));
    let known = with_files.filter_map(|volume| Some((volume.clone(), volumes.folders.get(volume.text("name"))?)));
    let account = volumes.account.iter().map(|folder| (account_volume(), folder));
    for (volume, folder) in known.chain(account) {
        if let Err(why) = one(node, pod, &volume, folder, addresses).await {
            tracing::debug!(volume = volume.text("name"), why, "a volume stays as it was");
        }
    }
}

async fn one(node: &Node, pod: &Value, volume: &Value, folder: &Path, addresses: &[String]) -> Result<PathBuf, String> {
    if volume.map("hostPath").is_some() {
        return host_path(volume.at("hostPath"));
    }
    if volume.map("emptyDir").is_some() {
        in_memory(volume.at("emptyDir"), folder)?;
        return empty(pod, folder).map_err(|error| error.to_string());
    }
    if !content::has_files(volume) {
        let kind = volume.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| *key != "name");
        return Err(format!("volumes of type {} are not supported", kind.map_or("none", String::as_str)));
    }
    let files = content::of(node, pod, volume, folder, addresses).await?;
    let group = pod.at("spec").at("securityContext").int_opt("fsGroup").and_then(|group| u32::try_from(group).ok());
    files::write(folder, &files, group).map_err(|error| error.to_string())?;
    Ok(folder.to_owned())
}

/// A folder all users of the Pod may write to. What is in it stays for as long as the Pod.
fn empty(pod: &Value, folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let group = pod.at("spec").at("securityContext").int_opt("fsGroup").and_then(|group| u32::try_from(group).ok());
    if let Some(group) = group {
        chown(folder, None, Some(group))?;
    }
    let mode = if group.is_some() { 0o2777 } else { 0o777 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    Ok(folder.to_owned())
}

/// An empty folder that is in memory, if that is asked for.
fn in_memory(volume: &Value, folder: &Path) -> Result<(), String> {
    if volume.text("medium") != "Memory" {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    if folder.parent().and_then(device) != device(folder) {
        // An earlier runner has made it.
        return Ok(());
    }
    let limit = volume.text_opt("sizeLimit").and_then(|text| Quantity::parse(text).ok());
    let size = limit.map(|limit| format!("size={}", limit.milli() / 1000)).unwrap_or_default();
    mount::memory(folder, &size).map_err(|error| error.to_string())
}

/// Takes away what was mounted for the volumes of a Pod whose state is in a folder.
pub(crate) fn unmount(state: &Path) {
    for entry in fs::read_dir(state.join("volumes")).into_iter().flatten().flatten() {
        if let Err(error) = mount::unmount(&entry.path()) {
            tracing::warn!(%error, "a volume is still mounted");
        }
    }
}

/// A path of the host. The Pod may only have it by a grant, which was looked at before.
fn host_path(volume: &Value) -> Result<PathBuf, String> {
    let path = Path::new(volume.text("path"));
    let wrong = |what: &str| format!("hostPath type check failed: {} is not a {what}", path.display());
    match volume.text("type") {
        "DirectoryOrCreate" => fs::create_dir_all(path).map_err(|error| error.to_string())?,
        "FileOrCreate" if !path.exists() => fs::File::create(path).map(drop).map_err(|error| error.to_string())?,
        "Directory" if !path.is_dir() => return Err(wrong("directory")),
        "File" if !path.is_file() => return Err(wrong("file")),
        _ if !path.exists() => return Err(format!("{} does not exist", path.display())),
        _ => {}
    }
    Ok(path.to_owned())
}

/// Whether a Pod gets its account without asking: the server's admission may have given it a volume already.
fn wants_account(pod: &Value) -> bool {
    let spec = pod.at("spec");
    let mounts =
        |container: &Value| container.list("volumeMounts").iter().any(|mount| mount.text("mountPath") == ACCOUNT);
    let has = spec.list("containers").iter().chain(spec.list("initContainers")).any(mounts);
    !has && spec.flag_opt("automountServiceAccountToken") != Some(false)
}

/// The volume admission would have given it.
fn account_volume() -> Value {
    json!({"name": ACCOUNT_VOLUME, "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": content::ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]}})
}
