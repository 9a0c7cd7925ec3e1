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
use crate::shim::launch::Mount;

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
    /// Folders in memory of the Pod's own, each with the directory of the host in whose place the
    /// Pod sees it.
    private: Vec<(PathBuf, &'static str)>,
}

/// Directories of the host to which all users may write. A Pod has its own, as other users could
/// read or replace its files there.
pub(crate) const PRIVATE: [&str; 3] = [TMP, VAR_TMP, SHARED_MEMORY];
const TMP: &str = "/tmp";
const VAR_TMP: &str = "/var/tmp";
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
/// Folder in memory below the volumes of a Pod with its temporary files. No volume has such a name:
/// names of volumes are DNS labels.
const TMP_FOLDER: &str = ".tmp";
/// Folder in [`TMP_FOLDER`] with the files of termination messages, which no container sees.
const WORDS: &str = "words";
/// Room for temporary files of a Pod, in /tmp and /var/tmp together, and for termination messages.
/// More is had by an emptyDir.
const TMP_SIZE: &str = "size=128m,nr_inodes=16k,mode=0755";
/// Room for shared memory of a Pod, as container run times have it.
const SHARED_MEMORY_SIZE: &str = "size=64m,nr_inodes=16k,mode=1777";

impl Volumes {
    /// Returns the mounts of the Pod's own /tmp, /var/tmp and /dev/shm. A Pod in the host's IPC
    /// namespace has the host's shared memory.
    pub(crate) fn private(&self, host_ipc: bool, read_only: bool) -> Vec<Mount> {
        let own = self.private.iter().filter(|(_, target)| !(host_ipc && *target == SHARED_MEMORY));
        let mounts = own.map(|(source, target)| Mount {
            source: source.clone(),
            below: None,
            target: PathBuf::from(target),
            read_only: read_only && *target != SHARED_MEMORY,
            optional: *target != TMP,
        });
        mounts.collect()
    }
}

/// Makes the Pod's own folders for temporary files and shared memory.
fn make_private(base: &Path) -> Result<Vec<(PathBuf, &'static str)>, String> {
    let files = base.join(TMP_FOLDER);
    let memory = base.join(".shm");
    mount_memory(&files, TMP_SIZE)?;
    mount_memory(&memory, SHARED_MEMORY_SIZE)?;
    fs::create_dir_all(files.join(WORDS)).map_err(|error| error.to_string())?;
    let mut private = vec![(memory, SHARED_MEMORY)];
    for (name, target) in [("tmp", TMP), ("var-tmp", VAR_TMP)] {
        let folder = files.join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).map_err(|error| error.to_string())?;
        private.push((folder, target));
    }
    Ok(private)
}

/// Returns the folder for the files of termination messages of a Pod whose state is in a folder. It
/// shares the bounded room of the Pod's temporary files, as containers may write there at will.
pub(crate) fn last_words(state: &Path) -> PathBuf {
    state.join("volumes").join(TMP_FOLDER).join(WORDS)
}

/// Makes all volumes of a Pod, or says which cannot be made and why.
pub(crate) async fn prepare(node: &Node, pod: &Value, addresses: &[String]) -> Result<Volumes, String> {
    let mut volumes = Volumes::default();
    let base = node.folder(pod.at("metadata").text("uid")).join("volumes");
    volumes.private =
        make_private(&base).map_err(|why| format!("MountVolume.SetUp failed for /tmp and /dev/shm : {why}"))?;
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
    let limit = volume.text_opt("sizeLimit").and_then(|text| Quantity::parse(text).ok());
    let size = limit.map(|limit| format!("size={}", limit.milli() / 1000)).unwrap_or_default();
    mount_memory(folder, &size)
}

/// Mounts an empty file system in memory, unless an earlier runner has.
fn mount_memory(folder: &Path, options: &str) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    if folder.parent().and_then(device) != device(folder) {
        return Ok(());
    }
    mount::memory(folder, options).map_err(|error| error.to_string())
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

/// Returns true if a Pod gets its token from the runner: no admission has seen it. The
/// ServiceAccount admission of an API server names an account in every Pod, and then the volumes of
/// the spec are all there are: a Pod without one is to have no token.
fn wants_account(pod: &Value) -> bool {
    let spec = pod.at("spec");
    if !spec.text("serviceAccountName").is_empty() {
        return false;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pod_that_no_admission_has_seen_gets_a_token_of_the_runner() {
        let mounted = json!([{"name": "v", "mountPath": ACCOUNT}]);
        let table = [
            (json!({"containers": [{}]}), true),
            (json!({"containers": [{}], "automountServiceAccountToken": false}), false),
            (json!({"containers": [{"volumeMounts": mounted}]}), false),
            (json!({"containers": [{}], "serviceAccountName": "default"}), false),
        ];
        for (spec, wanted) in table {
            assert_eq!(wants_account(&json!({"spec": spec})), wanted, "{spec}");
        }
    }
}
