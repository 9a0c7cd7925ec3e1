//! Who makes the slices: controllers in a process of their own, in that of the API server, or a peer's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairlead_bench_kit::CLIENT_CORE;
use fairlead_bench_kit::process::Running;
use fairlead_bench_kit::server::Server;
use serde_json::json;

/// What is started.
#[derive(Debug)]
pub(crate) enum Arrangement {
    /// `fairlead server` and `fairlead control`.
    Beside(PathBuf),
    /// `fairlead server --controllers`.
    Inside(PathBuf),
    /// `fairlead server` and kube-controller-manager.
    Peer(PathBuf, PathBuf),
}

/// An API server with controllers.
pub(crate) struct Started {
    pub(crate) server: Server,
    controllers: Option<Running>,
}

/// The controllers that are compared.
const CONTROLLERS: &str = "endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller";

impl Arrangement {
    /// What to put before the name of a figure.
    pub(crate) fn prefix(&self) -> &'static str {
        match self {
            Arrangement::Beside(_) | Arrangement::Peer(..) => "",
            Arrangement::Inside(_) => "in one process: ",
        }
    }

    /// Starts the API server; controllers come when it is full, as after a restart.
    pub(crate) fn start(&self) -> anyhow::Result<Started> {
        let server = match self {
            Arrangement::Inside(fairlead) => Server::fairlead_with(fairlead, &[("controllers", CONTROLLERS)])?,
            Arrangement::Beside(fairlead) | Arrangement::Peer(fairlead, _) => Server::fairlead(fairlead)?,
        };
        Ok(Started { server, controllers: None })
    }

    /// Starts the controllers, if they are a process of their own.
    pub(crate) fn start_controllers(&self, started: &mut Started) -> anyhow::Result<()> {
        let data = started.server.data();
        let kubeconfig = kubeconfig(data, &started.server)?;
        let (program, mut arguments) = match self {
            Arrangement::Inside(_) => return Ok(()),
            Arrangement::Beside(fairlead) => (fairlead, vec!["control".to_owned()]),
            Arrangement::Peer(_, program) => {
                let unlimited = ["--kube-api-qps=100000", "--kube-api-burst=100000", "--secure-port=0"];
                let more = ["--concurrent-endpoint-syncs=5", "--authentication-skip-lookup"];
                (program, unlimited.iter().chain(&more).map(|flag| (*flag).to_owned()).collect())
            }
        };
        arguments.extend([
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--controllers={CONTROLLERS}"),
            "--leader-elect=false".to_owned(),
        ]);
        started.controllers = Some(Running::start(program, &arguments, CLIENT_CORE, &data.join("controllers"))?);
        Ok(())
    }
}

impl Started {
    /// Time the controllers have been on a core; with them the API server, if they share a process.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        self.controllers.as_ref().map_or_else(|| self.server.cpu(), Running::cpu)
    }

    /// Memory they hold, in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        self.controllers.as_ref().map_or_else(|| self.server.resident(), Running::resident)
    }
}

fn kubeconfig(folder: &Path, server: &Server) -> anyhow::Result<PathBuf> {
    let url = format!("https://127.0.0.1:{}", server.target.port);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": url, "insecure-skip-tls-verify": true}}],
        "users": [{"name": "bench", "user": {"token": server.target.token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    });
    fs::create_dir_all(folder.join("controllers"))?;
    let file = folder.join("kubeconfig");
    fs::write(&file, config.to_string())?;
    Ok(file)
}
