//! What a container's process is started with: arguments and variables, who it is, what it sees as its file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use fairlead_api::kinds::pod::privileges::{self, GRANTED};
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::{Error, Severity};
use serde_json::Value;

use crate::admit;
use crate::env::{self, Environment, Given};
use crate::hosts::{self, Network};
use crate::images::{Accounts, Image, ImageUser};
use crate::network::Names;
use crate::node::Node;
use crate::refuse::{self, NO_IMAGE, Refused, UsualUsers, who};
use crate::resolv;
use crate::shim::launch::{Launch, Log, Mount, Process, Program, Who, replace};
use crate::volumes::{ACCOUNT, SHARED_MEMORY, Volumes};
use crate::words;

/// Where programs are, for containers that do not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A container of a Pod that is to be started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) pod: &'a Value,
    pub(crate) container: &'a Value,
    pub(crate) image: &'a Image,
    pub(crate) addresses: &'a [String],
    pub(crate) volumes: &'a Volumes,
    /// The Pod's user, and the number of its group. `None`: that of earlier versions.
    pub(crate) user: Option<u32>,
    /// The number of the run.
    pub(crate) run: u32,
    pub(crate) cgroups: &'a [PathBuf],
    /// The first process of the Pod, if its containers share their processes.
    pub(crate) shared_processes: Option<Process>,
}

/// What a shim is told to start it.
pub(crate) async fn launch(node: &Node, wanted: Wanted<'_>) -> Result<Launch, Refused> {
    let Wanted { pod, container, image, .. } = wanted;
    let (meta, spec) = (pod.at("metadata"), pod.at("spec"));
    let accounts = image.accounts().map_err(|error| {
        let root = image.root.as_deref().unwrap_or(Path::new("/")).display();
        no_image(format!("the files of image {:?} cannot be read: {root}: {error}", container.text("image")))
    })?;
    let environment = environment(node, &wanted).await?;
    let own_network = !spec.flag("hostNetwork");
    let own = wanted.user.map_or(node.settings.nobody, |user| (user, user));
    let who = who(pod, container, &usual_users(pod, image, &accounts, own)?, |user| {
        let user = accounts.user(&user.to_string()).ok().filter(|_| image.root.is_some())?;
        Some(user.group)
    })?;
    let name = hosts::name(pod, &node.settings.dns.cluster_domain).map_err(|mistake| config(mistake.to_string()))?;
    let mounts = mounts(node, &wanted, &environment)?;
    let hostname = own_network.then_some(&*name.kernel);
    let mut program = program(&wanted, &environment, who, &accounts, hostname)?;
    program.default_seccomp = refuse::has_default_seccomp(pod, container);
    let file = node.log(pod, container.text("name"), wanted.run);
    Ok(Launch {
        program,
        network: own_network.then(|| Names::of(&node.settings.data, meta.text("uid")).file()),
        hostname: own_network.then_some(name.kernel),
        own_processes: !spec.flag("hostPID") && wanted.shared_processes.is_none(),
        shared_processes: wanted.shared_processes,
        own_ipc: !spec.flag("hostIPC"),
        root: image.root.clone(),
        sysctls: admit::sysctls(pod),
        mounts,
        read_only: container.at("securityContext").flag("readOnlyRootFilesystem"),
        stdin: container.flag("stdin"),
        stdin_once: container.flag("stdinOnce"),
        tty: container.flag("tty"),
        log: Log { file, size: node.settings.log_size, files: node.settings.log_files },
        cgroups: wanted.cgroups.to_vec(),
    })
}

fn config(message: String) -> Refused {
    Refused { reason: env::CONFIG_ERROR, message }
}

/// Why a container waits for its image.
pub(crate) fn no_image(message: String) -> Refused {
    Refused { reason: NO_IMAGE, message }
}

