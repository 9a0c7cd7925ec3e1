//! Looks at what is registered: over the network, or by a command on this machine.

use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use fairlead_api::view::Protocol;
use fairlead_probe::{Outcome, Wish};
use tokio::process::Command;

use super::flags::Port;

/// How to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    Network(fairlead_probe::Check),
    /// For a shell.
    Command(String),
}

impl Check {
    /// A check of an address, at the first of its ports that speaks TCP.
    pub(super) fn new(wish: &Wish, address: IpAddr, ports: &[Port]) -> anyhow::Result<Check> {
        if let Wish::Exec(command) = wish {
            return Ok(Check::Command(command.clone()));
        }
        let served = ports.iter().find(|port| port.protocol == Protocol::Tcp).map(|port| port.number);
        let check = wish.check(&address.to_string(), served);
        check
            .map(Check::Network)
            .context("--check: say which TCP port to look at, by --port or as in http:8080/healthz")
    }
}

/// Looks once.
pub(super) async fn look(check: &Check, timeout: Duration) -> Outcome {
    match check {
        Check::Network(check) => fairlead_probe::look(check, timeout).await,
        Check::Command(command) => run(command, timeout).await,
    }
}

/// A command that ends well in time is a success.
async fn run(command: &str, timeout: Duration) -> Outcome {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = match shell.process_group(0).kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failure(format!("{command:?}: {error}")),
    };
    match tokio::time::timeout(timeout, child.wait()).await {
        Ok(Ok(status)) if status.success() => Outcome::Success,
        Ok(Ok(status)) => Outcome::Failure(format!("{command:?}: {status}")),
        Ok(Err(error)) => Outcome::Failure(format!("{command:?}: {error}")),
        Err(_) => {
            // What the shell has started goes with it.
            let _ = child.id().map(fairlead_kernel::process::terminate_group);
            let _ = child.kill().await;
            Outcome::Failure(format!("{command:?} timed out after {timeout:?}"))
        }
    }
}

#[cfg(test)]
mod tests;
