//! The proxies: ours and the peer, started alike.

use std::fs;
use std::path::{Path, PathBuf};

use fairlead_bench_kit::CLIENT_CORE;
use fairlead_bench_kit::process::Running;
use serde_json::json;

use crate::world::{NODE, World};

/// Who serves the Services, and in which mode.
pub(crate) enum Proxy {
    Fairlead(PathBuf, String),
    Peer(PathBuf, String),
}

impl Proxy {
    /// Starts it on a core of its own.
    pub(crate) fn start(&self, world: &World) -> anyhow::Result<Running> {
        let kubeconfig = kubeconfig(world)?;
        let (program, mode, mut arguments) = match self {
            Proxy::Fairlead(program, mode) => (program, mode, vec!["proxy".to_owned()]),
            Proxy::Peer(program, mode) => (program, mode, Vec::new()),
        };
        arguments.extend([
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--proxy-mode={mode}"),
            format!("--bind-address={NODE}"),
            "--hostname-override=n1".to_owned(),
            "--cluster-cidr=10.50.0.0/16".to_owned(),
            "--healthz-bind-address=127.0.0.1:10256".to_owned(),
            "--metrics-bind-address=127.0.0.1:10249".to_owned(),
        ]);
        // Parameters a namespace may not set.
        let conntrack = ["max-per-core", "min", "tcp-timeout-established", "tcp-timeout-close-wait"];
        arguments.extend(conntrack.map(|name| format!("--conntrack-{name}=0")));
        let logs = world.server.data().join("proxy");
        fs::create_dir_all(&logs)?;
        Running::start(program, &arguments, CLIENT_CORE, &logs)
    }

    /// How long to wait between two changes, in milliseconds.
    pub(crate) fn pause(&self) -> u64 {
        match self {
            Proxy::Fairlead(..) => 20,
            Proxy::Peer(..) => 2000,
        }
    }
}

fn kubeconfig(world: &World) -> anyhow::Result<PathBuf> {
    let target = &world.server.target;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {
            "server": format!("https://127.0.0.1:{}", target.port), "insecure-skip-tls-verify": true,
        }}],
        "users": [{"name": "bench", "user": {"token": target.token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    });
    let file: &Path = &world.server.data().join("kubeconfig");
    fs::write(file, config.to_string())?;
    Ok(file.to_owned())
}