/// Returns the users of a container that its Pod does not choose.
fn usual_users(pod: &Value, image: &Image, accounts: &Accounts, own: (u32, u32)) -> Result<UsualUsers, Refused> {
    let root = ImageUser { user: 0, group: 0, groups: Vec::new() };
    // Who has the machine's files is never a user of theirs because of an image.
    let of_image = image.root.as_ref().map(|_| match image.user.as_deref() {
        Some(user) if !user.is_empty() => accounts.user(user).map_err(config),
        _ => Ok(root),
    });
    let granted = privileges::annotation(pod) == Some(GRANTED);
    Ok(UsualUsers { own, image: of_image.transpose()?, root_allowed: granted || image.chosen_user })
}

fn program(
    wanted: &Wanted<'_>,
    environment: &Environment,
    who: Who,
    accounts: &Accounts,
    hostname: Option<&str>,
) -> Result<Program, Refused> {
    let Wanted { container, image, .. } = *wanted;
    let line = image.command_line(container);
    let of_image = line.image.into_iter().map(|word| Some(word.to_owned()));
    let arguments = of_image.chain(line.container.into_iter().map(|word| environment.expand(word)));
    let arguments: Option<Vec<String>> = arguments.collect();
    let arguments =
        arguments.ok_or_else(|| config("an argument is longer than the kernel hands to a program".to_owned()))?;
    let home = accounts.home(who.user).unwrap_or_else(|| "/".to_owned());
    let mut usual = vec![("PATH", PATH.to_owned()), ("HOME", home)];
    usual.extend(hostname.map(|name| ("HOSTNAME", name.to_owned())));
    if container.flag("tty") {
        usual.push(("TERM", "xterm".to_owned()));
    }
    // The container's own variables count before those of the image, and these before the usual
    // ones.
    let mut variables: BTreeSet<&str> = environment.variables.iter().map(|(name, _)| name.as_str()).collect();
    let of_image: Vec<_> = image.env.iter().filter(|(name, _)| variables.insert(name)).cloned().collect();
    let usual = usual.into_iter().filter(|(name, _)| !variables.contains(name));
    let usual = usual.map(|(name, value)| (name.to_owned(), value));
    let environment = usual.chain(of_image).chain(environment.variables.clone()).collect();
    let folders = [container.text_opt("workingDir"), image.working_dir.as_deref()];
    let folder = folders.into_iter().flatten().find(|folder| !folder.is_empty()).unwrap_or("/");
    Ok(Program { arguments, environment, folder: folder.to_owned(), who, default_seccomp: false })
}

async fn environment(node: &Node, wanted: &Wanted<'_>) -> Result<Environment, Refused> {
    let Wanted { pod, container, addresses, .. } = *wanted;
    let namespace = pod.at("metadata").text("namespace");
    let references = env::references(container);
    let config_maps = objects(node, &kinds::CONFIG_MAP, namespace, &references.config_maps).await?;
    let secrets = objects(node, &kinds::SECRET, namespace, &references.secrets).await?;
    let services = node.services(namespace).await;
    let services: Vec<_> = services.iter().map(Arc::as_ref).collect();
    let object = node.object.borrow().clone();
    let made = env::of(&Given {
        pod,
        container,
        services: &services,
        config_maps: &config_maps,
        secrets: &secrets,
        pod_ips: addresses,
        host_ips: &node.addresses(),
        allocatable: object.at("status").at("allocatable"),
    });
    let made = made.map_err(|mistake| config(mistake.to_string()))?;
    for note in made.notes.iter().filter(|_| wanted.run == 0) {
        node.tell(pod, Severity::Warning, "EnvironmentVariables", note.to_string());
    }
    Ok(made)
}

