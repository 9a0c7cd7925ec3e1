//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{ControlFlags, Flags, ProxyFlags};
use crate::env::EnvFlags;
use crate::trace::TraceFlags;

/// Kubernetes Services on plain machines: one binary, no containers.
#[derive(Debug, Parser)]
#[command(name = "fairlead", version, args_override_self = true, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start everything on this machine
    #[command(args_override_self = true)]
    Up(Box<Flags>),
    /// Start the API server alone
    #[command(args_override_self = true)]
    Server(Box<Flags>),
    /// Run controllers against a cluster: EndpointSlices, Endpoints, namespaces, garbage collection
    #[command(args_override_self = true)]
    Control(Box<ControlFlags>),
    /// Serve a cluster's Services on this machine, as kube-proxy does and with its options
    #[command(args_override_self = true)]
    Proxy(Box<ProxyFlags>),
    /// Remove everything Fairlead put into this machine's kernel
    Cleanup,
    /// Say what happens to a packet on a Node, and why; send one and show what the kernel did to it
    #[command(args_override_self = true, after_help = crate::trace::EXIT_CODES)]
    Trace(Box<TraceFlags>),
    /// Show the environment variables of a Pod's container: those of Services and its own
    #[command(args_override_self = true)]
    Env(Box<EnvFlags>),
    /// Copy the store of a data directory into a file
    Backup {
        /// Where the copy goes
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Make the store of a data directory from a copy
    Restore {
        /// The copy
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Show the version
    Version,
}
