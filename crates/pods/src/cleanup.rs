//! Removes whatever Pods have left on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::container::Run;
use crate::node::Node;
use crate::shim::pause;
use crate::{Error, cgroup, network, outbound, volumes};

/// Ends all containers a runner has left behind, and removes their links, namespaces, state and logs. Says what that was.
pub async fn cleanup(data: &Path) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    for folder in runs(&Node::states(data)) {
        let run = Run { folder };
        if run.kill().await {
            removed.push(format!("container {}", run.folder.display()));
            run.ended().await;
        }
    }
    below(&Node::states(data)).iter().for_each(|pod| pause::kill(pod));
    removed.extend(network::unplug_all(data)?);
    removed.extend(outbound::remove()?);
    removed.extend(cgroup::remove_all(data));
    below(&Node::states(data)).iter().for_each(|pod| volumes::unmount(pod));
    for folder in ["state", "logs"] {
        let folder = data.join(folder);
        match fs::remove_dir_all(&folder) {
            Ok(()) => removed.push(folder.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::Io { what: format!("removing {}", folder.display()), error }),
        }
    }
    let _ = fs::remove_file(data.join("addresses.json"));
    Ok(removed)
}

/// `state/UID/runs/CONTAINER/NUMBER`.
fn runs(states: &Path) -> Vec<PathBuf> {
    let containers = below(states).into_iter().flat_map(|pod| below(&pod.join("runs")));
    containers.flat_map(|container| below(&container)).collect()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