async fn objects(
    node: &Node,
    kind: &Kind,
    namespace: &str,
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, Value>, Refused> {
    let mut found = BTreeMap::new();
    for name in names {
        match node.cluster.get(kind, namespace, name).await {
            Ok(object) => drop(found.insert(name.clone(), object)),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(config(error.to_string())),
        }
    }
    Ok(found)
}

/// Writes the files every container of a Pod has; notes are told.
pub(crate) fn write_files(node: &Node, pod: &Value, addresses: &[String]) -> Result<(), String> {
    let name = hosts::name(pod, &node.settings.dns.cluster_domain).map_err(|mistake| mistake.to_string())?;
    let resolv = resolv::of(pod, &node.settings.dns);
    for note in &resolv.notes {
        node.tell(pod, Severity::Warning, note.reason(), note.to_string());
    }
    let of_node = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let network = if pod.at("spec").flag("hostNetwork") { Network::Node(&of_node) } else { Network::Own(addresses) };
    let files = [
        ("hosts", hosts::render(pod, &name, network)),
        ("resolv.conf", resolv::render(&resolv)),
        ("hostname", format!("{}\n", name.kernel)),
    ];
    let folder = node.folder(pod.at("metadata").text("uid")).join("etc");
    let written = || -> io::Result<()> {
        fs::create_dir_all(&folder)?;
        // Not replaced but written: containers have the file itself mounted.
        files.iter().try_for_each(|(name, text)| match fs::read_to_string(folder.join(name)) {
            Ok(old) if old == *text => Ok(()),
            Ok(_) => fs::write(folder.join(name), text),
            Err(_) => replace(&folder.join(name), text.as_bytes()),
        })?;
        // All users of the Pod read them, whatever the runner's own files are like.
        files.iter().try_for_each(|(name, _)| fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o644)))
    };
    written().map_err(|error| format!("writing {}: {error}", folder.display()))
}

fn mounts(node: &Node, wanted: &Wanted<'_>, environment: &Environment) -> Result<Vec<Mount>, Refused> {
    let Wanted { pod, container, image, volumes, .. } = *wanted;
    let folder = node.folder(pod.at("metadata").text("uid")).join("etc");
    let file = |name: &str, optional: bool| Mount {
        source: folder.join(name),
        below: None,
        target: Path::new("/etc").join(name),
        read_only: false,
        optional,
    };
    let read_only = container.at("securityContext").flag("readOnlyRootFilesystem");
    // Before what is to be mounted below them, or in their place.
    let mut mounts = volumes.private(pod.at("spec").flag("hostIPC"), read_only);
    if image.root.is_some() {
        // The image's /tmp is the container's own already, with what the image has there.
        mounts.retain(|mount| mount.target == Path::new(SHARED_MEMORY));
    }
    mounts.extend([file("hosts", false), file("resolv.conf", false)]);
    mounts.extend(words::mount(node, pod, container, wanted.run));
    if !pod.at("spec").flag("hostNetwork") {
        mounts.push(file("hostname", image.root.is_none()));
    }
    let account = volumes.account.iter().map(|folder| Mount {
        source: folder.clone(),
        below: None,
        target: ACCOUNT.into(),
        read_only: true,
        optional: false,
    });
    mounts.extend(account);
    for mount in container.list("volumeMounts") {
        mounts.push(volume_mount(volumes, mount, environment)?);
    }
    Ok(mounts)
}

/// Returns the path inside its volume that a mount shows, if it shows a part only.
///
/// A path that leads out of the volume is refused with the kubelet's words before anything is
/// started (pkg/kubelet/kubelet_pods.go, makeMounts). The API server checks `subPath`, but cannot
/// know what `subPathExpr` becomes.
fn sub_path(mount: &Value, environment: &Environment) -> Result<Option<PathBuf>, String> {
    let text = match mount.text("subPathExpr") {
        "" => mount.text("subPath").to_owned(),
        expression => environment.expand_all(expression)?,
    };
    if text.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(&text);
    if path.is_absolute() {
        return Err(format!("error SubPath `{text}` must not be an absolute path"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("unable to provision SubPath `{text}`: must not contain '..'"));
    }
    Ok(Some(path))
}

fn volume_mount(volumes: &Volumes, mount: &Value, environment: &Environment) -> Result<Mount, Refused> {
    let name = mount.text("name");
    let source = volumes.folders.get(name).ok_or_else(|| config(format!("no volume has the name {name:?}")))?;
    let below = sub_path(mount, environment).map_err(config)?;
    let target = PathBuf::from(mount.text("mountPath"));
    if !target.is_absolute() {
        return Err(config(format!("mountPath {:?} does not begin with /", mount.text("mountPath"))));
    }
    Ok(Mount { source: source.clone(), below, target, read_only: mount.flag("readOnly"), optional: false })
}
